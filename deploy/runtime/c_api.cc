// The C interface: checks what a C caller hands over, then calls Bundle and Instance.
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "deploy/runtime/bundle.h"
#include "deploy/runtime/hone_runtime.h"
#include "deploy/runtime/instance.h"

using hone::BundlePort;
using hone::RuntimeCode;
using hone::RuntimeError;

struct HoneModule {
  std::shared_ptr<const hone::Bundle> bundle;
};
struct HoneInstance {
  std::unique_ptr<hone::Instance> instance;
};

namespace {

static_assert(static_cast<int>(RuntimeCode::kInternal) == HONE_INTERNAL);
static_assert(static_cast<int>(RuntimeCode::kUnsupported) == HONE_UNSUPPORTED);

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

DLDataType ToDl(const std::string& dtype) {
  const auto bits = static_cast<uint8_t>(8 * hone::DTypeBytes(dtype));
  uint8_t code = kDLFloat;
  if (dtype == "bool") code = kDLBool;
  if (dtype == "bfloat16") code = kDLBfloat;
  if (dtype.starts_with("float8") || dtype.starts_with("float4")) code = kDLUInt;  // as bytes
  if (dtype.starts_with("int")) code = kDLInt;
  if (dtype.starts_with("uint")) code = kDLUInt;
  return {code, bits, 1};
}

std::string ShapeText(const int64_t* shape, size_t rank) {
  std::string text = "(";
  for (size_t i = 0; i < rank; ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + ")";
}

int64_t BytesOf(const hone::Bundle& bundle, const BundlePort& port) {
  return bundle.graph().tensors[port.tensor].bytes;
}

// "" when `tensor` is what `port` is, contiguous on the CPU; else what is wrong.
std::string Mismatch(const BundlePort& port, const DLTensor* tensor) {
  if (tensor == nullptr) return "the tensor is NULL";
  if (tensor->device.device_type != kDLCPU) return "the tensor is not on the CPU";
  const DLDataType want = ToDl(port.dtype);
  const bool bool_as_uint8 = want.code == kDLBool && tensor->dtype.code == kDLUInt;
  if ((tensor->dtype.code != want.code && !bool_as_uint8) || tensor->dtype.bits != want.bits ||
      tensor->dtype.lanes != 1) {
    return "the model has type " + port.dtype + ", the tensor has DLPack code " + std::to_string(tensor->dtype.code) +
           " with " + std::to_string(tensor->dtype.bits) + " bits";
  }
  const size_t rank = port.shape.size();
  if (tensor->ndim < 0 || (tensor->ndim > 0 && tensor->shape == nullptr)) return "the tensor has no shape";
  if (static_cast<size_t>(tensor->ndim) != rank || !std::equal(port.shape.begin(), port.shape.end(), tensor->shape)) {
    return "the model has shape " + ShapeText(port.shape.data(), rank) + ", the tensor " +
           ShapeText(tensor->shape, static_cast<size_t>(tensor->ndim));
  }
  int64_t elements = 1;
  for (size_t i = rank; i-- > 0;) {
    if (tensor->strides != nullptr && port.shape[i] > 1 && tensor->strides[i] != elements)
      return "the tensor is not contiguous";
    elements *= port.shape[i];
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
PortRef FindPort(const std::vector<BundlePort>& ports, const char* kind, const char* name, const DLTensor* tensor) {
  for (size_t i = 0; name != nullptr && i < ports.size(); ++i) {
    if (ports[i].name != name) continue;
    const std::string wrong = Mismatch(ports[i], tensor);
    if (wrong.empty()) return {static_cast<int>(i), {}};
    return {-1, {RuntimeCode::kInvalidArgument, std::string(kind) + " `" + name + "`: " + wrong}};
  }
  return {-1,
          {RuntimeCode::kInvalidArgument, std::string("the model has no ") + kind + " `" +
                                              (name == nullptr ? "NULL" : name) + "`; it has " + NamesOf(ports)}};
}

RuntimeError CheckAligned(const char* name, const DLTensor& tensor) {
  if (reinterpret_cast<uintptr_t>(DataOf(tensor)) % hone::kTensorAlignment == 0) return {};
  return {RuntimeCode::kInvalidArgument,
          std::string("`") + name + "`: memory to bind must be 64-byte aligned; use the copying call instead"};
}

HoneStatus DescribePort(const hone::Bundle& bundle, const std::vector<BundlePort>& ports, const char* kind,
                        int32_t index, HoneTensorInfo* info) {
  if (info == nullptr) return Invalid("`info` is NULL");
  if (index < 0 || static_cast<size_t>(index) >= ports.size()) {
    return Invalid("there is no " + std::string(kind) + " " + std::to_string(index) + "; the model has " +
                   std::to_string(ports.size()));
  }
  const BundlePort& port = ports[static_cast<size_t>(index)];
  *info = {port.name.c_str(), ToDl(port.dtype),     port.dtype.c_str(), static_cast<int32_t>(port.shape.size()),
           port.shape.data(), BytesOf(bundle, port)};
  return HONE_OK;
}

}  // namespace

extern "C" {

const char* hone_runtime_version(void) { return "0.1.0"; }

const char* hone_last_error(void) { return t_last_error.c_str(); }

HoneStatus hone_module_load(const char* path, HoneModule** module) {
  if (path == nullptr || module == nullptr) return Invalid("hone_module_load: an argument is NULL");
  return Guarded([&]() -> RuntimeError {
    auto bundle = hone::Bundle::Open(path);
    if (!bundle.ok()) return bundle.error();
    *module = new HoneModule{*std::move(bundle)};
    return {};
  });
}

HoneStatus hone_module_load_memory(const void* bytes, size_t size, HoneModule** module) {
  if (bytes == nullptr || module == nullptr) return Invalid("hone_module_load_memory: an argument is NULL");
  return Guarded([&]() -> RuntimeError {
    auto bundle = hone::Bundle::FromMemory({static_cast<const char*>(bytes), size});
    if (!bundle.ok()) return bundle.error();
    *module = new HoneModule{*std::move(bundle)};
    return {};
  });
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

HoneStatus hone_instance_create(const HoneModule* module, const HoneInstanceOptions* options, HoneInstance** instance) {
  if (module == nullptr || instance == nullptr) return Invalid("hone_instance_create: an argument is NULL");
  const HoneInstanceOptions chosen = options == nullptr ? HoneInstanceOptions{} : *options;
  return Guarded([&]() -> RuntimeError {
    auto made = hone::Instance::Create(module->bundle, {.threads = chosen.threads, .pin = chosen.pin_threads != 0});
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
  if (instance == nullptr) return Invalid("the instance is NULL");
  return Guarded([&]() -> RuntimeError {
    hone::Instance& self = *instance->instance;
    const BundlePort* ports = self.bundle().graph().inputs.data();
    const PortRef port = FindPort(self.bundle().graph().inputs, "input", name, tensor);
    if (port.index < 0) return port.error;
    std::memmove(self.OwnInput(port.index), DataOf(*tensor),
                 static_cast<size_t>(BytesOf(self.bundle(), ports[port.index])));
    return {};
  });
}

HoneStatus hone_instance_bind_input(HoneInstance* instance, const char* name, const DLTensor* tensor) {
  if (instance == nullptr) return Invalid("the instance is NULL");
  return Guarded([&]() -> RuntimeError {
    const PortRef port = FindPort(instance->instance->bundle().graph().inputs, "input", name, tensor);
    if (port.index < 0) return port.error;
    if (RuntimeError error = CheckAligned(name, *tensor)) return error;
    instance->instance->BindInput(port.index, DataOf(*tensor));
    return {};
  });
}

HoneStatus hone_instance_bind_output(HoneInstance* instance, const char* name, const DLTensor* tensor) {
  if (instance == nullptr) return Invalid("the instance is NULL");
  return Guarded([&]() -> RuntimeError {
    const PortRef port = FindPort(instance->instance->bundle().graph().outputs, "output", name, tensor);
    if (port.index < 0) return port.error;
    if (RuntimeError error = CheckAligned(name, *tensor)) return error;
    instance->instance->BindOutput(port.index, DataOf(*tensor));
    return {};
  });
}

HoneStatus hone_instance_run(HoneInstance* instance) {
  if (instance == nullptr) return Invalid("the instance is NULL");
  return Guarded([&] { return instance->instance->Run(); });
}

HoneStatus hone_instance_get_output(const HoneInstance* instance, const char* name, DLTensor* tensor) {
  if (instance == nullptr) return Invalid("the instance is NULL");
  return Guarded([&]() -> RuntimeError {
    const hone::Instance& self = *instance->instance;
    const std::vector<BundlePort>& ports = self.bundle().graph().outputs;
    const PortRef port = FindPort(ports, "output", name, tensor);
    if (port.index < 0) return port.error;
    std::memmove(DataOf(*tensor), self.output(port.index),
                 static_cast<size_t>(BytesOf(self.bundle(), ports[port.index])));
    return {};
  });
}

HoneStatus hone_instance_view_output(const HoneInstance* instance, const char* name, DLTensor* view) {
  if (instance == nullptr || name == nullptr || view == nullptr)
    return Invalid("hone_instance_view_output: an argument is NULL");
  return Guarded([&]() -> RuntimeError {
    const hone::Instance& self = *instance->instance;
    const std::vector<BundlePort>& ports = self.bundle().graph().outputs;
    const int index = self.FindOutput(name);
    if (index < 0) {
      return {RuntimeCode::kInvalidArgument,
              std::string("the model has no output `") + name + "`; it has " + NamesOf(ports)};
    }
    const BundlePort& port = ports[index];
    *view = DLTensor{};
    view->data = const_cast<char*>(self.output(index));
    view->device = {kDLCPU, 0};
    view->ndim = static_cast<int>(port.shape.size());
    view->dtype = ToDl(port.dtype);
    view->shape = const_cast<int64_t*>(port.shape.data());
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
  if (instance == nullptr || profile == nullptr) return Invalid("hone_instance_step_profile: an argument is NULL");
  const hone::BundleGraph& graph = instance->instance->bundle().graph();
  if (index < 0 || static_cast<size_t>(index) >= graph.steps.size())
    return Invalid("there is no step " + std::to_string(index));
  const hone::BundleKernel& kernel = graph.kernels[graph.steps[index].kernel];
  *profile = {kernel.name.c_str(), kernel.symbol.c_str(), kernel.record.c_str(), instance->instance->step_us(index),
              kernel.recorded_us};
  return HONE_OK;
}

}  // extern "C"
