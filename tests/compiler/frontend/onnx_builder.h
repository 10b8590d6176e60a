// Small ONNX models for tests, made of libonnx's message classes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include <onnx/onnx_pb.h>

namespace hone {

using OnnxValue = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, onnx::TensorProto,
                               onnx::GraphProto>;
struct OnnxAttr {
  std::string name;
  OnnxValue value;
};

class OnnxBuilder {
 public:
  explicit OnnxBuilder(int64_t opset = 17);
  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  // Dimensions below 0 are symbolic, named "n", "n1", ...
  OnnxBuilder& Input(const std::string& name, const std::vector<int64_t>& dims, int type = onnx::TensorProto::FLOAT);
  OnnxBuilder& Output(const std::string& name);
  OnnxBuilder& Floats(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values);
  OnnxBuilder& Ints(const std::string& name, const std::vector<int64_t>& dims, const std::vector<int64_t>& values);
  onnx::NodeProto& Node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::vector<OnnxAttr>& attrs = {},
                        const std::string& name = "");
  std::string Bytes() const { return model_.SerializeAsString(); }

 private:
  onnx::ModelProto model_;
};

onnx::TensorProto FloatTensor(const std::vector<int64_t>& dims, const std::vector<float>& values);
onnx::TensorProto IntTensor(const std::vector<int64_t>& dims, const std::vector<int64_t>& values);

// Numbers in [-1, 1) that look random and are the same on every run.
std::vector<float> Numbers(int64_t count, uint64_t seed);

}  // namespace hone
