#include "deploy/runtime/devices/cuda_driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace hone {
namespace {

constexpr int kLeastVersion = 11040;  // the first with cuGraphInstantiateWithFlags

// "13.0" of 13000.
std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

RuntimeError Unsupported(const std::string& what) {
  return RuntimeError(RuntimeCode::kUnsupported, what + "; install the driver of NVIDIA's GPU, or a newer one");
}

RuntimeResult<const CudaDriver*> Open() {
  const char* const named = std::getenv("HONE_CUDA_LIBRARY");
  const bool is_named = named != nullptr && *named != '\0';
  const std::string name = is_named ? named : "libcuda.so.1";
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Unsupported("the CUDA driver's library " + name + (is_named ? ", which HONE_CUDA_LIBRARY names," : "") +
                       " cannot be opened");
  static CudaDriver driver;
#define HONE_LOOK_UP(entry, parameters)                                            \
  driver.entry = reinterpret_cast<decltype(driver.entry)>(dlsym(library, #entry)); \
  if (driver.entry == nullptr) return Unsupported(name + " has no " #entry);
  HONE_CUDA_ENTRIES(HONE_LOOK_UP)
#undef HONE_LOOK_UP
  if (const CudaResult result = driver.cuInit(0); result != kCudaSuccess)
    return Unsupported("the CUDA driver does not start: cuInit returned " + driver.TextOf(result));
  int version = 0;
  if (driver.cuDriverGetVersion(&version) != kCudaSuccess || version < kLeastVersion)
    return Unsupported("the CUDA driver is of CUDA " + VersionText(version) + ", and " + VersionText(kLeastVersion) +
                       " is the oldest that will do");
  return &driver;
}

}  // namespace

RuntimeResult<const CudaDriver*> CudaDriver::Load() {
  static const RuntimeResult<const CudaDriver*> loaded = Open();
  return loaded;
}

std::string CudaDriver::TextOf(CudaResult result) const {
  const char *name = nullptr, *text = nullptr;
  const bool known = cuGetErrorName(result, &name) == kCudaSuccess && name != nullptr;
  if (!known) return "error " + std::to_string(result);
  const bool told = cuGetErrorString(result, &text) == kCudaSuccess && text != nullptr;
  return told ? std::string(name) + " (" + text + ")" : name;
}

// "CUDA Driver API", section "Data types used by CUDA driver": those that leave the process in an inconsistent state,
// those of a context that cannot be used any more, and hardware that failed.
bool CudaDeviceIsLost(CudaResult result) {
  switch (result) {
    case kCudaDeinitialized:
    case kCudaEccUncorrectable:
    case kCudaNvlinkUncorrectable:
    case kCudaContained:
    case kCudaIllegalAddress:
    case kCudaLaunchTimeout:
    case kCudaContextIsDestroyed:
    case kCudaAssert:
    case kCudaHardwareStackError:
    case kCudaIllegalInstruction:
    case kCudaMisalignedAddress:
    case kCudaInvalidAddressSpace:
    case kCudaInvalidPc:
    case kCudaLaunchFailed:
    case kCudaTensorMemoryLeak:
    case kCudaMpsClientTerminated:
    case kCudaExternalDevice: return true;
    default: return false;
  }
}

}  // namespace hone
