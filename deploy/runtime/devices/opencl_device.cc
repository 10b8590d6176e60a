#include "deploy/runtime/devices/opencl_device.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <utility>

namespace hone {
namespace {

// The functions of the loader that are used.
struct Api {
// clang-format off
#define HONE_OPENCL_FUNCTIONS(X) \
  X(clGetPlatformIDs) X(clGetDeviceIDs) X(clGetDeviceInfo) \
  X(clCreateContext) X(clReleaseContext) X(clCreateCommandQueue) \
  X(clReleaseCommandQueue) X(clCreateProgramWithSource) X(clBuildProgram) \
  X(clGetProgramBuildInfo) X(clReleaseProgram) X(clCreateKernel) \
  X(clReleaseKernel) X(clSetKernelArg) X(clCreateBuffer) \
  X(clReleaseMemObject) X(clEnqueueWriteBuffer) X(clEnqueueReadBuffer) \
  X(clEnqueueNDRangeKernel) X(clFinish) X(clCreateSubBuffer) X(clEnqueueCopyBuffer) \
  X(clGetEventProfilingInfo) X(clReleaseEvent)
// clang-format on
#define HONE_DECLARE(name) decltype(&::name) name = nullptr;
  HONE_OPENCL_FUNCTIONS(HONE_DECLARE)
#undef HONE_DECLARE
};

RuntimeError Unsupported(const std::string& what) {
  return RuntimeError(RuntimeCode::kUnsupported,
                      what + "; install the device's OpenCL driver, or pocl-opencl-icd for one that runs on CPUs");
}

RuntimeResult<const Api*> LoadApi() {
  static const RuntimeResult<const Api*> loaded = []() -> RuntimeResult<const Api*> {
    void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      return Unsupported("the OpenCL loader libOpenCL.so.1 is not installed (package ocl-icd-libopencl1)");
    static Api api;
#define HONE_LOOK_UP(name)                                                \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name)); \
  if (api.name == nullptr) return Unsupported("libOpenCL.so.1 has no " #name);
    HONE_OPENCL_FUNCTIONS(HONE_LOOK_UP)
#undef HONE_LOOK_UP
    return &api;
  }();
  return loaded;
}

RuntimeError Failed(RuntimeCode code, const char* function, cl_int error) {
  return RuntimeError(code, std::string(function) + " returned " + std::to_string(error));
}

RuntimeResult<std::vector<cl_device_id>> Devices(const Api& api) {
  cl_uint count = 0;
  if (api.clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0)
    return Unsupported("there is no OpenCL driver");
  std::vector<cl_platform_id> platforms(count);
  if (const cl_int error = api.clGetPlatformIDs(count, platforms.data(), nullptr); error != CL_SUCCESS)
    return Failed(RuntimeCode::kInternal, "clGetPlatformIDs", error);
  std::vector<cl_device_id> all;
  for (const cl_platform_id platform : platforms) {
    cl_uint devices = 0;
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) != CL_SUCCESS) continue;  // it has none
    const size_t first = all.size();
    all.resize(first + devices);
    if (const cl_int error = api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, &all[first], nullptr);
        error != CL_SUCCESS)
      return Failed(RuntimeCode::kInternal, "clGetDeviceIDs", error);
  }
  if (all.empty()) return Unsupported("no OpenCL driver has a device");
  return all;
}

template <class T>
int64_t Number(const Api& api, cl_device_id device, cl_device_info what) {
  T value = 0;
  return api.clGetDeviceInfo(device, what, sizeof(value), &value, nullptr) == CL_SUCCESS ? static_cast<int64_t>(value)
                                                                                         : 0;
}
std::string Words(const Api& api, cl_device_id device, cl_device_info what) {
  char text[1024] = "";
  size_t bytes = 0;
  if (api.clGetDeviceInfo(device, what, sizeof(text), text, &bytes) != CL_SUCCESS || bytes == 0) return "";
  return std::string(text, bytes - 1);
}

DeviceFacts FactsOf(const Api& api, cl_device_id device) {
  DeviceFacts facts;
  facts.name = Words(api, device, CL_DEVICE_NAME);
  facts.vendor = Words(api, device, CL_DEVICE_VENDOR);
  facts.version = Words(api, device, CL_DEVICE_VERSION);
  facts.is_cpu = (Number<cl_device_type>(api, device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  facts.compute_units = Number<cl_uint>(api, device, CL_DEVICE_MAX_COMPUTE_UNITS);
  facts.clock_mhz = Number<cl_uint>(api, device, CL_DEVICE_MAX_CLOCK_FREQUENCY);
  facts.global_bytes = Number<cl_ulong>(api, device, CL_DEVICE_GLOBAL_MEM_SIZE);
  facts.local_bytes = Number<cl_ulong>(api, device, CL_DEVICE_LOCAL_MEM_SIZE);
  facts.cache_bytes = Number<cl_ulong>(api, device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  facts.most_threads = Number<size_t>(api, device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  return facts;
}

}  // namespace

struct OpenClDevice::State {
  const Api* api = nullptr;
  cl_device_id device = nullptr;
  DeviceFacts facts;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  std::vector<cl_program> programs;
  std::map<std::string, cl_kernel> kernels;  // of the programs, those that were started
  std::vector<cl_mem> buffers;
  std::vector<int64_t> bytes;  // of each
  bool with_clock = false, clock_runs = false;
  struct Lap {
    cl_event first = nullptr, last = nullptr;  // of its launches; no last one where there is one
  };
  Lap lap;  // the one that runs
  std::vector<Lap> laps;

  ~State() {
    if (queue != nullptr) api->clFinish(queue);
    DropEvents();
    DropPrograms();
    DropBuffers();
    if (queue != nullptr) api->clReleaseCommandQueue(queue);
    if (context != nullptr) api->clReleaseContext(context);
  }
  // Of a launch while the clock runs; null otherwise.
  void NoteLaunch(cl_event event) {
    if (event == nullptr) return;
    if (lap.first == nullptr) {
      lap.first = event;
      return;
    }
    if (lap.last != nullptr) api->clReleaseEvent(lap.last);
    lap.last = event;
  }
  void DropEvents() {
    laps.push_back(std::exchange(lap, {}));
    for (const Lap& over : laps) {
      for (const cl_event event : {over.first, over.last}) {
        if (event != nullptr) api->clReleaseEvent(event);
      }
    }
    laps.clear();
  }
  void DropPrograms() {
    for (const auto& [name, kernel] : kernels) api->clReleaseKernel(kernel);
    kernels.clear();
    for (const cl_program program : programs) api->clReleaseProgram(program);
    programs.clear();
  }
  void DropBuffers() {
    while (!buffers.empty()) {  // parts before what they are of
      api->clReleaseMemObject(buffers.back());
      buffers.pop_back();
    }
    bytes.clear();
  }
  std::string BuildLog(cl_program program) const {
    size_t length = 0;
    api->clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &length);
    std::string log(length, '\0');
    api->clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, length, log.data(), nullptr);
    while (!log.empty() && log.back() == '\0') log.pop_back();
    return log;
  }
  RuntimeError AddProgram(const std::string& source) {
    const char* text = source.c_str();
    const size_t length = source.size();
    cl_int error = CL_SUCCESS;
    const cl_program program = api->clCreateProgramWithSource(context, 1, &text, &length, &error);
    if (error != CL_SUCCESS) return Failed(RuntimeCode::kInternal, "clCreateProgramWithSource", error);
    programs.push_back(program);
    const bool optimize = facts.version.find("PoCL") == std::string::npos || source.find("barrier(") == source.npos;
    const char* const options = optimize ? "-cl-std=CL1.2" : "-cl-std=CL1.2 -cl-opt-disable";
    error = api->clBuildProgram(program, 1, &device, options, nullptr, nullptr);
    if (error == CL_SUCCESS) return {};
    return RuntimeError(RuntimeCode::kInvalidArgument,
                        "the OpenCL compiler of " + facts.name + " refused the kernels:\n" + BuildLog(program));
  }
  // Null where no program has it.
  cl_kernel FindKernel(const std::string& name) {
    cl_kernel& kernel = kernels[name];
    for (size_t i = 0; kernel == nullptr && i < programs.size(); ++i) {
      cl_int error = CL_SUCCESS;
      kernel = api->clCreateKernel(programs[i], name.c_str(), &error);
    }
    return kernel;
  }
  RuntimeError AddBuffer(int64_t size) {
    cl_int error = CL_SUCCESS;
    const cl_mem buffer = api->clCreateBuffer(context, CL_MEM_READ_WRITE,
                                              static_cast<size_t>(std::max<int64_t>(size, 1)), nullptr, &error);
    if (error != CL_SUCCESS) {
      return Failed(RuntimeCode::kOutOfMemory, "clCreateBuffer", error)
          .Annotate("no memory for " + std::to_string(size) + " bytes on " + facts.name);
    }
    buffers.push_back(buffer);
    bytes.push_back(size);
    return {};
  }
  RuntimeError AddPart(const Part& part) {
    if (RuntimeError missing = CheckFits(part.of, part.offset + part.bytes)) return missing;
    cl_int error = CL_SUCCESS;
    const cl_buffer_region region{static_cast<size_t>(part.offset),
                                  static_cast<size_t>(std::max<int64_t>(part.bytes, 1))};
    const cl_mem buffer =
        api->clCreateSubBuffer(buffers[part.of], CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    if (error == CL_MISALIGNED_SUB_BUFFER_OFFSET) {
      return RuntimeError(RuntimeCode::kUnsupported, facts.name + " wants parts of buffers at multiples of more than " +
                                                         std::to_string(kPartAlignment) + " bytes");
    }
    if (error != CL_SUCCESS) return Failed(RuntimeCode::kInternal, "clCreateSubBuffer", error);
    buffers.push_back(buffer);
    bytes.push_back(part.bytes);
    return {};
  }
  RuntimeError CheckFits(size_t buffer, int64_t size) const {
    if (buffer < buffers.size() && size <= bytes[buffer]) return {};
    const std::string name = "buffer " + std::to_string(buffer);
    return RuntimeError(RuntimeCode::kInvalidArgument,
                        buffer < buffers.size()
                            ? name + " has " + std::to_string(bytes[buffer]) + " bytes, not " + std::to_string(size)
                            : "there is no " + name + "; Allocate made " + std::to_string(buffers.size()));
  }
};

OpenClDevice::OpenClDevice(std::unique_ptr<State> state) : state_(std::move(state)) {}
OpenClDevice::~OpenClDevice() = default;
const DeviceFacts& OpenClDevice::facts() const { return state_->facts; }

RuntimeResult<std::vector<DeviceFacts>> OpenClDevice::List() {
  const RuntimeResult<const Api*> api = LoadApi();
  if (!api.ok()) return api.error();
  const RuntimeResult<std::vector<cl_device_id>> devices = Devices(**api);
  if (!devices.ok()) return devices.error();
  std::vector<DeviceFacts> facts;
  for (const cl_device_id device : *devices) facts.push_back(FactsOf(**api, device));
  return facts;
}

RuntimeResult<std::unique_ptr<Device>> OpenClDevice::Open(size_t index, bool with_clock) {
  const RuntimeResult<const Api*> api = LoadApi();
  if (!api.ok()) return api.error();
  const RuntimeResult<std::vector<cl_device_id>> devices = Devices(**api);
  if (!devices.ok()) return devices.error();
  if (index >= devices->size()) {
    return RuntimeError(RuntimeCode::kNotFound, "there is no OpenCL device " + std::to_string(index) + ", only " +
                                                    std::to_string(devices->size()) + ", counted from 0");
  }
  auto state = std::make_unique<State>();
  state->api = *api;
  state->device = (*devices)[index];
  state->facts = FactsOf(**api, state->device);
  state->with_clock = with_clock;
  cl_int error = CL_SUCCESS;
  state->context = state->api->clCreateContext(nullptr, 1, &state->device, nullptr, nullptr, &error);
  if (error != CL_SUCCESS) return Failed(RuntimeCode::kInternal, "clCreateContext", error);
  state->queue = state->api->clCreateCommandQueue(
      state->context, state->device, with_clock ? CL_QUEUE_PROFILING_ENABLE : cl_command_queue_properties{0}, &error);
  if (error != CL_SUCCESS) return Failed(RuntimeCode::kInternal, "clCreateCommandQueue", error);
  return std::unique_ptr<Device>(new OpenClDevice(std::move(state)));
}

RuntimeError OpenClDevice::Build(std::span<const std::string> code) {
  state_->DropPrograms();
  for (const std::string& source : code) {
    if (RuntimeError error = state_->AddProgram(source)) return error;
  }
  return {};
}

RuntimeError OpenClDevice::Allocate(std::span<const int64_t> bytes, std::span<const Part> parts) {
  state_->DropBuffers();
  for (const int64_t size : bytes) {
    if (RuntimeError error = state_->AddBuffer(size)) return error;
  }
  for (const Part& part : parts) {
    if (RuntimeError error = state_->AddPart(part)) return error;
  }
  return {};
}

RuntimeError OpenClDevice::Write(size_t buffer, const void* from, int64_t bytes, int64_t offset) {
  if (RuntimeError error = state_->CheckFits(buffer, offset + bytes)) return error;
  if (bytes == 0) return {};
  const cl_int error =
      state_->api->clEnqueueWriteBuffer(state_->queue, state_->buffers[buffer], CL_TRUE, static_cast<size_t>(offset),
                                        static_cast<size_t>(bytes), from, 0, nullptr, nullptr);
  return error == CL_SUCCESS ? RuntimeError() : Failed(RuntimeCode::kInternal, "clEnqueueWriteBuffer", error);
}

RuntimeError OpenClDevice::Read(size_t buffer, void* to, int64_t bytes, int64_t offset) {
  if (RuntimeError error = state_->CheckFits(buffer, offset + bytes)) return error;
  if (bytes == 0) return {};
  const cl_int error =
      state_->api->clEnqueueReadBuffer(state_->queue, state_->buffers[buffer], CL_TRUE, static_cast<size_t>(offset),
                                       static_cast<size_t>(bytes), to, 0, nullptr, nullptr);
  return error == CL_SUCCESS ? RuntimeError() : Failed(RuntimeCode::kKernelFailed, "clEnqueueReadBuffer", error);
}

RuntimeError OpenClDevice::Copy(size_t from, size_t to, int64_t bytes, int64_t from_offset, int64_t to_offset) {
  if (RuntimeError error = state_->CheckFits(from, from_offset + bytes)) return error;
  if (RuntimeError error = state_->CheckFits(to, to_offset + bytes)) return error;
  if (bytes == 0) return {};
  const cl_int error = state_->api->clEnqueueCopyBuffer(
      state_->queue, state_->buffers[from], state_->buffers[to], static_cast<size_t>(from_offset),
      static_cast<size_t>(to_offset), static_cast<size_t>(bytes), 0, nullptr, nullptr);
  return error == CL_SUCCESS ? RuntimeError() : Failed(RuntimeCode::kKernelFailed, "clEnqueueCopyBuffer", error);
}

RuntimeError OpenClDevice::Start(const Launch& launch) {
  const Api& api = *state_->api;
  cl_int error = CL_SUCCESS;
  const cl_kernel kernel = state_->FindKernel(launch.kernel);
  if (kernel == nullptr) {
    return RuntimeError(RuntimeCode::kInvalidArgument, "the program has no kernel " + launch.kernel);
  }
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    if (RuntimeError missing = state_->CheckFits(launch.buffers[i], 0)) return missing.Annotate(launch.kernel);
    error = api.clSetKernelArg(kernel, static_cast<cl_uint>(i), sizeof(cl_mem), &state_->buffers[launch.buffers[i]]);
    if (error != CL_SUCCESS)
      return Failed(RuntimeCode::kInvalidArgument, "clSetKernelArg", error).Annotate(launch.kernel);
  }
  size_t global[3], local[3];
  for (size_t axis = 0; axis < 3; ++axis) {
    local[axis] = static_cast<size_t>(launch.block[axis]);
    global[axis] = static_cast<size_t>(launch.grid[axis]) * local[axis];
  }
  cl_event event = nullptr;
  error = api.clEnqueueNDRangeKernel(state_->queue, kernel, 3, nullptr, global, local, 0, nullptr,
                                     state_->clock_runs ? &event : nullptr);
  state_->NoteLaunch(event);
  return error == CL_SUCCESS
             ? RuntimeError()
             : Failed(RuntimeCode::kKernelFailed, "clEnqueueNDRangeKernel", error).Annotate(launch.kernel);
}

RuntimeError OpenClDevice::Finish() {
  const cl_int error = state_->api->clFinish(state_->queue);
  return error == CL_SUCCESS ? RuntimeError() : Failed(RuntimeCode::kKernelFailed, "clFinish", error);
}

RuntimeError OpenClDevice::KeepSequence(const std::function<RuntimeError()>&) {
  return RuntimeError(RuntimeCode::kUnsupported, "OpenCL has no sequences of launches");
}
RuntimeError OpenClDevice::StartSequence() { return RuntimeError(RuntimeCode::kInternal, "no sequence is kept"); }

void OpenClDevice::StartClock() {
  state_->DropEvents();
  state_->clock_runs = state_->with_clock;
}

RuntimeError OpenClDevice::EndLap() {
  if (state_->lap.first == nullptr) return {RuntimeCode::kInternal, "nothing was launched under the clock"};
  state_->laps.push_back(std::exchange(state_->lap, {}));
  return {};
}

RuntimeResult<std::vector<double>> OpenClDevice::StopClock() {
  const RuntimeError ended = state_->lap.first != nullptr || state_->laps.empty() ? EndLap() : RuntimeError();
  state_->clock_runs = false;
  if (RuntimeError error = Finish()) return error;
  if (ended) return ended;
  const Api& api = *state_->api;
  std::vector<double> laps;
  for (const State::Lap& lap : state_->laps) {
    const cl_event last = lap.last == nullptr ? lap.first : lap.last;
    cl_ulong begin = 0, end = 0;  // nanoseconds
    cl_int error = api.clGetEventProfilingInfo(lap.first, CL_PROFILING_COMMAND_START, sizeof(begin), &begin, nullptr);
    if (error == CL_SUCCESS)
      error = api.clGetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr);
    // An event that has no times is one of a launch that failed.
    if (error != CL_SUCCESS) return Failed(RuntimeCode::kKernelFailed, "clGetEventProfilingInfo", error);
    laps.push_back(static_cast<double>(end - begin) * 1e-3);
  }
  state_->DropEvents();
  return laps;
}

}  // namespace hone
