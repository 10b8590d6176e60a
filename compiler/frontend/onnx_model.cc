#include "compiler/frontend/onnx_model.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/frontend/external_data.h"
#include "compiler/frontend/onnx_file.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/operators/narrow_types.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int kGraphDepth = 16;  // of graphs in attributes of nodes; messages are not decoded beyond 100

// Fields that are younger than the message classes of libonnx 1.12, by number (onnx.proto of ONNX 1.16).
constexpr int kOverloadOfNode = 8, kOverloadOfFunction = 13, kDefaultsOfFunction = 11;

std::vector<std::string> UnknownField(const google::protobuf::Message& message, int number) {
  std::vector<std::string> values;
  const google::protobuf::UnknownFieldSet& fields = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() == number && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      values.push_back(field.length_delimited());
  }
  return values;
}

std::string Overload(const google::protobuf::Message& message, int number) {
  const std::vector<std::string> values = UnknownField(message, number);
  return values.empty() ? "" : values.back();
}

std::string Domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

template <class Message>
std::map<std::string, int64_t> Opsets(const Message& message) {
  std::map<std::string, int64_t> opsets;
  for (const onnx::OperatorSetIdProto& set : message.opset_import()) opsets[Domain(set.domain())] = set.version();
  return opsets;
}

// `count` numbers of a repeated field, each stored as a T.
template <class T, class Field>
absl::Status CopyField(const Field& field, int64_t count, NdArray& array) {
  if (field.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("it holds ", field.size(), " numbers, its shape ", count));
  }
  T* to = array.As<T>();
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(field.Get(static_cast<int>(i)));
  return absl::OkStatus();
}

absl::Status CopyTyped(const onnx::TensorProto& proto, int64_t count, NdArray& array) {
  switch (proto.data_type()) {
    case onnx::TensorProto::FLOAT: return CopyField<float>(proto.float_data(), count, array);
    case onnx::TensorProto::DOUBLE: return CopyField<double>(proto.double_data(), count, array);
    case onnx::TensorProto::INT64: return CopyField<int64_t>(proto.int64_data(), count, array);
    case onnx::TensorProto::UINT64: return CopyField<uint64_t>(proto.uint64_data(), count, array);
    case onnx::TensorProto::UINT32: return CopyField<uint32_t>(proto.uint64_data(), count, array);
    case onnx::TensorProto::INT32: return CopyField<int32_t>(proto.int32_data(), count, array);
    case onnx::TensorProto::INT16: return CopyField<int16_t>(proto.int32_data(), count, array);
    case onnx::TensorProto::INT8: return CopyField<int8_t>(proto.int32_data(), count, array);
    case onnx::TensorProto::UINT8: return CopyField<uint8_t>(proto.int32_data(), count, array);
    case onnx::TensorProto::BOOL: return CopyField<uint8_t>(proto.int32_data(), count, array);
    default: return CopyField<uint16_t>(proto.int32_data(), count, array);  // 16-bit floats and unsigned integers
  }
}

// A bool is 0 or 1 in our programs, whatever nonzero byte the file has.
void NormaliseBools(NdArray& array) {
  if (!array.dtype.is_bool()) return;
  for (char& byte : array.data) byte = byte != 0;
}

NdArray ArrayOf(DType dtype, std::vector<int64_t> shape, AlignedBytes data) {
  NdArray array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  array.data = std::move(data);
  return array;
}

absl::StatusOr<std::shared_ptr<const NdArray>> DecodeTensor(OnnxTensor& tensor, ExternalData& external) {
  const onnx::TensorProto& proto = tensor.message;
  const std::optional<DType> dtype = OnnxDType(proto.data_type());
  if (!dtype.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("elements of type ", OnnxDTypeName(proto.data_type()), " are not supported"));
  }
  std::vector<int64_t> shape(proto.dims().begin(), proto.dims().end());
  HONE_RETURN_IF_ERROR(CheckSize({*dtype, shape}));
  const std::optional<int64_t> count = NumElements(shape);
  const int64_t bytes = *count * dtype->bytes();
  const auto differ = [&](int64_t has) {
    return absl::InvalidArgumentError(absl::StrCat("it holds ", has, " bytes, its shape takes ", bytes));
  };
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    std::string location;
    int64_t offset = 0, length = -1;
    for (const onnx::StringStringEntryProto& entry : proto.external_data()) {
      if (entry.key() == "location") location = entry.value();
      int64_t* number = entry.key() == "offset" ? &offset : entry.key() == "length" ? &length : nullptr;
      if (number != nullptr && (!absl::SimpleAtoi(entry.value(), number) || *number < 0)) {
        return absl::InvalidArgumentError(
            absl::StrCat("external data \"", location, "\": ", entry.key(), " is \"", entry.value(), "\""));
      }
    }
    HONE_ASSIGN_OR_RETURN(const int64_t size, external.Size(location));
    if (length >= 0 && length != bytes) return differ(length);
    if (offset > size || bytes > size - offset) {  // before memory is taken for it
      return absl::InvalidArgumentError(absl::StrCat("external data \"", location, "\": ", bytes, " bytes from offset ",
                                                     offset, " on reach beyond its end: it has ", size));
    }
    NdArray array = ArrayOf(*dtype, std::move(shape), RoomFor(static_cast<size_t>(bytes)));
    array.data.resize(static_cast<size_t>(bytes));
    HONE_RETURN_IF_ERROR(external.Read(location, offset, {array.data.data(), array.data.size()}));
    NormaliseBools(array);
    return std::make_shared<const NdArray>(std::move(array));
  }
  if (tensor.raw.has_value()) {
    if (static_cast<int64_t>(tensor.raw->size()) != bytes) return differ(static_cast<int64_t>(tensor.raw->size()));
    NdArray array = ArrayOf(*dtype, std::move(shape), *std::move(tensor.raw));
    NormaliseBools(array);
    return std::make_shared<const NdArray>(std::move(array));
  }
  const int64_t present = int64_t{proto.float_data_size()} + proto.double_data_size() + proto.int32_data_size() +
                          proto.int64_data_size() + proto.uint64_data_size();
  if (present != *count)
    return absl::InvalidArgumentError(absl::StrCat("it holds ", present, " numbers, its shape ", *count));
  NdArray array(*dtype, std::move(shape));
  HONE_RETURN_IF_ERROR(CopyTyped(proto, *count, array));
  NormaliseBools(array);
  return std::make_shared<const NdArray>(std::move(array));
}

// Elements of fewer than eight bits are packed, the first in the lowest bits. External data is not supported.
absl::StatusOr<std::shared_ptr<const NdArray>> DecodeNarrow(const OnnxTensor& tensor, const NarrowType& type) {
  const onnx::TensorProto& proto = tensor.message;
  if (proto.data_location() == onnx::TensorProto::EXTERNAL)
    return absl::InvalidArgumentError(
        absl::StrCat("external data of type ", std::string(type.name), " is not supported"));
  NdArray array(type.storage(), {});
  array.shape.assign(proto.dims().begin(), proto.dims().end());
  HONE_RETURN_IF_ERROR(CheckSize({array.dtype, array.shape}));
  const int64_t count = *NumElements(array.shape), a_byte = 8 / type.bits, bytes = (count + a_byte - 1) / a_byte;
  const bool raw = tensor.raw.has_value();
  const int64_t has = raw ? static_cast<int64_t>(tensor.raw->size()) : proto.int32_data_size();
  if (has != bytes)
    return absl::InvalidArgumentError(absl::StrCat("it holds ", has, " bytes, its shape takes ", bytes));
  array = NdArray(type.storage(), array.shape);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i / a_byte;
    const int byte = raw ? static_cast<unsigned char>((*tensor.raw)[static_cast<size_t>(at)])
                         : proto.int32_data(static_cast<int>(at)) & 0xff;
    int value = byte >> (i % a_byte * type.bits) & ((1 << type.bits) - 1);
    if (!type.is_float && type.has_sign && value >= 1 << (type.bits - 1)) value -= 1 << type.bits;
    array.SetInt(i, value);
  }
  return std::make_shared<const NdArray>(std::move(array));
}

class Decoder {
 public:
  Decoder(const std::string& folder, std::vector<std::string>& problems) : external_(folder), problems_(problems) {}

  void Initializer(OnnxTensor tensor, OnnxGraph& graph) {
    const std::string name = tensor.message.name();
    if (name.empty()) {
      problems_.push_back("an initializer has no name");
      return;
    }
    const NarrowType* narrow = FindNarrowType(tensor.message.data_type());
    absl::StatusOr<std::shared_ptr<const NdArray>> array =
        narrow != nullptr ? DecodeNarrow(tensor, *narrow) : DecodeTensor(tensor, external_);
    if (narrow != nullptr) graph.elements[name] = std::string(narrow->name);
    if (!array.ok()) Problem(absl::StrCat("initializer \"", name, "\""), array.status());
    // Present all the same, so that its readers are not reported as well.
    std::shared_ptr<const NdArray> data = array.ok() ? *std::move(array) : nullptr;
    if (!graph.initializers.emplace(name, std::move(data)).second)
      problems_.push_back(absl::StrCat("initializer \"", name, "\": a second one has this name"));
  }

  // `graph` may have initializers already. Tensors are taken out of the message, which frees them one by one.
  void Graph(onnx::GraphProto& proto, int depth, OnnxGraph& graph) {
    graph.name = proto.name();
    for (onnx::TensorProto& tensor : *proto.mutable_initializer()) Initializer(TakeTensor(tensor), graph);
    for (const onnx::SparseTensorProto& tensor : proto.sparse_initializer()) {
      problems_.push_back(
          absl::StrCat("initializer \"", tensor.values().name(), "\": sparse tensors are not supported"));
      graph.initializers.emplace(tensor.values().name(), nullptr);
    }
    for (const onnx::ValueInfoProto& info : proto.input()) {
      if (graph.initializers.count(info.name()) > 0) continue;
      if (depth == 0) Input(info, graph);
      else
        graph.inputs.push_back(
            {info.name()});  // of its node's values, whatever they are; before IR version 4 both lists had them
    }
    for (const onnx::ValueInfoProto& info : proto.output()) {
      graph.outputs.push_back(info.name());
      DeclaredShape(info, graph);
    }
    for (const onnx::ValueInfoProto& info : proto.value_info()) DeclaredShape(info, graph);
    for (int n = 0; n < proto.node_size(); ++n) Node(*proto.mutable_node(n), n, depth, graph);
  }

  void Function(onnx::FunctionProto& proto, OnnxModel& model) {
    const std::string where = absl::StrCat("function \"", proto.name(), "\"");
    OnnxFunction function;
    function.inputs.assign(proto.input().begin(), proto.input().end());
    function.opsets = Opsets(proto);
    function.body.name = proto.name();
    function.body.outputs.assign(proto.output().begin(), proto.output().end());
    OnnxNode defaults;
    for (const std::string& bytes : UnknownField(proto, kDefaultsOfFunction)) {
      onnx::AttributeProto attribute;
      const absl::Status status = attribute.ParseFromString(bytes) ? Attribute(attribute, 0, defaults)
                                                                   : absl::InvalidArgumentError("it cannot be decoded");
      if (!status.ok()) Problem(absl::StrCat(where, ": attribute \"", attribute.name(), "\""), status);
    }
    function.defaults = std::move(defaults.attributes);
    in_function_ = true;
    for (int n = 0; n < proto.node_size(); ++n) Node(*proto.mutable_node(n), n, 1, function.body);
    in_function_ = false;
    const auto id = std::tuple(Domain(proto.domain()), proto.name(), Overload(proto, kOverloadOfFunction));
    if (!model.functions.emplace(id, std::move(function)).second)
      problems_.push_back(absl::StrCat(where, ": a second one has this name"));
  }

 private:
  void Problem(const std::string& where, const absl::Status& status) {
    problems_.push_back(absl::StrCat(where, ": ", status.message()));
  }

  static void DeclaredShape(const onnx::ValueInfoProto& info, OnnxGraph& graph) {
    if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) return;
    std::vector<int64_t> shape;
    for (const auto& dim : info.type().tensor_type().shape().dim()) {
      if (dim.value_case() != onnx::TensorShapeProto::Dimension::kDimValue || dim.dim_value() < 0) return;
      shape.push_back(dim.dim_value());
    }
    if (shape.size() <= kMostDimensions && NumElements(shape).value_or(kMostElements + 1) <= kMostElements)
      graph.shapes[info.name()] = std::move(shape);
  }

  void Input(const onnx::ValueInfoProto& info, OnnxGraph& graph) {
    OnnxInput input;
    input.name = info.name();
    const std::string where = absl::StrCat("input \"", info.name(), "\"");
    const onnx::TypeProto* whole = &info.type();
    input.is_optional = whole->has_optional_type();
    if (input.is_optional) whole = &whole->optional_type().elem_type();
    input.is_sequence = whole->has_sequence_type();
    if (input.is_sequence) whole = &whole->sequence_type().elem_type();
    if (!whole->has_tensor_type()) {
      problems_.push_back(absl::StrCat(where, ": it is neither a tensor nor a sequence of tensors"));
      return;
    }
    const onnx::TypeProto::Tensor& type = whole->tensor_type();
    std::optional<DType> dtype = OnnxDType(type.elem_type());
    if (const NarrowType* narrow = FindNarrowType(type.elem_type()); narrow != nullptr) {
      dtype = narrow->storage();
      input.element = std::string(narrow->name);
    }
    if (!dtype.has_value()) {
      problems_.push_back(
          absl::StrCat(where, ": elements of type ", OnnxDTypeName(type.elem_type()), " are not supported"));
      return;
    }
    input.dtype = *dtype;
    input.has_shape = type.has_shape();
    for (const auto& dim : type.shape().dim()) {
      OnnxDim d;
      if (dim.value_case() == onnx::TensorShapeProto::Dimension::kDimValue) d.size = dim.dim_value();
      if (dim.value_case() == onnx::TensorShapeProto::Dimension::kDimParam) d.symbol = dim.dim_param();
      input.dims.push_back(d);
    }
    graph.inputs.push_back(std::move(input));
  }

  void Node(onnx::NodeProto& proto, int index, int depth, OnnxGraph& graph) {
    OnnxNode node;
    node.op = proto.op_type();
    node.domain = Domain(proto.domain());
    node.overload = Overload(proto, kOverloadOfNode);
    node.name = proto.name().empty() ? absl::StrCat(proto.op_type().empty() ? "node" : proto.op_type(), "_", index)
                                     : proto.name();
    node.inputs.assign(proto.input().begin(), proto.input().end());
    node.outputs.assign(proto.output().begin(), proto.output().end());
    for (onnx::AttributeProto& attribute : *proto.mutable_attribute()) {
      const absl::Status status = Attribute(attribute, depth, node);
      if (!status.ok())
        Problem(absl::StrCat("node \"", node.name, "\" (", node.op, "): attribute \"", attribute.name(), "\""), status);
    }
    graph.nodes.push_back(std::move(node));
  }

  absl::Status Attribute(onnx::AttributeProto& proto, int depth, OnnxNode& node) {
    if (!proto.ref_attr_name().empty()) {
      if (!in_function_) return absl::InvalidArgumentError("it refers to an attribute of a function, and is in none");
      node.references[proto.name()] = proto.ref_attr_name();
      return absl::OkStatus();
    }
    OnnxAttribute& value = node.attributes[proto.name()];
    switch (proto.type()) {
      case onnx::AttributeProto::INT: value = static_cast<int64_t>(proto.i()); break;
      case onnx::AttributeProto::FLOAT: value = static_cast<double>(proto.f()); break;
      case onnx::AttributeProto::STRING: value = proto.s(); break;
      case onnx::AttributeProto::INTS: value = std::vector<int64_t>(proto.ints().begin(), proto.ints().end()); break;
      case onnx::AttributeProto::FLOATS:
        value = std::vector<double>(proto.floats().begin(), proto.floats().end());
        break;
      case onnx::AttributeProto::STRINGS:
        value = std::vector<std::string>(proto.strings().begin(), proto.strings().end());
        break;
      case onnx::AttributeProto::TENSOR: {
        OnnxTensor tensor = TakeTensor(*proto.mutable_t());
        HONE_ASSIGN_OR_RETURN(value, DecodeTensor(tensor, external_));
        break;
      }
      case onnx::AttributeProto::GRAPH: {
        if (depth >= kGraphDepth)
          return absl::InvalidArgumentError(absl::StrCat("graphs are nested more than ", kGraphDepth, " deep"));
        const auto graph = std::make_shared<OnnxGraph>();
        Graph(*proto.mutable_g(), depth + 1, *graph);
        value = std::shared_ptr<const OnnxGraph>(graph);
        break;
      }
      default: node.attributes.erase(proto.name());  // kinds no operator here has; one that needs it will miss it
    }
    return absl::OkStatus();
  }

  ExternalData external_;
  std::vector<std::string>& problems_;
  bool in_function_ = false;
};

}  // namespace

absl::StatusOr<OnnxModel> DecodeOnnx(google::protobuf::io::ZeroCopyInputStream& file, int64_t bytes,
                                     const std::string& folder, std::vector<std::string>& problems) {
  OnnxModel model;
  onnx::ModelProto proto;
  Decoder decoder(folder, problems);
  const bool decoded = ReadOnnxFile(
      file, bytes, [&](OnnxTensor tensor) { decoder.Initializer(std::move(tensor), model.graph); }, proto);
  if (file.ByteCount() == 0) return absl::InvalidArgumentError("not an ONNX model: the file is empty");
  if (!decoded) {
    return absl::InvalidArgumentError(
        "not an ONNX model, or one that is cut off or nested too deep: its messages cannot be decoded");
  }
  if (!proto.has_graph() || proto.ir_version() < 1) {
    return absl::InvalidArgumentError("not an ONNX model, or one that is cut off: it has no graph or no version");
  }
  model.producer = proto.producer_name();
  for (const onnx::StringStringEntryProto& entry : proto.metadata_props()) model.metadata[entry.key()] = entry.value();
  model.opsets = Opsets(proto);
  if (model.opsets.empty()) {
    return absl::InvalidArgumentError(
        "not a complete ONNX model: it does not say which operator sets it uses (it may be cut off)");
  }
  for (onnx::FunctionProto& function : *proto.mutable_functions()) decoder.Function(function, model);
  decoder.Graph(*proto.mutable_graph(), 0, model.graph);
  return model;
}

}  // namespace hone
