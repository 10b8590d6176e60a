// hone._runtime: the C interface for Python. What users see is hone/__init__.py; this file moves tensors across without
// copying them and lets go of Python's lock while a model runs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "deploy/runtime/hone_runtime.h"

namespace nb = nanobind;

namespace {

constexpr size_t kAlignment = 64;  // what the runtime asks of memory it is to use without a copy

// A status of the runtime's on its way to becoming one of the exceptions of hone/_errors.py.
struct RuntimeFailure {
  HoneStatus status;
  std::string message;
};

void Check(HoneStatus status) {
  if (status != HONE_OK) throw RuntimeFailure{status, hone_last_error()};
}
[[noreturn]] void Refuse(const std::string& message) { throw RuntimeFailure{HONE_INVALID_ARGUMENT, message}; }

struct Port {
  std::string name, dtype_name;
  DLDataType dtype;
  std::vector<int64_t> shape;           // where sizes are symbolic, the greatest
  int64_t bytes = 0;                    // of `shape`
  std::vector<std::string> size_names;  // of each dimension, "" for one that is fixed
};

Port PortOf(const HoneTensorInfo& info) {
  return {info.name,  info.dtype_name,
          info.dtype, {info.shape, info.shape + info.ndim},
          info.bytes, {info.size_names, info.size_names + info.ndim}};
}

struct Module {
  HoneModule* handle = nullptr;
  std::vector<Port> inputs, outputs;

  Module() = default;
  Module(const Module&) = delete;
  ~Module() { hone_module_free(handle); }

  void ReadPorts() {
    HoneTensorInfo info{};
    info.struct_size = sizeof(info);
    for (int32_t i = 0; i < hone_module_num_inputs(handle); ++i) {
      Check(hone_module_input(handle, i, &info));
      inputs.push_back(PortOf(info));
    }
    for (int32_t i = 0; i < hone_module_num_outputs(handle); ++i) {
      Check(hone_module_output(handle, i, &info));
      outputs.push_back(PortOf(info));
    }
  }
};

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, FreeMemory>;

Memory Allocate(int64_t bytes) {
  const size_t size = (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, size == 0 ? kAlignment : size);
  if (memory == nullptr) throw RuntimeFailure{HONE_OUT_OF_MEMORY, "no memory for " + std::to_string(bytes) + " bytes"};
  return Memory(memory);
}

bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % kAlignment == 0; }

DLTensor TensorOf(const Port& port, const std::vector<int64_t>& shape, void* data) {
  DLTensor tensor{};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int>(shape.size());
  tensor.dtype = port.dtype;
  tensor.shape = const_cast<int64_t*>(shape.data());
  return tensor;
}

std::string TypeText(nb::dlpack::dtype type) {
  switch (static_cast<nb::dlpack::dtype_code>(type.code)) {
    case nb::dlpack::dtype_code::Int: return "int" + std::to_string(type.bits);
    case nb::dlpack::dtype_code::UInt: return "uint" + std::to_string(type.bits);
    case nb::dlpack::dtype_code::Float: return "float" + std::to_string(type.bits);
    case nb::dlpack::dtype_code::Bfloat: return "bfloat" + std::to_string(type.bits);
    case nb::dlpack::dtype_code::Complex: return "complex" + std::to_string(type.bits);
    case nb::dlpack::dtype_code::Bool: return "bool";
    default: return "DLPack type " + std::to_string(type.code);
  }
}

template <class Array>
std::string ShapeText(const Array& shape, size_t rank) {
  std::string text = "(";
  for (size_t i = 0; i < rank; ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (rank == 1 ? ",)" : ")");
}

// As the model has it: "(batch, 768)".
std::string ShapeText(const Port& port) {
  std::string text = "(";
  for (size_t d = 0; d < port.shape.size(); ++d)
    text += (d > 0 ? ", " : "") + (port.size_names[d].empty() ? std::to_string(port.shape[d]) : port.size_names[d]);
  return text + (port.shape.size() == 1 ? ",)" : ")");
}

using Given = nb::ndarray<nb::ro, nb::device::cpu>;
using Taken = nb::ndarray<nb::device::cpu>;

template <class Array>
std::vector<int64_t> ShapeOf(const Array& array) {
  return {array.shape_ptr(), array.shape_ptr() + array.ndim()};
}

// Symbolic sizes aside, which the runtime checks.
template <class Array>
void CheckFits(const char* kind, const Port& port, const Array& array) {
  const nb::dlpack::dtype type = array.dtype();
  const bool bool_as_uint8 = port.dtype.code == kDLBool && type.code == kDLUInt && type.bits == 8;
  const bool same_type = type.code == port.dtype.code && type.bits == port.dtype.bits && type.lanes == 1;
  bool same = (same_type || bool_as_uint8) && array.ndim() == port.shape.size();
  for (size_t d = 0; same && d < port.shape.size(); ++d)
    same = !port.size_names[d].empty() || array.shape_ptr()[d] == port.shape[d];
  if (same) return;
  Refuse(std::string(kind) + " `" + port.name + "`: the model has " + port.dtype_name + " " + ShapeText(port) +
         ", given was " + TypeText(type) + " " + ShapeText(array.shape_ptr(), array.ndim()));
}

template <class Array>
bool IsContiguous(const Array& array) {
  int64_t elements = 1;
  for (size_t d = array.ndim(); d-- > 0;) {
    if (array.shape(d) != 1 && array.stride(d) != elements) return false;
    elements *= static_cast<int64_t>(array.shape(d));
  }
  return true;
}

// Row-major copy of an array with any strides.
void Pack(const Given& array, size_t dim, const char* from, char** to) {
  const size_t item = array.itemsize();
  const int64_t step = array.stride(dim) * static_cast<int64_t>(item);
  for (size_t i = 0; i < array.shape(dim); ++i, from += step) {
    if (dim + 1 < array.ndim()) {
      Pack(array, dim + 1, from, to);
    } else {
      std::memcpy(*to, from, item);
      *to += item;
    }
  }
}

struct Input {
  Given array;    // held while the model reads it
  Memory packed;  // where `array` cannot be used as it lies
  void* data = nullptr;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

Input InputFrom(const Port& port, nb::handle value) {
  Input input;
  if (!nb::try_cast(value, input.array)) {
    PyErr_Clear();
    Refuse(
        "input `" + port.name + "`: a " + std::string(nb::type_name(value.type()).c_str()) +
        " is not a tensor on the CPU; give a NumPy array or what has __dlpack__ (a PyTorch tensor: .detach().cpu())");
  }
  CheckFits("input", port, input.array);
  input.shape = ShapeOf(input.array);
  input.bytes = static_cast<int64_t>(input.array.nbytes());
  const char* data = static_cast<const char*>(input.array.data());
  if (IsContiguous(input.array) && IsAligned(data)) {
    input.data = const_cast<char*>(data);  // an input is only read
    return input;
  }
  input.packed = Allocate(input.bytes);
  input.data = input.packed.get();
  if (IsContiguous(input.array)) {
    std::memcpy(input.data, data, static_cast<size_t>(input.bytes));
  } else if (input.bytes > 0) {
    char* to = static_cast<char*>(input.data);
    Pack(input.array, 0, data, &to);
  }
  return input;
}

nb::dlpack::dtype TypeOf(const Port& port) { return {port.dtype.code, port.dtype.bits, port.dtype.lanes}; }

// An array that owns `memory`: NumPy's, or for a type that NumPy lacks one that others take over by DLPack.
nb::object ArrayOver(const Port& port, const std::vector<int64_t>& extents, Memory memory) {
  void* data = memory.get();
  const nb::capsule owner(memory.release(), [](void* p) noexcept { std::free(p); });
  const std::vector<size_t> shape(extents.begin(), extents.end());
  if (port.dtype.code == kDLBfloat) {
    return nb::cast(nb::ndarray<nb::array_api>(data, shape.size(), shape.data(), owner, nullptr, TypeOf(port)));
  }
  return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), owner, nullptr, TypeOf(port)));
}

struct Output {
  nb::object result;
  Memory memory;  // becomes `result` after the run, unless the caller gave the memory
  void* data = nullptr;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  bool given = false;  // by the caller
};

Output OutputInto(const Port& port, nb::object given) {
  Output output;
  Taken array;
  if (!nb::try_cast(given, array)) {
    PyErr_Clear();
    Refuse("output `" + port.name + "`: a " + std::string(nb::type_name(given.type()).c_str()) +
           " is not a writable tensor on the CPU");
  }
  CheckFits("output", port, array);
  if (!IsContiguous(array) || !IsAligned(array.data())) {
    Refuse("output `" + port.name +
           "`: memory to write into must be contiguous and 64-byte aligned; hone.empty makes such");
  }
  output.data = array.data();
  output.shape = ShapeOf(array);
  output.bytes = static_cast<int64_t>(array.nbytes());
  output.given = true;
  output.result = std::move(given);
  return output;
}

// Threads that models share.
struct ThreadPool {
  HoneThreadPool* handle = nullptr;

  ThreadPool(int threads, bool pin) {
    HoneThreadPoolOptions options{};
    options.struct_size = sizeof(options);
    options.threads = threads;
    options.pin_threads = pin ? 1 : 0;
    Check(hone_thread_pool_create(&options, &handle));
  }
  ThreadPool(const ThreadPool&) = delete;
  ~ThreadPool() { hone_thread_pool_free(handle); }
};

// An array over memory that stays the runtime's; `Options` are nb::ro where it cannot be written.
template <class... Options>
nb::object ViewOf(const DLTensor& tensor) {
  const std::vector<size_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  const nb::dlpack::dtype type{tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes};
  const auto view = [&]<class Framework>(Framework) {
    const nb::ndarray<Options..., Framework> array(tensor.data, shape.size(), shape.data(), nb::handle(), nullptr,
                                                   type);
    return nb::cast(array, nb::rv_policy::reference);
  };
  return tensor.dtype.code == kDLBfloat ? view(nb::array_api()) : view(nb::numpy());  // NumPy has no bfloat16
}

// A HoneFunction::call: `context` is a Python callable.
int32_t CallPython(void* context, const DLTensor* inputs, int32_t num_inputs, const DLTensor* outputs,
                   int32_t num_outputs, char* error) {
  const nb::gil_scoped_acquire lock;
  std::string what;
  try {
    nb::list arguments;
    for (int32_t i = 0; i < num_inputs; ++i) arguments.append(ViewOf<nb::ro>(inputs[i]));
    for (int32_t i = 0; i < num_outputs; ++i) arguments.append(ViewOf<>(outputs[i]));
    nb::handle(static_cast<PyObject*>(context))(*arguments);
    return 0;
  } catch (const nb::python_error& raised) {
    what = std::string(nb::type_name(raised.type()).c_str()) + ": " + nb::str(raised.value()).c_str();
  } catch (const std::exception& thrown) { what = thrown.what(); }
  size_t size = std::min<size_t>(what.size(), HONE_FUNCTION_ERROR_BYTES - 1);
  while (size < what.size() && (what[size] & 0xC0) == 0x80) --size;  // not within a character
  std::memcpy(error, what.data(), size);
  error[size] = '\0';
  return 1;
}

// Memory and threads to run a module with. Calls from several Python threads take turns.
class Session {
 public:
  // `pool` may be null: threads of its own. `functions`: callables by the names under which the model calls them, which
  // the caller keeps alive; held here, one that refers to the model would keep it alive, and be seen by no collector.
  Session(std::shared_ptr<Module> module, int threads, bool pin, const ThreadPool* pool, const nb::dict& functions)
      : module_(std::move(module)) {
    std::vector<std::string> names;
    for (const auto& [name, callable] : functions) names.push_back(nb::cast<std::string>(name));
    std::vector<HoneFunction> given;
    for (const auto& [name, callable] : functions)
      given.push_back({sizeof(HoneFunction), names[given.size()].c_str(), CallPython, callable.ptr()});
    HoneInstanceOptions options{};
    options.struct_size = sizeof(options);
    options.threads = threads;
    options.pin_threads = pin ? 1 : 0;
    options.pool = pool == nullptr ? nullptr : pool->handle;
    options.functions = given.data();
    options.num_functions = given.size();
    nb::gil_scoped_release release;
    Check(hone_instance_create(module_->handle, &options, &instance_));
  }
  Session(const Session&) = delete;
  ~Session() { hone_instance_free(instance_); }

  const std::shared_ptr<Module>& module() const { return module_; }
  int threads() const { return hone_instance_threads(instance_); }

  nb::dict Run(const nb::dict& inputs, const nb::dict& into) {
    std::vector<Input> given = Inputs(inputs);
    std::vector<Output> outputs = Outputs(into);
    RefuseOverlaps(given, outputs);
    {
      nb::gil_scoped_release release;
      const std::lock_guard<std::mutex> turn(turn_);
      Bind(given, outputs);
      Check(hone_instance_run(instance_));
    }
    nb::dict results;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Port& port = module_->outputs[i];
      if (!outputs[i].given) outputs[i].result = ArrayOver(port, outputs[i].shape, std::move(outputs[i].memory));
      results[port.name.c_str()] = outputs[i].result;
    }
    return results;
  }

  // Where a run would read each input: the caller's own memory where nothing is copied.
  nb::dict Places(const nb::dict& inputs) {
    const std::vector<Input> given = Inputs(inputs);
    nb::dict places;
    for (size_t i = 0; i < given.size(); ++i) {
      places[module_->inputs[i].name.c_str()] = reinterpret_cast<uintptr_t>(given[i].data);
    }
    return places;
  }

  // The microseconds of each step in each of `runs` runs, with what is known of the steps.
  nb::list Profile(const nb::dict& inputs, int runs) {
    std::vector<Input> given = Inputs(inputs);
    std::vector<Output> outputs = Outputs(nb::dict());
    std::vector<std::vector<double>> us;
    std::vector<HoneStepProfile> steps;
    {
      nb::gil_scoped_release release;
      const std::lock_guard<std::mutex> turn(turn_);
      Bind(given, outputs);
      steps.assign(static_cast<size_t>(hone_instance_num_steps(instance_)), {.struct_size = sizeof(HoneStepProfile)});
      us.resize(steps.size());
      struct Off {
        HoneInstance* instance;
        ~Off() { hone_instance_set_profiling(instance, 0); }
      } off{instance_};
      hone_instance_set_profiling(instance_, 1);
      for (int run = 0; run < runs; ++run) {
        Check(hone_instance_run(instance_));
        for (size_t i = 0; i < steps.size(); ++i) {
          Check(hone_instance_step_profile(instance_, static_cast<int32_t>(i), &steps[i]));
          us[i].push_back(steps[i].us);
        }
      }
    }
    nb::list rows;
    for (size_t i = 0; i < steps.size(); ++i) {
      rows.append(nb::make_tuple(steps[i].name, steps[i].symbol, steps[i].record, us[i], steps[i].recorded_us));
    }
    return rows;
  }

 private:
  std::vector<Input> Inputs(const nb::dict& values) const {
    std::vector<Input> inputs;
    size_t found = 0;
    for (const Port& port : module_->inputs) {
      if (!values.contains(port.name.c_str()))
        Refuse("input `" + port.name + "` is not given; the model has " + Names());
      inputs.push_back(InputFrom(port, values[port.name.c_str()]));
      ++found;
    }
    if (found == values.size()) return inputs;
    for (const auto& [name, value] : values) {
      const std::string text = nb::cast<std::string>(nb::str(name));
      bool known = false;
      for (const Port& port : module_->inputs) known = known || port.name == text;
      if (!known) Refuse("the model has no input `" + text + "`; it has " + Names());
    }
    return inputs;
  }

  std::vector<Output> Outputs(const nb::dict& into) const {
    std::vector<Output> outputs;
    for (const Port& port : module_->outputs) {
      if (into.contains(port.name.c_str())) {
        outputs.push_back(OutputInto(port, into[port.name.c_str()]));
      } else {
        outputs.emplace_back();  // of a shape that is known once the inputs are bound
      }
    }
    for (const auto& [name, value] : into) {
      const std::string text = nb::cast<std::string>(nb::str(name));
      bool known = false;
      for (const Port& port : module_->outputs) known = known || port.name == text;
      if (!known) Refuse("the model has no output `" + text + "`");
    }
    return outputs;
  }

  // A kernel may write an output before it has read all of an input.
  void RefuseOverlaps(const std::vector<Input>& inputs, const std::vector<Output>& outputs) const {
    const auto overlap = [](const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
      const char *x = static_cast<const char*>(a), *y = static_cast<const char*>(b);
      return x < y + b_bytes && y < x + a_bytes;
    };
    for (size_t o = 0; o < outputs.size(); ++o) {
      const Port& output = module_->outputs[o];
      if (!outputs[o].given) continue;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (overlap(outputs[o].data, outputs[o].bytes, inputs[i].data, inputs[i].bytes)) {
          Refuse("output `" + output.name + "` overlaps input `" + module_->inputs[i].name + "`");
        }
      }
      for (size_t other = 0; other < outputs.size(); ++other) {
        if (other != o && outputs[other].given &&
            overlap(outputs[o].data, outputs[o].bytes, outputs[other].data, outputs[other].bytes)) {
          Refuse("output `" + output.name + "` overlaps output `" + module_->outputs[other].name + "`");
        }
      }
    }
  }

  // Makes the memory of the outputs that the caller gave none for.
  void Bind(const std::vector<Input>& inputs, std::vector<Output>& outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const DLTensor tensor = TensorOf(module_->inputs[i], inputs[i].shape, inputs[i].data);
      Check(hone_instance_bind_input(instance_, module_->inputs[i].name.c_str(), &tensor));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      Output& output = outputs[i];
      if (!output.given) {
        HoneTensorInfo info{};
        info.struct_size = sizeof(info);
        Check(hone_instance_output(instance_, static_cast<int32_t>(i), &info));
        output.shape.assign(info.shape, info.shape + info.ndim);
        output.bytes = info.bytes;
        output.memory = Allocate(output.bytes);
        output.data = output.memory.get();
      }
      const DLTensor tensor = TensorOf(module_->outputs[i], output.shape, output.data);
      Check(hone_instance_bind_output(instance_, module_->outputs[i].name.c_str(), &tensor));
    }
  }

  std::string Names() const {
    std::string names;
    for (const Port& port : module_->inputs) names += (names.empty() ? "`" : ", `") + port.name + "`";
    return names.empty() ? "none" : names;
  }

  std::shared_ptr<Module> module_;
  HoneInstance* instance_ = nullptr;
  std::mutex turn_;
};

// (name, type, shape, names of symbolic sizes where there are any) of each.
nb::list Describe(const std::vector<Port>& ports) {
  nb::list rows;
  for (const Port& port : ports) {
    const bool fixed = std::ranges::all_of(port.size_names, &std::string::empty);
    const std::vector<std::string> names = fixed ? std::vector<std::string>() : port.size_names;
    rows.append(
        nb::make_tuple(port.name, port.dtype_name, nb::tuple(nb::cast(port.shape)), nb::tuple(nb::cast(names))));
  }
  return rows;
}

const Port& FindPort(const Module& module, const std::string& name) {
  for (const std::vector<Port>* ports : {&module.inputs, &module.outputs}) {
    for (const Port& port : *ports) {
      if (port.name == name) return port;
    }
  }
  Refuse("the model has no input or output `" + name + "`");
}

}  // namespace

NB_MODULE(_runtime, m) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const RuntimeFailure& failure) {
      const nb::object of_status = nb::module_::import_("hone._errors").attr("of_status");
      const nb::object type = of_status(static_cast<int>(failure.status));
      PyErr_SetString(type.ptr(), failure.message.c_str());
    }
  });
  m.def("version", &hone_runtime_version);

  nb::class_<Module>(m, "Module")
      .def("inputs", [](const Module& self) { return Describe(self.inputs); })
      .def("outputs", [](const Module& self) { return Describe(self.outputs); })
      .def("manifest", [](const Module& self) { return hone_module_manifest(self.handle); })
      .def("empty", [](const Module& self, const std::string& name) {
        const Port& port = FindPort(self, name);
        Memory memory = Allocate(port.bytes);
        std::memset(memory.get(), 0, static_cast<size_t>(port.bytes));
        return ArrayOver(port, port.shape, std::move(memory));
      });
  nb::class_<ThreadPool>(m, "ThreadPool").def(nb::init<int, bool>(), nb::arg("threads"), nb::arg("pin_threads"));
  nb::class_<Session>(m, "Session")
      .def("threads", &Session::threads)
      .def("run", &Session::Run, nb::arg("inputs"), nb::arg("into"))
      .def("places", &Session::Places, nb::arg("inputs"))
      .def("profile", &Session::Profile, nb::arg("inputs"), nb::arg("runs"));

  m.def("load", [](const std::string& path) {
    auto module = std::make_shared<Module>();
    {
      nb::gil_scoped_release release;
      Check(hone_module_load(path.c_str(), &module->handle));
    }
    module->ReadPorts();
    return module;
  });
  m.def("load_bytes", [](const nb::bytes& bytes) {
    auto module = std::make_shared<Module>();
    Check(hone_module_load_memory(bytes.c_str(), bytes.size(), &module->handle));
    module->ReadPorts();
    return module;
  });
  m.def(
      "session",
      [](std::shared_ptr<Module> module, int threads, bool pin, const ThreadPool* pool, const nb::dict& functions) {
        return std::make_unique<Session>(std::move(module), threads, pin, pool, functions);
      },
      nb::arg("module"), nb::arg("threads"), nb::arg("pin_threads"), nb::arg("pool").none(), nb::arg("functions"));
}
