// graph.json: writing it, and reading it with every number checked.
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <set>

#include "deploy/runtime/bundle/bundle.h"
#include "deploy/runtime/bundle/json.h"
#include "deploy/runtime/devices/device_drivers.h"

namespace hone {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 40;
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

// ---- writing ----

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}
template <class List, class Fn>
std::string ListOf(const List& list, Fn item, const char* separator = ",") {
  std::string text = "[";
  for (const auto& element : list) text += (text.size() > 1 ? separator : "") + item(element);
  return text + "]";
}
template <class List>
std::string Numbers(const List& numbers) {
  return ListOf(numbers, [](auto number) { return std::to_string(number); });
}
constexpr const char* kLines = ",\n  ";

std::string SizeToJson(const BundleSize& size) {
  return "{\"name\":" + JsonQuote(size.name) + ",\"min\":" + std::to_string(size.min) +
         ",\"max\":" + std::to_string(size.max) + "}";
}
std::string ExtentToJson(const BundleExtent& extent) {
  return ListOf(extent.terms, [](const BundleExtent::Term& term) {
    std::vector<int64_t> numbers = {term.factor};
    numbers.insert(numbers.end(), term.sizes.begin(), term.sizes.end());
    return Numbers(numbers);
  });
}
std::string PortToJson(const BundlePort& port) {
  return "{\"name\":" + JsonQuote(port.name) + ",\"dtype\":" + JsonQuote(port.dtype) +
         ",\"shape\":" + Numbers(port.shape) + ",\"tensor\":" + std::to_string(port.tensor) +
         (port.extents.empty() ? "" : ",\"extents\":" + ListOf(port.extents, ExtentToJson)) + "}";
}
std::string TensorToJson(const BundleTensor& tensor) {
  return "{\"name\":" + JsonQuote(tensor.name) +
         ",\"region\":" + (tensor.region == BundleTensor::kParams ? "\"params\"" : "\"arena\"") +
         ",\"offset\":" + std::to_string(tensor.offset) + ",\"bytes\":" + std::to_string(tensor.bytes) + "}";
}
std::string ScratchToJson(const ScratchArea& area) {
  return "{\"offset\":" + std::to_string(area.offset) + ",\"bytes\":" + std::to_string(area.bytes) + "}";
}
std::string LaunchToJson(const KernelLaunch& launch) {
  return "{\"kernel\":" + JsonQuote(launch.kernel) + ",\"grid\":" + Numbers(launch.grid) +
         ",\"block\":" + Numbers(launch.block) + ",\"arguments\":" + Numbers(launch.arguments) +
         (launch.shared_bytes > 0 ? ",\"shared\":" + std::to_string(launch.shared_bytes) : "") + "}";
}
std::string KernelToJson(const BundleKernel& kernel) {
  const std::string of_device = kernel.launches.empty() ? ""
                                                        : ",\"scratch\":" + ListOf(kernel.scratch, ScratchToJson) +
                                                              ",\"launches\":" + ListOf(kernel.launches, LaunchToJson);
  return "{\"name\":" + JsonQuote(kernel.name) + ",\"image\":" + std::to_string(kernel.image) +
         ",\"symbol\":" + JsonQuote(kernel.symbol) + ",\"tensor_bytes\":" + Numbers(kernel.tensor_bytes) +
         ",\"scratch_bytes\":" + std::to_string(kernel.scratch_bytes) +
         ",\"thread_scratch_bytes\":" + std::to_string(kernel.thread_scratch_bytes) +
         ",\"record\":" + JsonQuote(kernel.record) + ",\"recorded_us\":" + Number(kernel.recorded_us) + of_device +
         (kernel.sizes.empty() ? "" : ",\"sizes\":" + Numbers(kernel.sizes)) + "}";
}
std::string CaseToJson(const BundleCase& c) {
  return "{\"most\":" + Numbers(c.most) + ",\"kernel\":" + std::to_string(c.kernel) +
         ",\"tensors\":" + Numbers(c.tensors) + "}";
}
std::string ArgumentToJson(const BundleArgument& argument) {
  return "{\"dtype\":" + JsonQuote(argument.dtype) + ",\"shape\":" + Numbers(argument.shape) + "}";
}
std::string StepToJson(const BundleStep& step) {
  if (step.is_call()) {
    return "{\"function\":" + JsonQuote(step.function) + ",\"arguments\":" + ListOf(step.arguments, ArgumentToJson) +
           ",\"outputs\":" + std::to_string(step.outputs) + ",\"tensors\":" + Numbers(step.tensors) + "}";
  }
  return "{\"kernel\":" + std::to_string(step.kernel) + ",\"tensors\":" + Numbers(step.tensors) +
         (step.cases.empty() ? "" : ",\"cases\":" + ListOf(step.cases, CaseToJson)) + "}";
}
// The lowest that says it all: older runtimes read what they can run.
int64_t VersionOf(const BundleGraph& graph) {
  if (std::ranges::any_of(graph.steps, &BundleStep::is_call)) return 4;
  return !graph.sizes.empty() ? 3 : graph.device.empty() ? 1 : 2;
}

// ---- reading ----

// Reads members of objects and notes the first thing that is wrong, with its place: "steps[3].kernel is 9".
class GraphReader {
 public:
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  void Fail(const std::string& what) {
    if (error_.empty()) error_ = place_ + what;
  }
  void At(const std::string& place) { place_ = place; }

  int64_t Integer(const Json& object, const char* key, int64_t min, int64_t max) {
    const Json* member = object.Find(key);
    return Checked(member, key, min, max);
  }
  int Index(const Json& object, const char* key, size_t size) {
    return static_cast<int>(Integer(object, key, 0, static_cast<int64_t>(size) - 1));
  }
  std::string Text(const Json& object, const char* key) {
    const Json* member = object.Find(key);
    if (member == nullptr || member->string() == nullptr) {
      Fail(std::string(key) + " is missing or no text");
      return "";
    }
    return *member->string();
  }
  double Real(const Json& object, const char* key) {
    const Json* member = object.Find(key);
    if (member == nullptr || !member->is_number()) Fail(std::string(key) + " is missing or no number");
    return member == nullptr ? 0 : member->number();
  }
  const Json::Array& List(const Json& object, const char* key) {
    static const Json::Array kNone;
    const Json* member = object.Find(key);
    if (member == nullptr || member->array() == nullptr) {
      Fail(std::string(key) + " is missing or no list");
      return kNone;
    }
    return *member->array();
  }
  template <class T>
  std::vector<T> Integers(const Json& object, const char* key, int64_t min, int64_t max) {
    std::vector<T> numbers;
    for (const Json& item : List(object, key)) {
      numbers.push_back(static_cast<T>(Checked(&item, key, min, max)));
      if (failed()) break;
    }
    return numbers;
  }

 private:
  int64_t Checked(const Json* value, const char* key, int64_t min, int64_t max) {
    if (value == nullptr || value->integer() == nullptr) {
      Fail(std::string(key) + " is missing or no whole number");
      return 0;
    }
    if (*value->integer() < min || *value->integer() > max) {
      Fail(std::string(key) + " is " + std::to_string(*value->integer()) + ", outside [" + std::to_string(min) + ", " +
           std::to_string(max) + "]");
      return 0;
    }
    return *value->integer();
  }

  std::string place_, error_;
};

// Bytes of a tensor of that type and shape; -1 when the type is unknown or the size absurd.
int64_t BytesOf(const std::string& dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = DTypeBytes(dtype);
  if (bytes == 0 || shape.size() > 32) return -1;
  for (const int64_t extent : shape) {
    if (extent < 0 || extent > kMaxBytes || __builtin_mul_overflow(bytes, extent, &bytes) || bytes > kMaxBytes)
      return -1;
  }
  return bytes;
}

std::string PlaceOf(const char* list, size_t i) { return std::string(list) + "[" + std::to_string(i) + "]: "; }

void ReadTensors(const Json& root, int64_t params_bytes, GraphReader& reader, BundleGraph* graph) {
  for (const Json& item : reader.List(root, "tensors")) {
    reader.At(PlaceOf("tensors", graph->tensors.size()));
    BundleTensor tensor;
    tensor.name = reader.Text(item, "name");
    const std::string region = reader.Text(item, "region");
    if (region != "arena" && region != "params") reader.Fail("region is `" + region + "`");
    tensor.region = region == "params" ? BundleTensor::kParams : BundleTensor::kArena;
    const int64_t limit = tensor.region == BundleTensor::kParams ? params_bytes : graph->arena_bytes;
    tensor.offset = reader.Integer(item, "offset", 0, limit);
    tensor.bytes = reader.Integer(item, "bytes", 0, limit - tensor.offset);
    const int64_t alignment = graph->device.empty() ? 64 : kDeviceAlignment;
    if (tensor.offset % alignment != 0) reader.Fail("offset is no multiple of " + std::to_string(alignment));
    if (reader.failed()) return;
    graph->tensors.push_back(std::move(tensor));
  }
}

void ReadSizes(const Json& root, GraphReader& reader, BundleGraph* graph) {
  for (const Json& item : reader.List(root, "sizes")) {
    reader.At(PlaceOf("sizes", graph->sizes.size()));
    BundleSize size;
    size.name = reader.Text(item, "name");
    size.min = reader.Integer(item, "min", 0, kMaxInt);
    size.max = reader.Integer(item, "max", std::max<int64_t>(size.min, 1), kMaxInt);
    if (reader.failed()) return;
    graph->sizes.push_back(std::move(size));
  }
  if (!graph->sizes.empty() && !graph->device.empty()) reader.Fail("bundles for devices have no symbolic sizes");
}

// The extents of a port, which at the greatest sizes are its shape.
void ReadPortExtents(const Json& item, const BundleGraph& graph, GraphReader& reader, BundlePort* port) {
  constexpr size_t kMostFactors = 8;
  const int64_t last = static_cast<int64_t>(graph.sizes.size()) - 1;
  for (const Json& dimension : reader.List(item, "extents")) {
    BundleExtent extent;
    if (dimension.array() == nullptr) return reader.Fail("extents holds what is no list");
    for (const Json& term : *dimension.array()) {
      const Json::Array* numbers = term.array();
      if (numbers == nullptr || numbers->empty() || numbers->size() > kMostFactors)
        return reader.Fail("a term of extents is no list of a factor and sizes");
      BundleExtent::Term read;
      for (const Json& number : *numbers) {
        const bool factor = &number == &numbers->front();
        if (number.integer() == nullptr || *number.integer() < (factor ? -kMaxInt : 0) ||
            *number.integer() > (factor ? kMaxInt : last))
          return reader.Fail("a term of extents has a number out of range");
        if (factor) read.factor = *number.integer();
        else read.sizes.push_back(static_cast<int>(*number.integer()));
      }
      extent.terms.push_back(std::move(read));
    }
    port->extents.push_back(std::move(extent));
  }
  std::vector<int64_t> greatest;
  for (const BundleSize& size : graph.sizes) greatest.push_back(size.max);
  bool same = port->extents.size() == port->shape.size();
  for (size_t d = 0; same && d < port->shape.size(); ++d) same = port->extents[d].At(greatest) == port->shape[d];
  if (!same) reader.Fail("extents are not its shape at the greatest sizes");
}

void ReadPorts(const Json& root, const char* key, const BundleGraph& graph, GraphReader& reader,
               std::vector<BundlePort>* ports) {
  std::set<std::string> names;
  for (const Json& item : reader.List(root, key)) {
    reader.At(PlaceOf(key, ports->size()));
    BundlePort port;
    port.name = reader.Text(item, "name");
    port.dtype = reader.Text(item, "dtype");
    port.shape = reader.Integers<int64_t>(item, "shape", 0, kMaxBytes);
    port.tensor = reader.Index(item, "tensor", graph.tensors.size());
    if (!graph.sizes.empty() && item.Find("extents") != nullptr) ReadPortExtents(item, graph, reader, &port);
    if (reader.failed()) return;
    const BundleTensor& tensor = graph.tensors[port.tensor];
    if (!names.insert(port.name).second) reader.Fail("the name `" + port.name + "` occurs twice");
    if (tensor.region != BundleTensor::kArena) reader.Fail("its tensor is a constant");
    if (BytesOf(port.dtype, port.shape) != tensor.bytes) reader.Fail("type and shape do not give its tensor's size");
    if (reader.failed()) return;
    ports->push_back(std::move(port));
  }
}

// Every size is a dimension of an input, by itself.
void CheckSizesAreGiven(const BundleGraph& graph, GraphReader& reader) {
  for (size_t s = 0; s < graph.sizes.size(); ++s) {
    const bool given = std::ranges::any_of(graph.inputs, [&](const BundlePort& port) {
      return std::ranges::any_of(port.extents, [&](const auto& e) { return e.size() == static_cast<int>(s); });
    });
    if (!given) reader.Fail("no input gives the size `" + graph.sizes[s].name + "`");
  }
}

std::array<int64_t, 3> ReadExtents(const Json& launch, const char* key, GraphReader& reader) {
  const std::vector<int64_t> list = reader.Integers<int64_t>(launch, key, 1, kMaxInt);
  std::array<int64_t, 3> extents{};
  if (list.size() != extents.size()) reader.Fail(std::string(key) + " has not three numbers");
  if (!reader.failed()) std::copy(list.begin(), list.end(), extents.begin());
  return extents;
}

void ReadLaunches(const Json& item, GraphReader& reader, BundleKernel* kernel) {
  for (const Json& area : reader.List(item, "scratch")) {
    const int64_t offset = reader.Integer(area, "offset", 0, kernel->scratch_bytes);
    kernel->scratch.push_back({offset, reader.Integer(area, "bytes", 0, kernel->scratch_bytes - offset)});
    if (offset % kDeviceAlignment != 0) reader.Fail("offset is no multiple of " + std::to_string(kDeviceAlignment));
  }
  const int64_t arguments = static_cast<int64_t>(kernel->tensor_bytes.size() + kernel->scratch.size());
  for (const Json& launch : reader.List(item, "launches")) {
    kernel->launches.push_back({reader.Text(launch, "kernel"), ReadExtents(launch, "grid", reader),
                                ReadExtents(launch, "block", reader),
                                reader.Integers<int>(launch, "arguments", 0, arguments - 1)});
    if (launch.Find("shared") != nullptr)
      kernel->launches.back().shared_bytes = reader.Integer(launch, "shared", 1, kMaxInt);
    if (reader.failed()) return;
  }
}

void ReadKernels(const Json& root, int images, GraphReader& reader, BundleGraph* graph) {
  for (const Json& item : reader.List(root, "kernels")) {
    reader.At(PlaceOf("kernels", graph->kernels.size()));
    BundleKernel kernel;
    kernel.name = reader.Text(item, "name");
    kernel.image = reader.Index(item, "image", images);
    kernel.symbol = reader.Text(item, "symbol");
    kernel.tensor_bytes = reader.Integers<int64_t>(item, "tensor_bytes", 0, kMaxBytes);
    kernel.scratch_bytes = reader.Integer(item, "scratch_bytes", 0, kMaxBytes);
    kernel.thread_scratch_bytes = reader.Integer(item, "thread_scratch_bytes", 0, kMaxBytes);
    kernel.record = reader.Text(item, "record");
    kernel.recorded_us = reader.Real(item, "recorded_us");
    if (!graph->device.empty()) ReadLaunches(item, reader, &kernel);
    if (!graph->sizes.empty() && item.Find("sizes") != nullptr)
      kernel.sizes = reader.Integers<int>(item, "sizes", 0, static_cast<int64_t>(graph->sizes.size()) - 1);
    if (reader.failed()) return;
    graph->kernels.push_back(std::move(kernel));
  }
}

// The kernel and tensors of a step, or of one of its cases.
template <class Step>
void ReadCall(const Json& item, const BundleGraph& graph, GraphReader& reader, Step* step) {
  step->kernel = reader.Index(item, "kernel", graph.kernels.size());
  step->tensors = reader.Integers<int>(item, "tensors", 0, static_cast<int64_t>(graph.tensors.size()) - 1);
  if (reader.failed()) return;
  const BundleKernel& kernel = graph.kernels[step->kernel];
  if (step->tensors.size() != kernel.tensor_bytes.size()) {
    return reader.Fail(std::to_string(step->tensors.size()) + " tensors, its kernel takes " +
                       std::to_string(kernel.tensor_bytes.size()));
  }
  for (size_t i = 0; i < step->tensors.size(); ++i) {
    if (graph.tensors[step->tensors[i]].bytes != kernel.tensor_bytes[i]) {
      return reader.Fail("tensor " + std::to_string(i) + " has another size than its kernel takes");
    }
  }
}

// A step that calls a function of the program's.
void ReadFunctionCall(const Json& item, const BundleGraph& graph, GraphReader& reader, BundleStep* step) {
  step->kernel = -1;
  step->function = reader.Text(item, "function");
  if (step->function.empty()) reader.Fail("function has no name");
  if (!graph.device.empty() || !graph.sizes.empty())
    reader.Fail("it calls `" + step->function + "`, which bundles for devices or with symbolic sizes do not");
  step->tensors = reader.Integers<int>(item, "tensors", 0, static_cast<int64_t>(graph.tensors.size()) - 1);
  step->outputs = static_cast<int>(reader.Integer(item, "outputs", 1, static_cast<int64_t>(step->tensors.size())));
  for (const Json& argument : reader.List(item, "arguments"))
    step->arguments.push_back(
        {reader.Text(argument, "dtype"), reader.Integers<int64_t>(argument, "shape", 0, kMaxBytes)});
  if (step->arguments.size() != step->tensors.size()) reader.Fail("arguments are not as many as tensors");
  if (reader.failed()) return;
  const size_t first_output = step->tensors.size() - static_cast<size_t>(step->outputs);
  for (size_t i = 0; i < step->tensors.size(); ++i) {
    const BundleTensor& tensor = graph.tensors[step->tensors[i]];
    const std::string name = "tensor " + std::to_string(i);
    if (BytesOf(step->arguments[i].dtype, step->arguments[i].shape) != tensor.bytes)
      return reader.Fail(name + " has another size than its argument");
    if (i >= first_output && tensor.region != BundleTensor::kArena)
      return reader.Fail(name + " is a constant, and the function writes it");
  }
}

void ReadSteps(const Json& root, GraphReader& reader, BundleGraph* graph) {
  for (const Json& item : reader.List(root, "steps")) {
    reader.At(PlaceOf("steps", graph->steps.size()));
    BundleStep step;
    if (item.Find("function") != nullptr) {
      ReadFunctionCall(item, *graph, reader, &step);
    } else {
      ReadCall(item, *graph, reader, &step);
    }
    if (reader.failed()) return;
    if (!graph->sizes.empty() && item.Find("cases") != nullptr) {
      for (const Json& one : reader.List(item, "cases")) {
        BundleCase read;
        read.most = reader.Integers<int64_t>(one, "most", 1, kMaxInt);
        if (read.most.size() != graph->sizes.size()) reader.Fail("most has not one number for each size");
        ReadCall(one, *graph, reader, &read);
        if (reader.failed()) return;
        step.cases.push_back(std::move(read));
      }
    }
    graph->steps.push_back(std::move(step));
  }
}

void ReadCopies(const Json& root, GraphReader& reader, BundleGraph* graph) {
  for (const Json& item : reader.List(root, "copies")) {
    reader.At(PlaceOf("copies", graph->copies.size()));
    BundleCopy copy;
    copy.from = reader.Index(item, "from", graph->tensors.size());
    copy.to = reader.Index(item, "to", graph->tensors.size());
    if (reader.failed()) return;
    const BundleTensor& from = graph->tensors[copy.from];
    const BundleTensor& to = graph->tensors[copy.to];
    const bool apart =
        from.region != to.region || from.offset + from.bytes <= to.offset || to.offset + to.bytes <= from.offset;
    if (to.region != BundleTensor::kArena || from.bytes != to.bytes || !apart)
      return reader.Fail("the tensors do not fit");
    graph->copies.push_back(copy);
  }
}

}  // namespace

int64_t DTypeBytes(std::string_view dtype) {
  struct Type {
    std::string_view name;
    int64_t bytes;
  };
  static constexpr Type kTypes[] = {{"bool", 1},
                                    {"int8", 1},
                                    {"uint8", 1},
                                    {"int16", 2},
                                    {"uint16", 2},
                                    {"int32", 4},
                                    {"uint32", 4},
                                    {"int64", 8},
                                    {"uint64", 8},
                                    {"float16", 2},
                                    {"bfloat16", 2},
                                    {"float32", 4},
                                    {"float64", 8},
                                    // one element a byte, also of those that are smaller
                                    {"float8_e4m3fn", 1},
                                    {"float8_e4m3fnuz", 1},
                                    {"float8_e5m2", 1},
                                    {"float8_e5m2fnuz", 1},
                                    {"float8_e8m0fnu", 1},
                                    {"float4_e2m1fn", 1},
                                    {"int4", 1},
                                    {"uint4", 1},
                                    {"int2", 1},
                                    {"uint2", 1}};
  for (const Type& type : kTypes) {
    if (type.name == dtype) return type.bytes;
  }
  return 0;
}

std::string ToJson(const BundleGraph& graph) {
  const auto copy_to_json = [](const BundleCopy& copy) {
    return "{\"from\":" + std::to_string(copy.from) + ",\"to\":" + std::to_string(copy.to) + "}";
  };
  const int64_t version = VersionOf(graph);
  return "{\"version\":" + std::to_string(version) + (version >= 2 ? ",\n \"device\":" + JsonQuote(graph.device) : "") +
         (version >= 3 ? ",\n \"sizes\":" + ListOf(graph.sizes, SizeToJson) : "") +
         ",\n \"model\":" + JsonQuote(graph.model) + ",\n \"target\":" + JsonQuote(graph.target) +
         ",\n \"features\":" + JsonQuote(graph.features) + ",\n \"threads\":" + std::to_string(graph.threads) +
         ",\n \"arena_bytes\":" + std::to_string(graph.arena_bytes) +
         ",\n \"tensors\":" + ListOf(graph.tensors, TensorToJson, kLines) +
         ",\n \"inputs\":" + ListOf(graph.inputs, PortToJson, kLines) +
         ",\n \"outputs\":" + ListOf(graph.outputs, PortToJson, kLines) +
         ",\n \"kernels\":" + ListOf(graph.kernels, KernelToJson, kLines) +
         ",\n \"steps\":" + ListOf(graph.steps, StepToJson, kLines) +
         ",\n \"copies\":" + ListOf(graph.copies, copy_to_json) + "}\n";
}

RuntimeResult<BundleGraph> ParseGraph(std::string_view json, int64_t params_bytes, int images) {
  const RuntimeResult<Json> root = Json::Parse(json);
  if (!root.ok()) return root.error().Annotate("graph.json");
  GraphReader reader;
  reader.At("graph.json: ");
  const int64_t version = reader.Integer(*root, "version", 1, kMaxInt);
  if (!reader.failed() && version > kGraphVersion) {
    return RuntimeError(RuntimeCode::kUnsupported, "graph.json: version " + std::to_string(version) +
                                                       ", this runtime reads versions up to " +
                                                       std::to_string(kGraphVersion));
  }
  BundleGraph graph;
  if (version >= 2) graph.device = reader.Text(*root, "device");
  if (!graph.device.empty() && FindDeviceDriver(graph.device) == nullptr) {
    std::string known;
    for (const DeviceDriver& driver : DeviceDrivers()) known += ", on `" + std::string(driver.language) + "`";
    return RuntimeError(RuntimeCode::kUnsupported,
                        "graph.json: device is `" + graph.device + "`, this runtime runs kernels on the host" + known);
  }
  if (version >= 3) ReadSizes(*root, reader, &graph);
  reader.At("graph.json: ");
  graph.model = reader.Text(*root, "model");
  graph.target = reader.Text(*root, "target");
  if (!graph.device.empty() && !graph.target.starts_with(graph.device + ":"))
    reader.Fail("target is `" + graph.target + "`, which is none of the device `" + graph.device + "`");
  graph.features = reader.Text(*root, "features");
  graph.threads = static_cast<int>(reader.Integer(*root, "threads", 0, 1024));
  graph.arena_bytes = reader.Integer(*root, "arena_bytes", 0, kMaxBytes);
  if (!reader.failed()) ReadTensors(*root, params_bytes, reader, &graph);
  if (!reader.failed()) ReadPorts(*root, "inputs", graph, reader, &graph.inputs);
  if (!reader.failed()) CheckSizesAreGiven(graph, reader);
  if (!reader.failed()) ReadPorts(*root, "outputs", graph, reader, &graph.outputs);
  if (!reader.failed()) ReadKernels(*root, images, reader, &graph);
  if (!reader.failed()) ReadSteps(*root, reader, &graph);
  if (!reader.failed()) ReadCopies(*root, reader, &graph);
  if (reader.failed()) return RuntimeError(RuntimeCode::kCorrupt, reader.error());
  return graph;
}

}  // namespace hone
