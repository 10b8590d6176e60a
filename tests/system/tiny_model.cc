#include "tests/system/tiny_model.h"

#include <algorithm>
#include <random>

#include "tests/system/harness.h"

namespace hone::system_test {
namespace {

std::vector<float> Values(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(random() >> 40) / (1 << 23) - 1);
  return values;
}

std::vector<float> Dense(const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& b,
                         int rows, int in, int out) {
  std::vector<float> y;
  for (int r = 0; r < rows; ++r) {
    for (int o = 0; o < out; ++o) {
      double sum = b[static_cast<size_t>(o)];
      for (int i = 0; i < in; ++i)
        sum += double{x[static_cast<size_t>(r * in + i)]} * w[static_cast<size_t>(i * out + o)];
      y.push_back(static_cast<float>(sum));
    }
  }
  return y;
}

}  // namespace

TinyModel::TinyModel()
    : w1(Values(kIn * kHidden, 1)), b1(Values(kHidden, 2)), w2(Values(kHidden * kOut, 3)), b2(Values(kOut, 4)) {}

onnx::ModelProto TinyModel::Proto() const {
  onnx::ModelProto model;
  model.set_ir_version(8);
  onnx::OperatorSetIdProto* opset = model.add_opset_import();
  opset->set_domain("");
  opset->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("tiny");
  SetType(*graph.add_input(), "x", {kRows, kIn});
  SetType(*graph.add_output(), "y", {kRows, kOut});
  AddInitializer(graph, "w1", {kIn, kHidden}, w1);
  AddInitializer(graph, "b1", {kHidden}, b1);
  AddInitializer(graph, "w2", {kHidden, kOut}, w2);
  AddInitializer(graph, "b2", {kOut}, b2);
  AddNode(graph, "Gemm", {"x", "w1", "b1"}, "h");
  AddNode(graph, "Relu", {"h"}, "r");
  AddNode(graph, "Gemm", {"r", "w2", "b2"}, "y");
  return model;
}

std::vector<float> TinyModel::Input(uint64_t seed) const { return Values(kRows * kIn, 100 + seed); }

std::vector<float> TinyModel::Reference(const std::vector<float>& x) const {
  std::vector<float> hidden = Dense(x, w1, b1, kRows, kIn, kHidden);
  for (float& value : hidden) value = std::max(value, 0.0f);
  return Dense(hidden, w2, b2, kRows, kHidden, kOut);
}

onnx::TensorProto* AddInitializer(onnx::GraphProto& graph, const std::string& name, const std::vector<int64_t>& shape,
                                  const std::vector<float>& values) {
  onnx::TensorProto* tensor = graph.add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : shape) tensor->add_dims(extent);
  tensor->set_raw_data(values.data(), values.size() * sizeof(float));
  return tensor;
}

void SetType(onnx::ValueInfoProto& info, const std::string& name, const std::vector<int64_t>& shape) {
  info.set_name(name);
  onnx::TypeProto::Tensor* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape();
  for (const int64_t extent : shape) type->mutable_shape()->add_dim()->set_dim_value(extent);
}

onnx::NodeProto* AddNode(onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
                         const std::string& output) {
  onnx::NodeProto* node = graph.add_node();
  node->set_name("make_" + output);
  node->set_op_type(op);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(output);
  return node;
}

void Save(const onnx::ModelProto& model, const std::string& path) { WriteAll(path, model.SerializeAsString()); }

std::string SaveTiny(const std::string& folder) {
  const std::string path = folder + "/tiny.onnx";
  Save(TinyModel().Proto(), path);
  return path;
}

}  // namespace hone::system_test
