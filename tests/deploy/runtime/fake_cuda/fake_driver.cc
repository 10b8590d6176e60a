// The driver of fake_cuda.h.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "deploy/runtime/devices/cuda_driver.h"
#include "tests/deploy/runtime/fake_cuda/fake_cuda.h"
#include "tests/deploy/runtime/fake_cuda/fake_image.h"
#include "tests/deploy/runtime/fake_cuda/fake_kernels.h"

namespace hone {

// What the driver's handles point to.
struct CUctx_st {};
struct CUfunc_st {
  const fake::KernelLibrary* kernels = nullptr;
  fake::KernelLibrary::Kernel kernel;
  unsigned dynamic_shared = 48 << 10;
};
struct CUmod_st {
  std::shared_ptr<const fake::KernelLibrary> kernels;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};
struct CUevent_st {
  bool recorded = false, done = false;
  double us = 0;
};
using Work = std::vector<std::function<CudaResult()>>;
struct CUgraph_st {
  Work work;
};
struct CUgraphExec_st {
  Work work;
};
struct CUstream_st {
  Work work;  // in order, not begun
  CudaGraph captures = nullptr;
  Work& takes() { return captures != nullptr ? captures->work : work; }
};

namespace {

constexpr size_t kPage = 4096, kAlignment = 512;
constexpr size_t kMostPoisoned = 64 << 20;
constexpr CudaResult kNotInitialized = 3, kOperatingSystem = 304, kStreamCaptureUnsupported = 900, kUnknown = 999;

struct Failure {
  std::string entry;
  int call = 0;
  CudaResult error = 0;
  bool over = false;  // the call was made
};
struct Words {
  int devices = 1, capability = 90, driver = 13000;
  size_t memory = size_t{1} << 30;
  std::vector<Failure> failures;
  std::string count_file;
};

Words ParseWords(const char* text) {
  Words words;
  std::istringstream stream(text == nullptr ? "" : text);
  for (std::string word; stream >> word;) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals), value = equals == word.npos ? "" : word.substr(equals + 1);
    if (name == "devices") words.devices = std::atoi(value.c_str());
    if (name == "memory") words.memory = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "capability") words.capability = 10 * std::atoi(value.c_str()) + (value.back() - '0');
    if (name == "driver") words.driver = std::atoi(value.c_str());
    if (name == "count") words.count_file = value;
    if (name == "fail") {
      const size_t first = value.find(':'), second = value.find(':', first + 1);
      words.failures.push_back(
          {value.substr(0, first), std::atoi(value.c_str() + first + 1), std::atoi(value.c_str() + second + 1)});
    }
  }
  return words;
}

struct Allocation {
  char* mapped = nullptr;
  size_t mapped_bytes = 0, bytes = 0;
};

struct Driver {
  std::recursive_mutex mutex;
  bool initialized = false;
  Words words;
  CudaResult lost = kCudaSuccess;
  CUctx_st context;
  int retained = 0;
  size_t used = 0;
  std::map<CudaAddress, Allocation> memory;
  std::set<CudaModule> modules;
  std::set<CudaStream> streams;
  std::set<CudaEvent> events;
  std::set<CudaGraph> graphs;
  std::set<CudaGraphExec> executables;
  std::map<std::string, int> counts;
  std::string calls;
} g;
thread_local std::vector<CudaContext> t_current;

double NowUs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// How often the entry was called, this time included, in all processes that name the file: a byte a call in it.
int CountIn(const std::string& file, const std::string& entry) {
  const std::string path = file + "." + entry;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return 0;
  const bool written = write(fd, "x", 1) == 1;
  const auto at = static_cast<int>(lseek(fd, 0, SEEK_CUR));
  close(fd);
  return written ? at : 0;
}

// What a call comes to before it does anything: an error it is told to return, or the one that lost the device.
CudaResult Called(const char* entry) {
  g.calls += std::string(g.calls.empty() ? "" : " ") + entry;
  const int here = ++g.counts[entry];
  for (Failure& failure : g.words.failures) {
    if (failure.entry != entry || failure.over) continue;
    const int count = g.words.count_file.empty() ? here : CountIn(g.words.count_file, entry);
    failure.over = count >= failure.call;  // counting takes time, which kernels are then said to have hidden
    if (count != failure.call) continue;
    if (CudaDeviceIsLost(failure.error)) g.lost = failure.error;
    return failure.error;
  }
  return g.lost;
}

bool IsCurrent() { return !t_current.empty() && g.retained > 0; }

Allocation* Find(CudaAddress address, size_t bytes, size_t* offset) {
  auto after = g.memory.upper_bound(address);
  if (after == g.memory.begin()) return nullptr;
  auto& [base, allocation] = *std::prev(after);
  *offset = address - base;
  return *offset + bytes <= allocation.bytes ? &allocation : nullptr;
}
bool IsMemory(CudaAddress address, size_t bytes) {
  size_t offset = 0;
  return Find(address, bytes, &offset) != nullptr;
}

CudaResult Drain(CudaStream stream) {
  while (!stream->work.empty() && g.lost == kCudaSuccess) {
    const Work work = std::exchange(stream->work, {});
    for (const auto& piece : work) {
      const CudaResult result = piece();
      if (result == kCudaSuccess) continue;
      g.lost = result;
      break;
    }
  }
  return g.lost;
}
CudaResult DrainAll() {
  for (const CudaStream stream : g.streams) Drain(stream);
  return g.lost;
}

struct ErrorText {
  CudaResult result;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {kCudaSuccess, "CUDA_SUCCESS", "no error"},
    {kCudaInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kCudaOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kCudaDeviceUnavailable, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {kCudaNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kOperatingSystem, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed or operation not supported on this OS"},
    {kCudaInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kCudaInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kCudaInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kCudaNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {kCudaEccUncorrectable, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {kCudaInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kCudaNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kCudaIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kCudaLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {kCudaLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kStreamCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {kUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};
const ErrorText* FindError(CudaResult result) {
  for (const ErrorText& error : kErrors) {
    if (error.result == result) return &error;
  }
  return nullptr;
}

// "CUDA C++ Programming Guide", "Binary Compatibility".
bool RunsOnDevice(const std::string& architecture) {
  const int code = std::atoi(architecture.c_str() + 3), device = g.words.capability;
  const bool exact = std::isalpha(static_cast<unsigned char>(architecture.back())) != 0;
  return exact ? code == device : code / 10 == device / 10 && code <= device;
}

}  // namespace
}  // namespace hone

using namespace hone;  // NOLINT: the entries are C's, and their types are declared there

// Of an entry that is called in a context, after the errors of Called.
#define HONE_FAKE_ENTER(entry)                                                     \
  const std::lock_guard<std::recursive_mutex> guard(g.mutex);                      \
  if (const CudaResult error = Called(entry); error != kCudaSuccess) return error; \
  if (!IsCurrent()) return kCudaInvalidContext;

// Of one that gives something back, which it does whatever else it says.
#define HONE_FAKE_RELEASE(entry)                              \
  const std::lock_guard<std::recursive_mutex> guard(g.mutex); \
  const CudaResult said = Called(entry);                      \
  if (!IsCurrent()) return kCudaInvalidContext;

// What NVIDIA's driver (580.159, H100) does not start without: names for its threads, and a local socket to listen on.
bool SystemGivesWhatTheDriverNeeds() {
  const std::string comm = "/proc/self/task/" + std::to_string(::syscall(SYS_gettid)) + "/comm";
  const int name = ::open(comm.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const int length = std::snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "hone-fake-cuda-%d", ::getpid());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  const bool listens =
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 && ::listen(socket, 1) == 0;
  for (const int fd : {name, socket}) {
    if (fd >= 0) ::close(fd);
  }
  return name >= 0 && listens;
}

extern "C" {

CudaResult cuInit(unsigned flags) {
  const std::lock_guard<std::recursive_mutex> guard(g.mutex);
  if (!g.initialized) g.words = ParseWords(std::getenv("HONE_FAKE_CUDA"));
  if (const CudaResult error = Called("cuInit"); error != kCudaSuccess) return error;
  if (g.words.devices == 0) return kCudaNoDevice;
  if (!g.initialized && !SystemGivesWhatTheDriverNeeds()) return kOperatingSystem;
  g.initialized = true;
  return flags == 0 ? kCudaSuccess : kCudaInvalidValue;
}
CudaResult cuDriverGetVersion(int* version) {
  *version = g.words.driver;
  return kCudaSuccess;
}
CudaResult cuGetErrorName(CudaResult result, const char** name) {
  const ErrorText* const error = FindError(result);
  *name = error == nullptr ? nullptr : error->name;
  return error == nullptr ? kCudaInvalidValue : kCudaSuccess;
}
CudaResult cuGetErrorString(CudaResult result, const char** text) {
  const ErrorText* const error = FindError(result);
  *text = error == nullptr ? nullptr : error->text;
  return error == nullptr ? kCudaInvalidValue : kCudaSuccess;
}
CudaResult cuDeviceGetCount(int* count) {
  const std::lock_guard<std::recursive_mutex> guard(g.mutex);
  if (const CudaResult error = Called("cuDeviceGetCount"); error != kCudaSuccess) return error;
  *count = g.words.devices;
  return g.initialized ? kCudaSuccess : kNotInitialized;
}
CudaResult cuDeviceGet(CudaOrdinal* device, int ordinal) {
  const std::lock_guard<std::recursive_mutex> guard(g.mutex);
  if (const CudaResult error = Called("cuDeviceGet"); error != kCudaSuccess) return error;
  *device = ordinal;
  return ordinal >= 0 && ordinal < g.words.devices ? kCudaSuccess : kCudaInvalidDevice;
}
CudaResult cuDeviceGetName(char* name, int bytes, CudaOrdinal device) {
  std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU %d", device);
  return kCudaSuccess;
}
CudaResult cuDeviceGetAttribute(int* value, int attribute, CudaOrdinal) {
  switch (attribute) {
    case kCudaMaxThreadsPerBlock: *value = 1024; break;
    case kCudaWarpSize: *value = 32; break;
    case kCudaClockRate: *value = 1500000; break;
    case kCudaMultiprocessorCount: *value = 4; break;
    case kCudaL2CacheSize: *value = 1 << 20; break;
    case kCudaMaxThreadsPerMultiprocessor: *value = 2048; break;
    case kCudaCapabilityMajor: *value = g.words.capability / 10; break;
    case kCudaCapabilityMinor: *value = g.words.capability % 10; break;
    case kCudaMaxSharedMemoryPerMultiprocessor: *value = 228 << 10; break;
    case kCudaMaxRegistersPerMultiprocessor: *value = 65536; break;
    case kCudaMaxSharedMemoryPerBlockOptin: *value = 227 << 10; break;
    default: return kCudaInvalidValue;
  }
  return kCudaSuccess;
}
CudaResult cuDeviceTotalMem_v2(size_t* bytes, CudaOrdinal) {
  *bytes = g.words.memory;
  return kCudaSuccess;
}
CudaResult cuDevicePrimaryCtxRetain(CudaContext* context, CudaOrdinal) {
  const std::lock_guard<std::recursive_mutex> guard(g.mutex);
  if (const CudaResult error = Called("cuDevicePrimaryCtxRetain"); error != kCudaSuccess) return error;
  ++g.retained;
  *context = &g.context;
  return kCudaSuccess;
}
CudaResult cuDevicePrimaryCtxRelease_v2(CudaOrdinal) {
  const std::lock_guard<std::recursive_mutex> guard(g.mutex);
  const CudaResult said = Called("cuDevicePrimaryCtxRelease_v2");
  if (g.retained == 0) return kCudaInvalidContext;
  --g.retained;
  return said;
}
CudaResult cuCtxPushCurrent_v2(CudaContext context) {
  t_current.push_back(context);
  return kCudaSuccess;
}
CudaResult cuCtxPopCurrent_v2(CudaContext* context) {
  if (t_current.empty()) return kCudaInvalidContext;
  *context = t_current.back();
  t_current.pop_back();
  return kCudaSuccess;
}
CudaResult cuModuleLoadData(CudaModule* module, const void* image) {
  HONE_FAKE_ENTER("cuModuleLoadData")
  const char* const text = static_cast<const char*>(image);
  constexpr size_t kMagic = sizeof(fake::kImageMagic) - 1;
  if (std::strncmp(text, fake::kImageMagic, kMagic) != 0) {
    return std::strncmp(text,
                        "\x7f"
                        "ELF",
                        4) == 0
               ? kCudaNoBinaryForGpu
               : kCudaInvalidImage;
  }
  const char* const end = std::strchr(text, '\n');
  if (end == nullptr) return kCudaInvalidImage;
  if (!RunsOnDevice(std::string(text + kMagic, end))) return kCudaNoBinaryForGpu;
  auto loaded = std::make_unique<CUmod_st>();
  loaded->kernels = fake::KernelLibrary::Compile(end + 1);
  if (loaded->kernels == nullptr) return kCudaInvalidImage;
  *module = loaded.release();
  g.modules.insert(*module);
  return kCudaSuccess;
}
CudaResult cuModuleUnload(CudaModule module) {
  HONE_FAKE_RELEASE("cuModuleUnload")
  if (g.modules.erase(module) == 0) return kCudaInvalidHandle;
  DrainAll();
  delete module;
  return said;
}
CudaResult cuModuleGetFunction(CudaFunction* function, CudaModule module, const char* name) {
  HONE_FAKE_ENTER("cuModuleGetFunction")
  if (!g.modules.contains(module)) return kCudaInvalidHandle;
  const fake::KernelLibrary::Kernel kernel = module->kernels->Find(name);
  if (kernel.call == nullptr) return kCudaNotFound;
  std::unique_ptr<CUfunc_st>& made = module->functions[name];
  if (made == nullptr) made = std::make_unique<CUfunc_st>(CUfunc_st{module->kernels.get(), kernel});
  *function = made.get();
  return kCudaSuccess;
}
CudaResult cuFuncSetAttribute(CudaFunction function, int attribute, int value) {
  HONE_FAKE_ENTER("cuFuncSetAttribute")
  if (attribute != kCudaMaxDynamicSharedBytes || value > (227 << 10)) return kCudaInvalidValue;
  function->dynamic_shared = static_cast<unsigned>(value);
  return kCudaSuccess;
}
CudaResult cuMemAlloc_v2(CudaAddress* address, size_t bytes) {
  HONE_FAKE_ENTER("cuMemAlloc_v2")
  if (bytes == 0) return kCudaInvalidValue;
  if (g.used + bytes > g.words.memory) return kCudaOutOfMemory;
  // At the end of its pages, so that a step beyond is one of another page, but for fewer than 512 bytes.
  const size_t aligned = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const size_t pages = (aligned + kPage - 1) / kPage * kPage;
  void* const mapped = mmap(nullptr, pages + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return kCudaOutOfMemory;
  char* const first = static_cast<char*>(mapped) + kPage;
  mprotect(first, pages, PROT_READ | PROT_WRITE);
  std::memset(first, 0xCD, std::min(pages, kMostPoisoned));
  *address = reinterpret_cast<CudaAddress>(first + (pages - aligned));
  g.memory[*address] = {static_cast<char*>(mapped), pages + 2 * kPage, bytes};
  g.used += bytes;
  return kCudaSuccess;
}
CudaResult cuMemFree_v2(CudaAddress address) {
  HONE_FAKE_RELEASE("cuMemFree_v2")
  const auto at = g.memory.find(address);
  if (at == g.memory.end()) return kCudaInvalidValue;
  DrainAll();
  munmap(at->second.mapped, at->second.mapped_bytes);
  g.used -= at->second.bytes;
  g.memory.erase(at);
  return said;
}
CudaResult cuMemcpyHtoDAsync_v2(CudaAddress to, const void* from, size_t bytes, CudaStream stream) {
  HONE_FAKE_ENTER("cuMemcpyHtoDAsync_v2")
  if (!g.streams.contains(stream)) return kCudaInvalidHandle;
  if (!IsMemory(to, bytes)) return kCudaInvalidValue;
  auto staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
  stream->takes().push_back([to, staged] {
    std::memcpy(reinterpret_cast<void*>(to), staged->data(), staged->size());
    return kCudaSuccess;
  });
  return kCudaSuccess;
}
CudaResult cuMemcpyDtoHAsync_v2(void* to, CudaAddress from, size_t bytes, CudaStream stream) {
  HONE_FAKE_ENTER("cuMemcpyDtoHAsync_v2")
  if (!g.streams.contains(stream)) return kCudaInvalidHandle;
  if (!IsMemory(from, bytes)) return kCudaInvalidValue;
  stream->takes().push_back([=] {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return kCudaSuccess;
  });
  return kCudaSuccess;
}
CudaResult cuMemcpyDtoDAsync_v2(CudaAddress to, CudaAddress from, size_t bytes, CudaStream stream) {
  HONE_FAKE_ENTER("cuMemcpyDtoDAsync_v2")
  if (!g.streams.contains(stream)) return kCudaInvalidHandle;
  if (!IsMemory(from, bytes) || !IsMemory(to, bytes)) return kCudaInvalidValue;
  stream->takes().push_back([=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return kCudaSuccess;
  });
  return kCudaSuccess;
}
CudaResult cuStreamCreate(CudaStream* stream, unsigned) {
  HONE_FAKE_ENTER("cuStreamCreate")
  *stream = new CUstream_st;
  g.streams.insert(*stream);
  return kCudaSuccess;
}
CudaResult cuStreamDestroy_v2(CudaStream stream) {
  HONE_FAKE_RELEASE("cuStreamDestroy_v2")
  if (!g.streams.contains(stream)) return kCudaInvalidHandle;
  Drain(stream);
  g.streams.erase(stream);
  delete stream;
  return said;
}
CudaResult cuStreamSynchronize(CudaStream stream) {
  HONE_FAKE_ENTER("cuStreamSynchronize")
  if (!g.streams.contains(stream)) return kCudaInvalidHandle;
  return stream->captures == nullptr ? Drain(stream) : kStreamCaptureUnsupported;
}
CudaResult cuStreamBeginCapture_v2(CudaStream stream, int mode) {
  HONE_FAKE_ENTER("cuStreamBeginCapture_v2")
  if (!g.streams.contains(stream)) return kCudaInvalidHandle;
  if (stream->captures != nullptr || mode < 0 || mode > 2) return kCudaInvalidValue;
  stream->captures = *g.graphs.insert(new CUgraph_st).first;
  return kCudaSuccess;
}
// What was captured goes where an error does not leave it with nobody.
CudaResult cuStreamEndCapture(CudaStream stream, CudaGraph* graph) {
  HONE_FAKE_RELEASE("cuStreamEndCapture")
  if (!g.streams.contains(stream) || stream->captures == nullptr) return kCudaInvalidHandle;
  *graph = std::exchange(stream->captures, nullptr);
  if (said == kCudaSuccess) return said;
  g.graphs.erase(*graph);
  delete std::exchange(*graph, nullptr);
  return said;
}
CudaResult cuGraphInstantiateWithFlags(CudaGraphExec* executable, CudaGraph graph, unsigned long long flags) {
  HONE_FAKE_ENTER("cuGraphInstantiateWithFlags")
  if (!g.graphs.contains(graph)) return kCudaInvalidHandle;
  if (flags != 0) return kCudaInvalidValue;
  *executable = new CUgraphExec_st{graph->work};
  g.executables.insert(*executable);
  return kCudaSuccess;
}
CudaResult cuGraphDestroy(CudaGraph graph) {
  HONE_FAKE_RELEASE("cuGraphDestroy")
  if (g.graphs.erase(graph) == 0) return kCudaInvalidHandle;
  delete graph;
  return said;
}
CudaResult cuGraphLaunch(CudaGraphExec executable, CudaStream stream) {
  HONE_FAKE_ENTER("cuGraphLaunch")
  if (!g.executables.contains(executable) || !g.streams.contains(stream)) return kCudaInvalidHandle;
  const Work work = executable->work;
  stream->takes().insert(stream->takes().end(), work.begin(), work.end());
  return kCudaSuccess;
}
CudaResult cuGraphExecDestroy(CudaGraphExec executable) {
  HONE_FAKE_RELEASE("cuGraphExecDestroy")
  if (g.executables.erase(executable) == 0) return kCudaInvalidHandle;
  delete executable;
  return said;
}
CudaResult cuEventCreate(CudaEvent* event, unsigned) {
  HONE_FAKE_ENTER("cuEventCreate")
  *event = new CUevent_st;
  g.events.insert(*event);
  return kCudaSuccess;
}
CudaResult cuEventDestroy_v2(CudaEvent event) {
  HONE_FAKE_RELEASE("cuEventDestroy_v2")
  if (g.events.erase(event) == 0) return kCudaInvalidHandle;
  delete event;
  return said;
}
CudaResult cuEventRecord(CudaEvent event, CudaStream stream) {
  HONE_FAKE_ENTER("cuEventRecord")
  if (!g.events.contains(event) || !g.streams.contains(stream)) return kCudaInvalidHandle;
  event->recorded = true;
  event->done = false;
  stream->takes().push_back([event] {
    event->done = true;
    event->us = NowUs();
    return kCudaSuccess;
  });
  return kCudaSuccess;
}
CudaResult cuEventElapsedTime(float* milliseconds, CudaEvent start, CudaEvent end) {
  HONE_FAKE_ENTER("cuEventElapsedTime")
  if (!g.events.contains(start) || !g.events.contains(end)) return kCudaInvalidHandle;
  if (!start->recorded || !end->recorded) return kCudaInvalidHandle;
  constexpr CudaResult kNotReady = 600;
  if (!start->done || !end->done) return kNotReady;
  *milliseconds = static_cast<float>((end->us - start->us) * 1e-3);
  return kCudaSuccess;
}
CudaResult cuLaunchKernel(CudaFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, CudaStream stream,
                          void** arguments, void** extra) {
  HONE_FAKE_ENTER("cuLaunchKernel")
  if (!g.streams.contains(stream)) return kCudaInvalidHandle;
  const std::array<unsigned, 3> grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
  const bool fits = grid_x > 0 && grid_x < (1u << 31) && grid_y > 0 && grid_y < 65536 && grid_z > 0 && grid_z < 65536 &&
                    block_x > 0 && block_y > 0 && block_z > 0 && size_t{block_x} * block_y * block_z <= 1024 &&
                    block_z <= 64 && shared_bytes <= function->dynamic_shared && extra == nullptr;
  if (!fits) return kCudaInvalidValue;
  // Their values are taken at once; kernels take pointers alone.
  auto values = std::make_shared<std::vector<CudaAddress>>();
  for (int i = 0; i < function->kernel.arguments; ++i) values->push_back(*static_cast<CudaAddress*>(arguments[i]));
  stream->takes().push_back([=] {
    std::vector<void*> pointers;
    for (CudaAddress& value : *values) pointers.push_back(&value);
    const bool ran = function->kernels->Run(function->kernel.call, grid, block, shared_bytes, pointers.data());
    return ran ? kCudaSuccess : static_cast<CudaResult>(kCudaIllegalAddress);
  });
  return kCudaSuccess;
}

void hone_fake_cuda_reset(const char* words) {
  const std::lock_guard<std::recursive_mutex> guard(g.mutex);
  g.words = ParseWords(words);
  g.lost = kCudaSuccess;
  g.retained = 0;
  for (const auto& [address, allocation] : g.memory) munmap(allocation.mapped, allocation.mapped_bytes);
  g.memory.clear();
  g.used = 0;
  for (const CudaModule module : g.modules) delete module;
  g.modules.clear();
  for (const CudaStream stream : g.streams) delete stream;
  g.streams.clear();
  for (const CudaEvent event : g.events) delete event;
  g.events.clear();
  for (const CudaGraph graph : g.graphs) delete graph;
  g.graphs.clear();
  for (const CudaGraphExec executable : g.executables) delete executable;
  g.executables.clear();
  g.counts.clear();
  g.calls.clear();
}
int hone_fake_cuda_live() {
  return g.retained + static_cast<int>(g.memory.size() + g.modules.size() + g.streams.size() + g.events.size() +
                                       g.graphs.size() + g.executables.size());
}
const char* hone_fake_cuda_calls() { return g.calls.c_str(); }
int hone_fake_cuda_count(const char* entry) { return g.counts[entry]; }

}  // extern "C"
