// What cuda_driver.h declares of NVIDIA's driver, held against NVIDIA's own header where there is one, when this is
// compiled: names, parameters and numbers.
#include "deploy/runtime/devices/cuda_driver.h"

#include <gtest/gtest.h>

#include <type_traits>

#ifdef HONE_CUDA_HEADER
#include HONE_CUDA_HEADER
// The header's macro stands for a later version, of the same parameters.
#undef cuEventElapsedTime
extern "C" CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);

namespace hone {
namespace {

// Whether they are passed alike: the same type, or integers and enumerations of one size, or pointers to such or to the
// driver's own.
template <class A, class B>
constexpr bool Alike() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    return Alike<std::remove_cv_t<std::remove_pointer_t<A>>, std::remove_cv_t<std::remove_pointer_t<B>>>();
  } else if constexpr ((std::is_integral_v<A> || std::is_enum_v<A>)&&(std::is_integral_v<B> || std::is_enum_v<B>)) {
    return sizeof(A) == sizeof(B);
  } else if constexpr (std::is_class_v<A> && std::is_class_v<B>) {
    return true;  // what handles point to, which nobody looks at
  } else {
    return std::is_same_v<A, B>;
  }
}
template <class R1, class... A1, class R2, class... A2>
constexpr bool Alike(R1 (*)(A1...), R2 (*)(A2...)) {
  if constexpr (sizeof...(A1) == sizeof...(A2)) {
    return Alike<R1, R2>() && (Alike<A1, A2>() && ...);
  } else {
    return false;
  }
}

#define HONE_CHECK_ENTRY(name, parameters) \
  static_assert(Alike(decltype(CudaDriver::name){}, static_cast<decltype(&::name)>(nullptr)), #name);
HONE_CUDA_ENTRIES(HONE_CHECK_ENTRY)

#define HONE_CHECK_NUMBER(ours, theirs) static_assert(int{ours} == int{theirs}, #theirs);
HONE_CHECK_NUMBER(kCudaSuccess, CUDA_SUCCESS)
HONE_CHECK_NUMBER(kCudaInvalidValue, CUDA_ERROR_INVALID_VALUE)
HONE_CHECK_NUMBER(kCudaOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY)
HONE_CHECK_NUMBER(kCudaDeinitialized, CUDA_ERROR_DEINITIALIZED)
HONE_CHECK_NUMBER(kCudaDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE)
HONE_CHECK_NUMBER(kCudaNoDevice, CUDA_ERROR_NO_DEVICE)
HONE_CHECK_NUMBER(kCudaInvalidDevice, CUDA_ERROR_INVALID_DEVICE)
HONE_CHECK_NUMBER(kCudaInvalidImage, CUDA_ERROR_INVALID_IMAGE)
HONE_CHECK_NUMBER(kCudaInvalidContext, CUDA_ERROR_INVALID_CONTEXT)
HONE_CHECK_NUMBER(kCudaNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU)
HONE_CHECK_NUMBER(kCudaEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE)
HONE_CHECK_NUMBER(kCudaInvalidPtx, CUDA_ERROR_INVALID_PTX)
HONE_CHECK_NUMBER(kCudaNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE)
HONE_CHECK_NUMBER(kCudaUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
HONE_CHECK_NUMBER(kCudaContained, CUDA_ERROR_CONTAINED)
HONE_CHECK_NUMBER(kCudaInvalidHandle, CUDA_ERROR_INVALID_HANDLE)
HONE_CHECK_NUMBER(kCudaNotFound, CUDA_ERROR_NOT_FOUND)
HONE_CHECK_NUMBER(kCudaIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS)
HONE_CHECK_NUMBER(kCudaLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
HONE_CHECK_NUMBER(kCudaLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT)
HONE_CHECK_NUMBER(kCudaContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED)
HONE_CHECK_NUMBER(kCudaAssert, CUDA_ERROR_ASSERT)
HONE_CHECK_NUMBER(kCudaHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR)
HONE_CHECK_NUMBER(kCudaIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION)
HONE_CHECK_NUMBER(kCudaMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS)
HONE_CHECK_NUMBER(kCudaInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE)
HONE_CHECK_NUMBER(kCudaInvalidPc, CUDA_ERROR_INVALID_PC)
HONE_CHECK_NUMBER(kCudaLaunchFailed, CUDA_ERROR_LAUNCH_FAILED)
HONE_CHECK_NUMBER(kCudaTensorMemoryLeak, CUDA_ERROR_TENSOR_MEMORY_LEAK)
HONE_CHECK_NUMBER(kCudaMpsClientTerminated, CUDA_ERROR_MPS_CLIENT_TERMINATED)
HONE_CHECK_NUMBER(kCudaExternalDevice, CUDA_ERROR_EXTERNAL_DEVICE)
HONE_CHECK_NUMBER(kCudaMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
HONE_CHECK_NUMBER(kCudaWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE)
HONE_CHECK_NUMBER(kCudaClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE)
HONE_CHECK_NUMBER(kCudaMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
HONE_CHECK_NUMBER(kCudaL2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
HONE_CHECK_NUMBER(kCudaMaxThreadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
HONE_CHECK_NUMBER(kCudaCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
HONE_CHECK_NUMBER(kCudaCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
HONE_CHECK_NUMBER(kCudaMaxSharedMemoryPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
HONE_CHECK_NUMBER(kCudaMaxRegistersPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)
HONE_CHECK_NUMBER(kCudaMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
HONE_CHECK_NUMBER(kCudaMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
HONE_CHECK_NUMBER(kCudaNonBlocking, CU_STREAM_NON_BLOCKING)

}  // namespace
}  // namespace hone
#endif

namespace hone {
namespace {

TEST(CudaDriver, IsDeclaredAsItsHeaderDeclaresIt) {
#ifndef HONE_CUDA_HEADER
  GTEST_SKIP() << "there was no cuda.h when this was compiled";
#endif
}

// The two kinds of errors: a launch that the device refuses costs nothing but itself.
TEST(CudaDriver, SomeErrorsLoseTheDevice) {
  for (const CudaResult result : {kCudaIllegalAddress, kCudaLaunchFailed, kCudaLaunchTimeout, kCudaEccUncorrectable})
    EXPECT_TRUE(CudaDeviceIsLost(result)) << result;
  for (const CudaResult result : {kCudaSuccess, kCudaInvalidValue, kCudaOutOfMemory, kCudaLaunchOutOfResources})
    EXPECT_FALSE(CudaDeviceIsLost(result)) << result;
}

}  // namespace
}  // namespace hone
