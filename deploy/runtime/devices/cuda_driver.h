// The part of NVIDIA's driver that devices use. Its library is opened at run time, and nothing links it: the file that
// HONE_CUDA_LIBRARY names, else libcuda.so.1. What is declared here is the binary interface as "CUDA Driver API"
// documents it (docs.nvidia.com/cuda/cuda-driver-api, 13.0), so that building needs no toolkit; every entry is in
// drivers from CUDA 11.4 on.
#pragma once

#include <cstddef>
#include <string>

#include "deploy/runtime/error.h"

namespace hone {

using CudaResult = int;                        // CUresult
using CudaOrdinal = int;                       // CUdevice
using CudaAddress = unsigned long long;        // CUdeviceptr
using CudaContext = struct CUctx_st*;          // CUcontext
using CudaModule = struct CUmod_st*;           // CUmodule
using CudaFunction = struct CUfunc_st*;        // CUfunction
using CudaStream = struct CUstream_st*;        // CUstream
using CudaEvent = struct CUevent_st*;          // CUevent
using CudaGraph = struct CUgraph_st*;          // CUgraph
using CudaGraphExec = struct CUgraphExec_st*;  // CUgraphExec

// Of CUresult.
enum : CudaResult {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaOutOfMemory = 2,
  kCudaDeinitialized = 4,
  kCudaDeviceUnavailable = 46,
  kCudaNoDevice = 100,
  kCudaInvalidDevice = 101,
  kCudaInvalidImage = 200,
  kCudaInvalidContext = 201,
  kCudaNoBinaryForGpu = 209,
  kCudaEccUncorrectable = 214,
  kCudaInvalidPtx = 218,
  kCudaNvlinkUncorrectable = 220,
  kCudaUnsupportedPtxVersion = 222,
  kCudaContained = 226,
  kCudaInvalidHandle = 400,
  kCudaNotFound = 500,
  kCudaIllegalAddress = 700,
  kCudaLaunchOutOfResources = 701,
  kCudaLaunchTimeout = 702,
  kCudaContextIsDestroyed = 709,
  kCudaAssert = 710,
  kCudaHardwareStackError = 714,
  kCudaIllegalInstruction = 715,
  kCudaMisalignedAddress = 716,
  kCudaInvalidAddressSpace = 717,
  kCudaInvalidPc = 718,
  kCudaLaunchFailed = 719,
  kCudaTensorMemoryLeak = 721,
  kCudaMpsClientTerminated = 810,
  kCudaExternalDevice = 911,
};

// Of CUdevice_attribute.
enum : int {
  kCudaMaxThreadsPerBlock = 1,
  kCudaWarpSize = 10,
  kCudaClockRate = 13,  // kHz
  kCudaMultiprocessorCount = 16,
  kCudaL2CacheSize = 38,
  kCudaMaxThreadsPerMultiprocessor = 39,
  kCudaCapabilityMajor = 75,
  kCudaCapabilityMinor = 76,
  kCudaMaxSharedMemoryPerMultiprocessor = 81,
  kCudaMaxRegistersPerMultiprocessor = 82,
  kCudaMaxSharedMemoryPerBlockOptin = 97,
};

inline constexpr int kCudaMaxDynamicSharedBytes = 8;  // of CUfunction_attribute
inline constexpr unsigned kCudaNonBlocking = 1;       // of CUstream_flags: it does not wait for the default stream
inline constexpr int kCudaCaptureThreadLocal = 1;     // of CUstreamCaptureMode: of other threads nothing is forbidden

// Name and parameters of every entry. The suffix _v2 is part of a name where a header would add it.
// clang-format off
#define HONE_CUDA_ENTRIES(X) \
  X(cuInit, (unsigned flags)) \
  X(cuDriverGetVersion, (int* version)) \
  X(cuGetErrorName, (CudaResult result, const char** name)) \
  X(cuGetErrorString, (CudaResult result, const char** text)) \
  X(cuDeviceGetCount, (int* count)) \
  X(cuDeviceGet, (CudaOrdinal* device, int ordinal)) \
  X(cuDeviceGetName, (char* name, int bytes, CudaOrdinal device)) \
  X(cuDeviceGetAttribute, (int* value, int attribute, CudaOrdinal device)) \
  X(cuDeviceTotalMem_v2, (size_t* bytes, CudaOrdinal device)) \
  X(cuDevicePrimaryCtxRetain, (CudaContext* context, CudaOrdinal device)) \
  X(cuDevicePrimaryCtxRelease_v2, (CudaOrdinal device)) \
  X(cuCtxPushCurrent_v2, (CudaContext context)) \
  X(cuCtxPopCurrent_v2, (CudaContext* context)) \
  X(cuModuleLoadData, (CudaModule* module, const void* image)) \
  X(cuModuleUnload, (CudaModule module)) \
  X(cuModuleGetFunction, (CudaFunction* function, CudaModule module, const char* name)) \
  X(cuFuncSetAttribute, (CudaFunction function, int attribute, int value)) \
  X(cuMemAlloc_v2, (CudaAddress* address, size_t bytes)) \
  X(cuMemFree_v2, (CudaAddress address)) \
  X(cuMemcpyHtoDAsync_v2, (CudaAddress to, const void* from, size_t bytes, CudaStream stream)) \
  X(cuMemcpyDtoHAsync_v2, (void* to, CudaAddress from, size_t bytes, CudaStream stream)) \
  X(cuMemcpyDtoDAsync_v2, (CudaAddress to, CudaAddress from, size_t bytes, CudaStream stream)) \
  X(cuStreamCreate, (CudaStream* stream, unsigned flags)) \
  X(cuStreamDestroy_v2, (CudaStream stream)) \
  X(cuStreamSynchronize, (CudaStream stream)) \
  X(cuStreamBeginCapture_v2, (CudaStream stream, int mode)) \
  X(cuStreamEndCapture, (CudaStream stream, CudaGraph* graph)) \
  X(cuGraphInstantiateWithFlags, (CudaGraphExec* executable, CudaGraph graph, unsigned long long flags)) \
  X(cuGraphDestroy, (CudaGraph graph)) \
  X(cuGraphLaunch, (CudaGraphExec executable, CudaStream stream)) \
  X(cuGraphExecDestroy, (CudaGraphExec executable)) \
  X(cuEventCreate, (CudaEvent* event, unsigned flags)) \
  X(cuEventDestroy_v2, (CudaEvent event)) \
  X(cuEventRecord, (CudaEvent event, CudaStream stream)) \
  X(cuEventElapsedTime, (float* milliseconds, CudaEvent start, CudaEvent end)) \
  X(cuLaunchKernel, (CudaFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
                     unsigned block_y, unsigned block_z, unsigned shared_bytes, CudaStream stream, void** arguments, \
                     void** extra))
// clang-format on

struct CudaDriver {
#define HONE_DECLARE(name, parameters) CudaResult(*name) parameters = nullptr;
  HONE_CUDA_ENTRIES(HONE_DECLARE)
#undef HONE_DECLARE

  // Opened, and its cuInit called, once in a process. kUnsupported says what is missing: the library, an entry, a newer
  // driver, a device.
  static RuntimeResult<const CudaDriver*> Load();

  // "CUDA_ERROR_OUT_OF_MEMORY (out of memory)", as the driver says it.
  std::string TextOf(CudaResult result) const;
};

// Whether the driver documents the error as one after which the process has to be started again, or the context is
// gone.
bool CudaDeviceIsLost(CudaResult result);

}  // namespace hone
