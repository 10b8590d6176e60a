#include "tests/compiler/frontend/onnx_builder.h"

#include "compiler/support/random.h"

namespace hone {
namespace {

struct SetAttr {
  onnx::AttributeProto& attr;
  void operator()(int64_t v) { attr.set_type(onnx::AttributeProto::INT), attr.set_i(v); }
  void operator()(float v) { attr.set_type(onnx::AttributeProto::FLOAT), attr.set_f(v); }
  void operator()(const std::string& v) { attr.set_type(onnx::AttributeProto::STRING), attr.set_s(v); }
  void operator()(const std::vector<int64_t>& v) {
    attr.set_type(onnx::AttributeProto::INTS);
    for (const int64_t i : v) attr.add_ints(i);
  }
  void operator()(const std::vector<float>& v) {
    attr.set_type(onnx::AttributeProto::FLOATS);
    for (const float f : v) attr.add_floats(f);
  }
  void operator()(const onnx::TensorProto& v) {
    attr.set_type(onnx::AttributeProto::TENSOR);
    *attr.mutable_t() = v;
  }
  void operator()(const onnx::GraphProto& v) {
    attr.set_type(onnx::AttributeProto::GRAPH);
    *attr.mutable_g() = v;
  }
};

}  // namespace

OnnxBuilder::OnnxBuilder(int64_t opset) {
  model_.set_ir_version(8);
  model_.set_producer_name("test");
  onnx::OperatorSetIdProto* set = model_.add_opset_import();
  set->set_domain("");
  set->set_version(opset);
  graph().set_name("test");
}

OnnxBuilder& OnnxBuilder::Input(const std::string& name, const std::vector<int64_t>& dims, int type) {
  onnx::ValueInfoProto* info = graph().add_input();
  info->set_name(name);
  onnx::TypeProto::Tensor* tensor = info->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const int64_t d : dims) {
    auto* dim = tensor->mutable_shape()->add_dim();
    if (d < 0) dim->set_dim_param(d == -1 ? "n" : "n" + std::to_string(-d - 1));
    else dim->set_dim_value(d);
  }
  return *this;
}

OnnxBuilder& OnnxBuilder::Output(const std::string& name) {
  graph().add_output()->set_name(name);
  return *this;
}

OnnxBuilder& OnnxBuilder::Floats(const std::string& name, const std::vector<int64_t>& dims,
                                 const std::vector<float>& values) {
  *graph().add_initializer() = FloatTensor(dims, values);
  graph().mutable_initializer()->rbegin()->set_name(name);
  return *this;
}

OnnxBuilder& OnnxBuilder::Ints(const std::string& name, const std::vector<int64_t>& dims,
                               const std::vector<int64_t>& values) {
  *graph().add_initializer() = IntTensor(dims, values);
  graph().mutable_initializer()->rbegin()->set_name(name);
  return *this;
}

onnx::NodeProto& OnnxBuilder::Node(const std::string& op, const std::vector<std::string>& inputs,
                                   const std::vector<std::string>& outputs, const std::vector<OnnxAttr>& attrs,
                                   const std::string& name) {
  onnx::NodeProto& node = *graph().add_node();
  node.set_op_type(op);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  for (const OnnxAttr& attr : attrs) {
    onnx::AttributeProto& proto = *node.add_attribute();
    proto.set_name(attr.name);
    std::visit(SetAttr{proto}, attr.value);
  }
  return node;
}

onnx::TensorProto FloatTensor(const std::vector<int64_t>& dims, const std::vector<float>& values) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t d : dims) tensor.add_dims(d);
  for (const float v : values) tensor.add_float_data(v);
  return tensor;
}

onnx::TensorProto IntTensor(const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::INT64);
  for (const int64_t d : dims) tensor.add_dims(d);
  tensor.set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return tensor;
}

std::vector<float> Numbers(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(2 * random.Uniform() - 1));
  return numbers;
}

}  // namespace hone
