#include "deploy/runtime/devices/cuda_device.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "deploy/runtime/devices/cuda_driver.h"

namespace hone {
namespace {

int64_t Attribute(const CudaDriver& driver, int attribute, CudaOrdinal device) {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, attribute, device) == kCudaSuccess ? value : 0;
}

DeviceFacts FactsOf(const CudaDriver& driver, CudaOrdinal device) {
  DeviceFacts facts;
  const auto number = [&](int attribute) { return Attribute(driver, attribute, device); };
  char name[256] = "";
  if (driver.cuDeviceGetName(name, sizeof(name), device) == kCudaSuccess) facts.name = name;
  facts.vendor = "NVIDIA Corporation";
  int version = 0;
  driver.cuDriverGetVersion(&version);
  facts.version = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  facts.architecture =
      "sm_" + std::to_string(number(kCudaCapabilityMajor)) + std::to_string(number(kCudaCapabilityMinor));
  size_t bytes = 0;
  if (driver.cuDeviceTotalMem_v2(&bytes, device) == kCudaSuccess) facts.global_bytes = static_cast<int64_t>(bytes);
  facts.compute_units = number(kCudaMultiprocessorCount);
  facts.clock_mhz = number(kCudaClockRate) / 1000;
  facts.local_bytes = number(kCudaMaxSharedMemoryPerBlockOptin);
  facts.cache_bytes = number(kCudaL2CacheSize);
  facts.most_threads = number(kCudaMaxThreadsPerBlock);
  facts.lanes = number(kCudaWarpSize);
  facts.resident_threads = number(kCudaMaxThreadsPerMultiprocessor);
  facts.resident_local_bytes = number(kCudaMaxSharedMemoryPerMultiprocessor);
  facts.registers = number(kCudaMaxRegistersPerMultiprocessor);
  return facts;
}

RuntimeResult<int> Count(const CudaDriver& driver) {
  int count = 0;
  const CudaResult result = driver.cuDeviceGetCount(&count);
  if (result == kCudaSuccess && count > 0) return count;
  return RuntimeError(RuntimeCode::kUnsupported,
                      result == kCudaSuccess ? "the CUDA driver has no device (CUDA_VISIBLE_DEVICES may hide it)"
                                             : "cuDeviceGetCount returned " + driver.TextOf(result));
}

// "sm_90a": 9, 0 and the letter.
struct Architecture {
  int generation = 0, version = 0;
  std::string_view letter;
};
Architecture Parse(std::string_view text) {
  int number = 0;
  const size_t at = text.find('_') + 1;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return {number / 10, number % 10, text.substr(static_cast<size_t>(end - text.data()))};
}

}  // namespace

struct CudaDevice::State {
  const CudaDriver* driver = nullptr;
  CudaOrdinal device = 0;
  DeviceFacts facts;
  CudaContext context = nullptr;
  CudaStream stream = nullptr;
  bool with_clock = false, clock_runs = false;
  bool launched = false;          // in this lap
  std::vector<CudaEvent> events;  // made as they are needed: what begins the first lap, and what ends each
  size_t recorded = 0;            // of them, since the clock was started
  struct Function {
    CudaFunction handle = nullptr;
    int64_t shared_bytes = 0;  // that its launches may ask for beyond the usual limit
  };
  std::vector<CudaModule> modules;
  std::map<std::string, Function> functions;  // of the modules, those that were started
  std::vector<CudaAddress> allocated;         // what buffers begin at; parts have none of their own
  struct Buffer {
    CudaAddress address = 0;
    int64_t bytes = 0;
  };
  std::vector<Buffer> buffers;  // and parts
  CudaGraphExec sequence = nullptr;
  RuntimeError lost;

  // The context is the calling thread's while this lives, and what was the thread's before is so again afterwards.
  class Entered {
   public:
    explicit Entered(const State& state)
        : driver_(*state.driver),
          entered_(state.context != nullptr && driver_.cuCtxPushCurrent_v2(state.context) == kCudaSuccess) {}
    ~Entered() {
      CudaContext popped = nullptr;
      if (entered_) driver_.cuCtxPopCurrent_v2(&popped);
    }
    Entered(const Entered&) = delete;

   private:
    const CudaDriver& driver_;
    const bool entered_;
  };

  ~State() {
    {
      const Entered entered(*this);
      if (stream != nullptr) driver->cuStreamSynchronize(stream);
      DropModules();
      DropBuffers();
      for (const CudaEvent event : events) driver->cuEventDestroy_v2(event);
      if (stream != nullptr) driver->cuStreamDestroy_v2(stream);
    }
    if (context != nullptr) driver->cuDevicePrimaryCtxRelease_v2(device);
  }
  void DropSequence() {
    if (sequence != nullptr) driver->cuGraphExecDestroy(std::exchange(sequence, nullptr));
  }
  void DropModules() {
    DropSequence();
    functions.clear();
    for (const CudaModule module : modules) driver->cuModuleUnload(module);
    modules.clear();
  }
  void DropBuffers() {
    DropSequence();
    for (const CudaAddress address : allocated) driver->cuMemFree_v2(address);
    allocated.clear();
    buffers.clear();
  }
  // What a call that did not succeed comes to.
  RuntimeError Failed(RuntimeCode code, const char* entry, CudaResult result) {
    const std::string text = std::string(entry) + " returned " + driver->TextOf(result);
    if (!CudaDeviceIsLost(result))
      return RuntimeError(result == kCudaOutOfMemory ? RuntimeCode::kOutOfMemory : code, text);
    lost =
        RuntimeError(RuntimeCode::kDeviceLost,
                     text + ": " + facts.name + " takes no more work of this process, which has to be started again");
    return lost;
  }
  RuntimeError Checked(RuntimeCode code, const char* entry, CudaResult result) {
    return result == kCudaSuccess ? RuntimeError() : Failed(code, entry, result);
  }
  RuntimeError Open(bool with_clock) {
    CudaResult result = driver->cuDevicePrimaryCtxRetain(&context, device);
    if (result != kCudaSuccess) {
      context = nullptr;
      const RuntimeError error = Failed(RuntimeCode::kDeviceLost, "cuDevicePrimaryCtxRetain", result);
      return error.Annotate("device " + std::to_string(device) + ", " + facts.name + ", cannot be opened");
    }
    const Entered entered(*this);
    result = driver->cuStreamCreate(&stream, kCudaNonBlocking);
    if (result != kCudaSuccess) return Failed(RuntimeCode::kInternal, "cuStreamCreate", result);
    this->with_clock = with_clock;
    return {};
  }
  RuntimeError Record() {
    if (recorded == events.size()) {
      CudaEvent event = nullptr;
      const CudaResult result = driver->cuEventCreate(&event, 0);
      if (result != kCudaSuccess) return Failed(RuntimeCode::kInternal, "cuEventCreate", result);
      events.push_back(event);
    }
    return Checked(RuntimeCode::kKernelFailed, "cuEventRecord", driver->cuEventRecord(events[recorded++], stream));
  }
  RuntimeError AddModule(const std::string& code) {
    CudaModule module = nullptr;
    const CudaResult result = driver->cuModuleLoadData(&module, code.c_str());
    if (result == kCudaSuccess) {
      modules.push_back(module);
      return {};
    }
    const bool refused = result == kCudaInvalidImage || result == kCudaNoBinaryForGpu || result == kCudaInvalidPtx ||
                         result == kCudaUnsupportedPtxVersion;
    const RuntimeError error =
        Failed(refused ? RuntimeCode::kInvalidArgument : RuntimeCode::kInternal, "cuModuleLoadData", result);
    return refused ? error.Annotate(facts.name + " (" + facts.architecture + ", driver of " + facts.version +
                                    ") refused the kernels")
                   : error;
  }
  RuntimeResult<CudaFunction> FindFunction(const Launch& launch) {
    Function& function = functions[launch.kernel];
    CudaResult result = function.handle == nullptr ? kCudaNotFound : kCudaSuccess;
    for (size_t i = 0; result == kCudaNotFound && i < modules.size(); ++i)
      result = driver->cuModuleGetFunction(&function.handle, modules[i], launch.kernel.c_str());
    if (result == kCudaNotFound)
      return RuntimeError(RuntimeCode::kInvalidArgument, "the program has no kernel " + launch.kernel);
    if (result != kCudaSuccess)
      return Failed(RuntimeCode::kInternal, "cuModuleGetFunction", result).Annotate(launch.kernel);
    if (launch.shared_bytes <= function.shared_bytes) return function.handle;
    result =
        driver->cuFuncSetAttribute(function.handle, kCudaMaxDynamicSharedBytes, static_cast<int>(launch.shared_bytes));
    if (result != kCudaSuccess) {
      return Failed(RuntimeCode::kKernelFailed, "cuFuncSetAttribute", result)
          .Annotate(launch.kernel + ", " + std::to_string(launch.shared_bytes) + " bytes of shared memory");
    }
    function.shared_bytes = launch.shared_bytes;
    return function.handle;
  }
  RuntimeError AddBuffer(int64_t size) {
    CudaAddress address = 0;
    const CudaResult result = driver->cuMemAlloc_v2(&address, static_cast<size_t>(std::max<int64_t>(size, 1)));
    if (result != kCudaSuccess) {
      return Failed(RuntimeCode::kInternal, "cuMemAlloc", result)
          .Annotate("no memory for " + std::to_string(size) + " bytes on " + facts.name);
    }
    allocated.push_back(address);
    buffers.push_back({address, size});
    return {};
  }
  RuntimeError CheckFits(size_t buffer, int64_t size) const {
    if (buffer < buffers.size() && size <= buffers[buffer].bytes) return {};
    const std::string name = "buffer " + std::to_string(buffer);
    return RuntimeError(
        RuntimeCode::kInvalidArgument,
        buffer < buffers.size()
            ? name + " has " + std::to_string(buffers[buffer].bytes) + " bytes, not " + std::to_string(size)
            : "there is no " + name + "; Allocate made " + std::to_string(buffers.size()));
  }
  CudaAddress At(size_t buffer, int64_t offset) const {
    return buffers[buffer].address + static_cast<CudaAddress>(offset);
  }
};

CudaDevice::CudaDevice(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudaDevice::~CudaDevice() = default;
const DeviceFacts& CudaDevice::facts() const { return state_->facts; }

bool CudaDevice::Runs(std::string_view architecture, std::string_view code) {
  const Architecture has = Parse(architecture), wants = Parse(code);
  if (has.generation != wants.generation) return false;
  return wants.letter.empty() ? wants.version <= has.version : wants.version == has.version;
}

RuntimeResult<std::vector<DeviceFacts>> CudaDevice::List() {
  const RuntimeResult<const CudaDriver*> driver = CudaDriver::Load();
  if (!driver.ok()) return driver.error();
  const RuntimeResult<int> count = Count(**driver);
  if (!count.ok()) return count.error();
  std::vector<DeviceFacts> facts;
  for (int i = 0; i < *count; ++i) {
    CudaOrdinal device = 0;
    if (const CudaResult result = (*driver)->cuDeviceGet(&device, i); result != kCudaSuccess)
      return RuntimeError(RuntimeCode::kInternal, "cuDeviceGet returned " + (*driver)->TextOf(result));
    facts.push_back(FactsOf(**driver, device));
  }
  return facts;
}

RuntimeResult<std::unique_ptr<Device>> CudaDevice::Open(size_t index, bool with_clock) {
  const RuntimeResult<const CudaDriver*> driver = CudaDriver::Load();
  if (!driver.ok()) return driver.error();
  const RuntimeResult<int> count = Count(**driver);
  if (!count.ok()) return count.error();
  if (index >= static_cast<size_t>(*count)) {
    return RuntimeError(RuntimeCode::kNotFound, "there is no CUDA device " + std::to_string(index) + ", only " +
                                                    std::to_string(*count) + ", counted from 0");
  }
  auto state = std::make_unique<State>();
  state->driver = *driver;
  if (const CudaResult result = (*driver)->cuDeviceGet(&state->device, static_cast<int>(index)); result != kCudaSuccess)
    return RuntimeError(RuntimeCode::kInternal, "cuDeviceGet returned " + (*driver)->TextOf(result));
  state->facts = FactsOf(**driver, state->device);
  if (RuntimeError error = state->Open(with_clock)) return error;
  return std::unique_ptr<Device>(new CudaDevice(std::move(state)));
}

RuntimeError CudaDevice::Build(std::span<const std::string> code) {
  if (state_->lost) return state_->lost;
  const State::Entered entered(*state_);
  state_->DropModules();
  for (const std::string& program : code) {
    if (RuntimeError error = state_->AddModule(program)) return error;
  }
  return {};
}

RuntimeError CudaDevice::Allocate(std::span<const int64_t> bytes, std::span<const Part> parts) {
  if (state_->lost) return state_->lost;
  const State::Entered entered(*state_);
  state_->DropBuffers();
  for (const int64_t size : bytes) {
    if (RuntimeError error = state_->AddBuffer(size)) return error;
  }
  for (const Part& part : parts) {
    if (RuntimeError error = state_->CheckFits(part.of, part.offset + part.bytes)) return error;
    state_->buffers.push_back({state_->At(part.of, part.offset), part.bytes});
  }
  return {};
}

RuntimeError CudaDevice::Write(size_t buffer, const void* from, int64_t bytes, int64_t offset) {
  if (state_->lost) return state_->lost;
  if (RuntimeError error = state_->CheckFits(buffer, offset + bytes)) return error;
  if (bytes == 0) return {};
  const State::Entered entered(*state_);
  const CudaResult result = state_->driver->cuMemcpyHtoDAsync_v2(state_->At(buffer, offset), from,
                                                                 static_cast<size_t>(bytes), state_->stream);
  if (result != kCudaSuccess) return state_->Failed(RuntimeCode::kInternal, "cuMemcpyHtoDAsync", result);
  return Finish();  // the caller's memory is its own again
}

RuntimeError CudaDevice::Read(size_t buffer, void* to, int64_t bytes, int64_t offset) {
  if (state_->lost) return state_->lost;
  if (RuntimeError error = state_->CheckFits(buffer, offset + bytes)) return error;
  if (bytes == 0) return {};
  const State::Entered entered(*state_);
  const CudaResult result =
      state_->driver->cuMemcpyDtoHAsync_v2(to, state_->At(buffer, offset), static_cast<size_t>(bytes), state_->stream);
  if (result != kCudaSuccess) return state_->Failed(RuntimeCode::kKernelFailed, "cuMemcpyDtoHAsync", result);
  return Finish();
}

RuntimeError CudaDevice::Copy(size_t from, size_t to, int64_t bytes, int64_t from_offset, int64_t to_offset) {
  if (state_->lost) return state_->lost;
  if (RuntimeError error = state_->CheckFits(from, from_offset + bytes)) return error;
  if (RuntimeError error = state_->CheckFits(to, to_offset + bytes)) return error;
  if (bytes == 0) return {};
  const State::Entered entered(*state_);
  return state_->Checked(RuntimeCode::kKernelFailed, "cuMemcpyDtoDAsync",
                         state_->driver->cuMemcpyDtoDAsync_v2(state_->At(to, to_offset), state_->At(from, from_offset),
                                                              static_cast<size_t>(bytes), state_->stream));
}

RuntimeError CudaDevice::Start(const Launch& launch) {
  if (state_->lost) return state_->lost;
  std::vector<CudaAddress> addresses;
  for (const size_t buffer : launch.buffers) {
    if (RuntimeError missing = state_->CheckFits(buffer, 0)) return missing.Annotate(launch.kernel);
    addresses.push_back(state_->At(buffer, 0));
  }
  std::vector<void*> arguments;
  for (CudaAddress& address : addresses) arguments.push_back(&address);
  unsigned grid[3], block[3];
  for (size_t axis = 0; axis < 3; ++axis) {
    grid[axis] = static_cast<unsigned>(launch.grid[axis]);
    block[axis] = static_cast<unsigned>(launch.block[axis]);
  }
  const State::Entered entered(*state_);
  const RuntimeResult<CudaFunction> function = state_->FindFunction(launch);
  if (!function.ok()) return function.error();
  const CudaDriver& driver = *state_->driver;
  state_->launched = true;
  if (state_->clock_runs && state_->recorded == 0) {
    if (RuntimeError error = state_->Record()) return error;
  }
  return state_
      ->Checked(
          RuntimeCode::kKernelFailed, "cuLaunchKernel",
          driver.cuLaunchKernel(*function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                static_cast<unsigned>(launch.shared_bytes), state_->stream, arguments.data(), nullptr))
      .Annotate(launch.kernel);
}

RuntimeError CudaDevice::Finish() {
  if (state_->lost) return state_->lost;
  const State::Entered entered(*state_);
  return state_->Checked(RuntimeCode::kKernelFailed, "cuStreamSynchronize",
                         state_->driver->cuStreamSynchronize(state_->stream));
}

RuntimeError CudaDevice::KeepSequence(const std::function<RuntimeError()>& work) {
  if (state_->lost) return state_->lost;
  const State::Entered entered(*state_);
  state_->DropSequence();
  const CudaDriver& driver = *state_->driver;
  CudaResult result = driver.cuStreamBeginCapture_v2(state_->stream, kCudaCaptureThreadLocal);
  if (result != kCudaSuccess) return state_->Failed(RuntimeCode::kInternal, "cuStreamBeginCapture", result);
  const RuntimeError error = work();
  CudaGraph graph = nullptr;
  result = driver.cuStreamEndCapture(state_->stream, &graph);  // always: until then the stream runs nothing
  RuntimeError kept = error;
  if (kept.ok()) kept = state_->Checked(RuntimeCode::kInternal, "cuStreamEndCapture", result);
  if (kept.ok()) {
    result = driver.cuGraphInstantiateWithFlags(&state_->sequence, graph, 0);
    kept = state_->Checked(RuntimeCode::kInternal, "cuGraphInstantiateWithFlags", result);
    if (kept) state_->sequence = nullptr;
  }
  if (graph != nullptr) driver.cuGraphDestroy(graph);
  return kept;
}

RuntimeError CudaDevice::StartSequence() {
  if (state_->lost) return state_->lost;
  if (state_->sequence == nullptr) return RuntimeError(RuntimeCode::kInternal, "no sequence is kept");
  const State::Entered entered(*state_);
  return state_->Checked(RuntimeCode::kKernelFailed, "cuGraphLaunch",
                         state_->driver->cuGraphLaunch(state_->sequence, state_->stream));
}

void CudaDevice::StartClock() {
  state_->clock_runs = state_->with_clock;
  state_->launched = false;
  state_->recorded = 0;
}

RuntimeError CudaDevice::EndLap() {
  if (state_->lost) return state_->lost;
  if (!state_->clock_runs || !std::exchange(state_->launched, false))
    return RuntimeError(RuntimeCode::kInternal, "nothing was launched under the clock");
  const State::Entered entered(*state_);
  return state_->Record();
}

RuntimeResult<std::vector<double>> CudaDevice::StopClock() {
  if (state_->lost) return state_->lost;
  const bool in_lap = state_->launched || state_->recorded == 0;
  const RuntimeError ended = in_lap ? EndLap() : RuntimeError();
  state_->clock_runs = false;
  if (ended) return ended;
  if (RuntimeError error = Finish()) return error;
  const State::Entered entered(*state_);
  std::vector<double> laps;
  for (size_t i = 1; i < state_->recorded; ++i) {
    float milliseconds = 0;
    const CudaResult told = state_->driver->cuEventElapsedTime(&milliseconds, state_->events[i - 1], state_->events[i]);
    if (told != kCudaSuccess) return state_->Failed(RuntimeCode::kKernelFailed, "cuEventElapsedTime", told);
    laps.push_back(static_cast<double>(milliseconds) * 1e3);
  }
  return laps;
}

}  // namespace hone
