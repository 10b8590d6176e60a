// The C interface: checks what a C caller hands over, then calls Bundle and Instance.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "deploy/runtime/bundle/bundle.h"
#include "deploy/runtime/hone_runtime.h"
#include "deploy/runtime/run/function_call.h"
#include "deploy/runtime/run/instance.h"

using hone::BundlePort;
using hone::RuntimeCode;
using hone::RuntimeError;

struct HoneModule {
  std::shared_ptr<const hone::Bundle> bundle;
};
struct HoneThreadPool {
  std::shared_ptr<hone::KernelThreads> threads;
};
struct HoneInstance {
  std::unique_ptr<hone::Instance> instance;
};

namespace {

static_assert(static_cast<int>(RuntimeCode::kInternal) == HONE_INTERNAL);
static_assert(static_cast<int>(RuntimeCode::kUnsupported) == HONE_UNSUPPORTED);
static_assert(static_cast<int>(RuntimeCode::kBusy) == HONE_BUSY);

thread_local std::string t_last_error;

HoneStatus Report(const RuntimeError& error) {
  if (error.ok()) return HONE_OK;
  t_last_error = error.message();
  return static_cast<HoneStatus>(error.code());
}

HoneStatus Invalid(const std::string& message) { return Report({RuntimeCode::kInvalidArgument, message}); }

// Runs `body`, a function to RuntimeError; no exception may pass into C.
template <class Body>
HoneStatus Guarded(Body body) {
  try {
    return Report(body());
  } catch (const std::bad_alloc&) {
    return Report({RuntimeCode::kOutOfMemory, "out of memory"});
  } catch (const std::exception& e) { return Report({RuntimeCode::kInternal, std::string("unexpected: ") + e.what()}); }
}

// ---- structures that grow: see struct_size in the header ----

constexpr size_t kMostStructBytes = 4096;  // more is a struct_size that nobody set

// `least`: how large the structure was when it was first released.
RuntimeError CheckStruct(const char* name, size_t size, size_t least) {
  if (size >= least && size <= kMostStructBytes) return {};
  return {RuntimeCode::kInvalidArgument,
          std::string(name) + ": struct_size is " + std::to_string(size) + "; set it to sizeof(" + name + ")"};
}

RuntimeError OfLaterRelease(const char* name) {
  return {RuntimeCode::kInvalidArgument, std::string(name) +
                                             ": it sets options of a later release than this runtime, " +
                                             hone_runtime_version() + "; leave them zero or use that release"};
}

template <class Struct>
RuntimeError ReadOptions(const char* name, size_t least, const Struct* given, Struct* options) {
  *options = {};
  if (given == nullptr) return {};
  const size_t size = given->struct_size;
  if (RuntimeError error = CheckStruct(name, size, least)) return error;
  const char* bytes = reinterpret_cast<const char*>(given);
  if (size > sizeof(Struct) && std::any_of(bytes + sizeof(Struct), bytes + size, [](char c) { return c != 0; })) {
    return OfLaterRelease(name);
  }
  std::memcpy(options, given, std::min(size, sizeof(Struct)));
  return {};
}

template <class Struct>
RuntimeError WriteAnswer(const char* name, size_t least, Struct answer, Struct* taken) {
  answer.struct_size = taken->struct_size;
  if (RuntimeError error = CheckStruct(name, answer.struct_size, least)) return error;
  const size_t known = std::min(answer.struct_size, sizeof(Struct));
  std::memcpy(taken, &answer, known);
  std::memset(reinterpret_cast<char*>(taken) + known, 0, answer.struct_size - known);
  return {};
}

constexpr size_t kLeastTensorInfo = offsetof(HoneTensorInfo, bytes) + sizeof(HoneTensorInfo::bytes);
constexpr size_t kLeastInstanceOptions =
    offsetof(HoneInstanceOptions, pin_threads) + sizeof(HoneInstanceOptions::pin_threads);
constexpr size_t kLeastAllocator = offsetof(HoneAllocator, context) + sizeof(HoneAllocator::context);
constexpr size_t kLeastModuleOptions = offsetof(HoneModuleOptions, allocator) + sizeof(void*);
constexpr size_t kLeastThreadPoolOptions =
    offsetof(HoneThreadPoolOptions, context) + sizeof(HoneThreadPoolOptions::context);
constexpr size_t kLeastFunction = offsetof(HoneFunction, context) + sizeof(HoneFunction::context);
constexpr size_t kLeastStepProfile = offsetof(HoneStepProfile, recorded_us) + sizeof(HoneStepProfile::recorded_us);

// `given` may be NULL: the system's memory.
RuntimeError ReadAllocator(const HoneAllocator* given, hone::Allocator* allocator) {
  if (given == nullptr) return {};
  HoneAllocator chosen;
  if (RuntimeError error = ReadOptions("HoneAllocator", kLeastAllocator, given, &chosen)) return error;
  if (chosen.allocate == nullptr || chosen.release == nullptr) {
    return {RuntimeCode::kInvalidArgument,
            "HoneAllocator: it needs both allocate and release, and one of them is NULL"};
  }
  *allocator = {chosen.allocate, chosen.release, chosen.context};
  return {};
}

// The next one in the array begins where struct_size says that this one ends.
RuntimeError ReadFunctions(const HoneInstanceOptions& options, hone::ProgramFunctions* functions) {
  if (options.num_functions > 0 && options.functions == nullptr)
    return {RuntimeCode::kInvalidArgument, "HoneInstanceOptions: num_functions is not 0, and functions is NULL"};
  const char* at = reinterpret_cast<const char*>(options.functions);
  for (size_t i = 0; i < options.num_functions; ++i) {
    HoneFunction given;
    const auto* here = reinterpret_cast<const HoneFunction*>(at);
    if (RuntimeError error = ReadOptions("HoneFunction", kLeastFunction, here, &given)) return error;
    at += given.struct_size;
    if (given.name == nullptr || given.call == nullptr)
      return {RuntimeCode::kInvalidArgument, "HoneFunction: it needs both name and call, and one of them is NULL"};
    if (!functions->emplace(given.name, hone::ProgramFunction{given.call, given.context}).second) {
      return {RuntimeCode::kInvalidArgument,
              std::string("HoneInstanceOptions: the function `") + given.name + "` is given twice"};
    }
  }
  return {};
}

int64_t BytesOf(const BundlePort& port, std::span<const int64_t> shape) {
  int64_t bytes = hone::DTypeBytes(port.dtype);
  for (const int64_t extent : shape) bytes *= extent;
  return bytes;
}

std::span<const int64_t> ShapeOf(const DLTensor& tensor) { return {tensor.shape, static_cast<size_t>(tensor.ndim)}; }

// "" when `tensor` has the type of `port` and a shape that `shape_mismatch` takes, and is contiguous on the CPU; else
// what is wrong.
using ShapeMismatch = std::function<std::string(int port, std::span<const int64_t> shape)>;
std::string Mismatch(const BundlePort& port, const DLTensor* tensor,
                     const std::function<std::string(std::span<const int64_t>)>& shape_mismatch) {
  if (tensor == nullptr) return "the tensor is NULL";
  if (tensor->device.device_type != kDLCPU) return "the tensor is not on the CPU";
  const DLDataType want = hone::ToDlpack(port.dtype);
  const bool bool_as_uint8 = want.code == kDLBool && tensor->dtype.code == kDLUInt;
  if ((tensor->dtype.code != want.code && !bool_as_uint8) || tensor->dtype.bits != want.bits ||
      tensor->dtype.lanes != 1) {
    return "the model has type " + port.dtype + ", the tensor has DLPack code " + std::to_string(tensor->dtype.code) +
           " with " + std::to_string(tensor->dtype.bits) + " bits";
  }
  if (tensor->ndim < 0 || (tensor->ndim > 0 && tensor->shape == nullptr)) return "the tensor has no shape";
  const std::span<const int64_t> shape = ShapeOf(*tensor);
  if (std::string wrong = shape_mismatch(shape); !wrong.empty()) return wrong;
  int64_t elements = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (tensor->strides != nullptr && shape[i] > 1 && tensor->strides[i] != elements)
      return "the tensor is not contiguous";
    elements *= shape[i];
  }
  if (tensor->data == nullptr && elements > 0) return "the tensor has no data";
  return "";
}

char* DataOf(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

std::string NamesOf(const std::vector<BundlePort>& ports) {
  std::string names;
  for (const BundlePort& port : ports) names += (names.empty() ? "`" : ", `") + port.name + "`";
  return names.empty() ? "none" : names;
}

// The input or output of that name, with `tensor` checked against it.
struct PortRef {
  int index = -1;
  RuntimeError error;
};
PortRef FindPort(const std::vector<BundlePort>& ports, const char* kind, const char* name, const DLTensor* tensor,
                 const ShapeMismatch& shape_mismatch) {
  for (size_t i = 0; name != nullptr && i < ports.size(); ++i) {
    if (ports[i].name != name) continue;
    const int index = static_cast<int>(i);
    const std::string wrong =
        Mismatch(ports[i], tensor, [&](std::span<const int64_t> shape) { return shape_mismatch(index, shape); });
    if (wrong.empty()) return {index, {}};
    return {-1, {RuntimeCode::kInvalidArgument, std::string(kind) + " `" + name + "`: " + wrong}};
  }
  return {-1,
          {RuntimeCode::kInvalidArgument, std::string("the model has no ") + kind + " `" +
                                              (name == nullptr ? "NULL" : name) + "`; it has " + NamesOf(ports)}};
}

PortRef FindInput(const hone::Instance& instance, const char* name, const DLTensor* tensor) {
  return FindPort(instance.bundle().graph().inputs, "input", name, tensor,
                  [&](int i, std::span<const int64_t> shape) { return instance.InputMismatch(i, shape); });
}
// Of the shape that the output has now.
PortRef FindOutput(const hone::Instance& instance, const char* name, const DLTensor* tensor) {
  return FindPort(instance.bundle().graph().outputs, "output", name, tensor,
                  [&](int i, std::span<const int64_t> shape) -> std::string {
                    const std::span<const int64_t> has = instance.output_shape(i);
                    if (std::equal(has.begin(), has.end(), shape.begin(), shape.end())) return "";
                    return "the model has shape " + hone::ShapeText(has) + ", the tensor " + hone::ShapeText(shape);
                  });
}

// HONE_INVALID_ARGUMENT for NULL, HONE_BUSY while a run has the instance.
HoneStatus CheckUsable(const HoneInstance* instance) {
  if (instance == nullptr) return Invalid("the instance is NULL");
  return instance->instance->running() ? Report(hone::RunIsUnderWay()) : HONE_OK;
}

// So that the shapes of outputs follow from the inputs; without symbolic sizes they follow from nothing.
RuntimeError ResolveSizes(hone::Instance& instance) {
  return instance.bundle().graph().sizes.empty() ? RuntimeError() : instance.Resolve();
}

RuntimeError CheckAligned(const char* name, const DLTensor& tensor) {
  if (reinterpret_cast<uintptr_t>(DataOf(tensor)) % hone::kTensorAlignment == 0) return {};
  return {RuntimeCode::kInvalidArgument,
          std::string("`") + name + "`: memory to bind must be 64-byte aligned; use the copying call instead"};
}

// `shape`: where it is other than the port's greatest.
HoneStatus DescribePort(const hone::Bundle& bundle, const std::vector<BundlePort>& ports, const char* kind,
                        int32_t index, HoneTensorInfo* info, const hone::Instance* instance = nullptr) {
  if (info == nullptr) return Invalid("`info` is NULL");
  if (index < 0 || static_cast<size_t>(index) >= ports.size()) {
    return Invalid("there is no " + std::string(kind) + " " + std::to_string(index) + "; the model has " +
                   std::to_string(ports.size()));
  }
  const BundlePort& port = ports[static_cast<size_t>(index)];
  const hone::PortSizes& sizes = bundle.sizes_of(port);
  const std::span<const int64_t> shape =
      instance == nullptr ? std::span<const int64_t>(port.shape) : instance->output_shape(index);
  return Report(WriteAnswer("HoneTensorInfo", kLeastTensorInfo,
                            {.struct_size = 0,
                             .name = port.name.c_str(),
                             .dtype = hone::ToDlpack(port.dtype),
                             .dtype_name = port.dtype.c_str(),
                             .ndim = static_cast<int32_t>(port.shape.size()),
                             .shape = shape.data(),
                             .bytes = BytesOf(port, shape),
                             .least_shape = instance == nullptr ? sizes.least.data() : shape.data(),
                             .size_names = sizes.names.data()},
                            info));
}

// `open`, a function of the public key, "" for none, and the allocator, to the bundle or an error.
template <class Open>
HoneStatus Load(const HoneModuleOptions* options, Open open, HoneModule** module) {
  return Guarded([&]() -> RuntimeError {
    HoneModuleOptions chosen;
    if (RuntimeError error = ReadOptions("HoneModuleOptions", kLeastModuleOptions, options, &chosen)) return error;
    const std::string_view key = chosen.public_key == nullptr ? "" : chosen.public_key;
    if (chosen.public_key != nullptr && key.empty()) {
      return {RuntimeCode::kInvalidArgument, "HoneModuleOptions: public_key is empty; NULL is for bundles without one"};
    }
    hone::Allocator allocator;
    if (RuntimeError error = ReadAllocator(chosen.allocator, &allocator)) return error;
    auto bundle = open(key, allocator);
    if (!bundle.ok()) return bundle.error();
    *module = new HoneModule{*std::move(bundle)};
    return {};
  });
}

bool IsEmpty(const char* text) { return text == nullptr || *text == '\0'; }

}  // namespace

extern "C" {

const char* hone_runtime_version(void) { return "0.1.0"; }

const char* hone_last_error(void) { return t_last_error.c_str(); }

HoneStatus hone_module_load(const char* path, HoneModule** module) {
  if (path == nullptr || module == nullptr) return Invalid("hone_module_load: an argument is NULL");
  return hone_module_open(path, nullptr, module);
}

HoneStatus hone_module_load_memory(const void* bytes, size_t size, HoneModule** module) {
  if (bytes == nullptr || module == nullptr) return Invalid("hone_module_load_memory: an argument is NULL");
  return hone_module_open_memory(bytes, size, nullptr, module);
}

HoneStatus hone_module_load_signed(const char* path, const char* public_key, HoneModule** module) {
  if (path == nullptr || IsEmpty(public_key) || module == nullptr) {
    return Invalid("hone_module_load_signed: an argument is NULL, or the key is empty");
  }
  const HoneModuleOptions options{.struct_size = sizeof(options), .public_key = public_key, .allocator = nullptr};
  return hone_module_open(path, &options, module);
}

HoneStatus hone_module_load_memory_signed(const void* bytes, size_t size, const char* public_key, HoneModule** module) {
  if (bytes == nullptr || IsEmpty(public_key) || module == nullptr) {
    return Invalid("hone_module_load_memory_signed: an argument is NULL, or the key is empty");
  }
  const HoneModuleOptions options{.struct_size = sizeof(options), .public_key = public_key, .allocator = nullptr};
  return hone_module_open_memory(bytes, size, &options, module);
}

HoneStatus hone_module_open(const char* path, const HoneModuleOptions* options, HoneModule** module) {
  if (path == nullptr || module == nullptr) return Invalid("hone_module_open: an argument is NULL");
  return Load(
      options,
      [&](std::string_view key, const hone::Allocator& allocator) { return hone::Bundle::Open(path, key, allocator); },
      module);
}

HoneStatus hone_module_open_memory(const void* bytes, size_t size, const HoneModuleOptions* options,
                                   HoneModule** module) {
  if (bytes == nullptr || module == nullptr) return Invalid("hone_module_open_memory: an argument is NULL");
  return Load(
      options,
      [&](std::string_view key, const hone::Allocator& allocator) {
        return hone::Bundle::FromMemory({static_cast<const char*>(bytes), size}, key, allocator);
      },
      module);
}

void hone_module_free(HoneModule* module) { delete module; }

int32_t hone_module_num_inputs(const HoneModule* module) {
  return module == nullptr ? 0 : static_cast<int32_t>(module->bundle->graph().inputs.size());
}
int32_t hone_module_num_outputs(const HoneModule* module) {
  return module == nullptr ? 0 : static_cast<int32_t>(module->bundle->graph().outputs.size());
}
HoneStatus hone_module_input(const HoneModule* module, int32_t index, HoneTensorInfo* info) {
  if (module == nullptr) return Invalid("the module is NULL");
  return DescribePort(*module->bundle, module->bundle->graph().inputs, "input", index, info);
}
HoneStatus hone_module_output(const HoneModule* module, int32_t index, HoneTensorInfo* info) {
  if (module == nullptr) return Invalid("the module is NULL");
  return DescribePort(*module->bundle, module->bundle->graph().outputs, "output", index, info);
}
const char* hone_module_manifest(const HoneModule* module) {
  return module == nullptr ? "" : module->bundle->manifest().c_str();
}

HoneStatus hone_thread_pool_create(const HoneThreadPoolOptions* options, HoneThreadPool** pool) {
  if (pool == nullptr) return Invalid("hone_thread_pool_create: `pool` is NULL");
  return Guarded([&]() -> RuntimeError {
    HoneThreadPoolOptions chosen;
    RuntimeError error = ReadOptions("HoneThreadPoolOptions", kLeastThreadPoolOptions, options, &chosen);
    if (error) return error;
    const bool pin = chosen.pin_threads != 0, of_host = chosen.parallel_for != nullptr;
    if (pin && of_host) {
      return {RuntimeCode::kInvalidArgument,
              "HoneThreadPoolOptions: pin_threads is set with parallel_for, whose threads are the program's to pin"};
    }
    auto made = of_host ? hone::KernelThreads::OfHost({chosen.threads, chosen.parallel_for, chosen.context})
                        : hone::KernelThreads::OfPool({.threads = chosen.threads, .pin_workers = pin},
                                                      hone::KernelThreads::Users::kMany);
    if (!made.ok()) return made.error();
    *pool = new HoneThreadPool{*std::move(made)};
    return {};
  });
}

void hone_thread_pool_free(HoneThreadPool* pool) { delete pool; }

HoneStatus hone_instance_create(const HoneModule* module, const HoneInstanceOptions* options, HoneInstance** instance) {
  if (module == nullptr || instance == nullptr) return Invalid("hone_instance_create: an argument is NULL");
  return Guarded([&]() -> RuntimeError {
    HoneInstanceOptions chosen;
    if (RuntimeError error = ReadOptions("HoneInstanceOptions", kLeastInstanceOptions, options, &chosen)) return error;
    hone::Instance::Options wanted{.threads = chosen.threads, .pin = chosen.pin_threads != 0};
    if (chosen.pool != nullptr) wanted.pool = chosen.pool->threads;
    if (RuntimeError error = ReadAllocator(chosen.allocator, &wanted.allocator)) return error;
    if (RuntimeError error = ReadFunctions(chosen, &wanted.functions)) return error;
    auto made = hone::Instance::Create(module->bundle, wanted);
    if (!made.ok()) return made.error();
    *instance = new HoneInstance{*std::move(made)};
    return {};
  });
}

void hone_instance_free(HoneInstance* instance) { delete instance; }

int32_t hone_instance_threads(const HoneInstance* instance) {
  return instance == nullptr ? 0 : instance->instance->threads();
}

HoneStatus hone_instance_set_input(HoneInstance* instance, const char* name, const DLTensor* tensor) {
  if (const HoneStatus refused = CheckUsable(instance); refused != HONE_OK) return refused;
  return Guarded([&]() -> RuntimeError {
    hone::Instance& self = *instance->instance;
    const PortRef port = FindInput(self, name, tensor);
    if (port.index < 0) return port.error;
    const std::span<const int64_t> shape = ShapeOf(*tensor);
    std::memmove(self.OwnInput(port.index, shape), DataOf(*tensor),
                 static_cast<size_t>(BytesOf(self.bundle().graph().inputs[port.index], shape)));
    return {};
  });
}

HoneStatus hone_instance_bind_input(HoneInstance* instance, const char* name, const DLTensor* tensor) {
  if (const HoneStatus refused = CheckUsable(instance); refused != HONE_OK) return refused;
  return Guarded([&]() -> RuntimeError {
    const PortRef port = FindInput(*instance->instance, name, tensor);
    if (port.index < 0) return port.error;
    if (RuntimeError error = CheckAligned(name, *tensor)) return error;
    instance->instance->BindInput(port.index, ShapeOf(*tensor), DataOf(*tensor));
    return {};
  });
}

HoneStatus hone_instance_bind_output(HoneInstance* instance, const char* name, const DLTensor* tensor) {
  if (const HoneStatus refused = CheckUsable(instance); refused != HONE_OK) return refused;
  return Guarded([&]() -> RuntimeError {
    if (RuntimeError error = ResolveSizes(*instance->instance)) return error;
    const PortRef port = FindOutput(*instance->instance, name, tensor);
    if (port.index < 0) return port.error;
    if (RuntimeError error = CheckAligned(name, *tensor)) return error;
    instance->instance->BindOutput(port.index, DataOf(*tensor));
    return {};
  });
}

HoneStatus hone_instance_output(HoneInstance* instance, int32_t index, HoneTensorInfo* info) {
  if (const HoneStatus refused = CheckUsable(instance); refused != HONE_OK) return refused;
  hone::Instance& self = *instance->instance;
  if (RuntimeError error = ResolveSizes(self)) return Report(error);
  return DescribePort(self.bundle(), self.bundle().graph().outputs, "output", index, info, &self);
}

HoneStatus hone_instance_run(HoneInstance* instance) {
  if (instance == nullptr) return Invalid("the instance is NULL");
  return Guarded([&] { return instance->instance->Run(); });
}

HoneStatus hone_instance_run_async(HoneInstance* instance, HoneRunCallback callback, void* context) {
  if (instance == nullptr) return Invalid("the instance is NULL");
  return Guarded([&] {
    hone::BackgroundRuns::Callback tell;
    if (callback != nullptr) {
      tell = [callback, context](const RuntimeError& result) { callback(context, Report(result)); };
    }
    return instance->instance->StartRun(std::move(tell));
  });
}

HoneStatus hone_instance_wait(HoneInstance* instance) {
  if (instance == nullptr) return Invalid("the instance is NULL");
  return Guarded([&] { return instance->instance->Wait(); });
}

int32_t hone_instance_is_running(const HoneInstance* instance) {
  return instance != nullptr && instance->instance->running() ? 1 : 0;
}

HoneStatus hone_instance_get_output(const HoneInstance* instance, const char* name, DLTensor* tensor) {
  if (const HoneStatus refused = CheckUsable(instance); refused != HONE_OK) return refused;
  return Guarded([&]() -> RuntimeError {
    const hone::Instance& self = *instance->instance;
    const PortRef port = FindOutput(self, name, tensor);
    if (port.index < 0) return port.error;
    std::memmove(
        DataOf(*tensor), self.output(port.index),
        static_cast<size_t>(BytesOf(self.bundle().graph().outputs[port.index], self.output_shape(port.index))));
    return {};
  });
}

HoneStatus hone_instance_view_output(const HoneInstance* instance, const char* name, DLTensor* view) {
  if (const HoneStatus refused = CheckUsable(instance); refused != HONE_OK) return refused;
  if (name == nullptr || view == nullptr) return Invalid("hone_instance_view_output: an argument is NULL");
  return Guarded([&]() -> RuntimeError {
    const hone::Instance& self = *instance->instance;
    const std::vector<BundlePort>& ports = self.bundle().graph().outputs;
    const int index = self.FindOutput(name);
    if (index < 0) {
      return {RuntimeCode::kInvalidArgument,
              std::string("the model has no output `") + name + "`; it has " + NamesOf(ports)};
    }
    const BundlePort& port = ports[index];
    const std::span<const int64_t> shape = self.output_shape(index);
    *view = DLTensor{};
    view->data = const_cast<char*>(self.output(index));
    view->device = {kDLCPU, 0};
    view->ndim = static_cast<int>(shape.size());
    view->dtype = hone::ToDlpack(port.dtype);
    view->shape = const_cast<int64_t*>(shape.data());
    return {};
  });
}

void hone_instance_set_profiling(HoneInstance* instance, int32_t on) {
  if (instance != nullptr) instance->instance->set_profiling(on != 0);
}

int32_t hone_instance_num_steps(const HoneInstance* instance) {
  return instance == nullptr ? 0 : static_cast<int32_t>(instance->instance->bundle().graph().steps.size());
}

HoneStatus hone_instance_step_profile(const HoneInstance* instance, int32_t index, HoneStepProfile* profile) {
  if (const HoneStatus refused = CheckUsable(instance); refused != HONE_OK) return refused;
  if (profile == nullptr) return Invalid("hone_instance_step_profile: `profile` is NULL");
  const hone::BundleGraph& graph = instance->instance->bundle().graph();
  if (index < 0 || static_cast<size_t>(index) >= graph.steps.size())
    return Invalid("there is no step " + std::to_string(index));
  const hone::BundleStep& step = graph.steps[static_cast<size_t>(index)];
  const double us = instance->instance->step_us(index);
  if (step.is_call()) {
    return Report(WriteAnswer(
        "HoneStepProfile", kLeastStepProfile,
        {.struct_size = 0, .name = step.function.c_str(), .symbol = "", .record = "", .us = us, .recorded_us = 0},
        profile));
  }
  const hone::BundleKernel& kernel = graph.kernels[instance->instance->step_kernel(index)];
  return Report(WriteAnswer("HoneStepProfile", kLeastStepProfile,
                            {.struct_size = 0,
                             .name = kernel.name.c_str(),
                             .symbol = kernel.symbol.c_str(),
                             .record = kernel.record.c_str(),
                             .us = us,
                             .recorded_us = kernel.recorded_us},
                            profile));
}

}  // extern "C"
