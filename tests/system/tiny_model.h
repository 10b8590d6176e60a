// A network small enough to tune in seconds, as an ONNX file, and what it computes by plain loops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include <onnx/onnx_pb.h>

namespace hone::system_test {

// y = relu(x W1 + b1) W2 + b2 for 12 rows of 50: W1 is square, and so is y, so that programs with exchanged axes stay
// in bounds and are wrong all the same. Two tasks, whose sizes fill no vector: neither comes near the limit of the
// machine, so that a job goes on until its trials are spent.
struct TinyModel {
  static constexpr int kRows = 12, kIn = 50, kHidden = 50, kOut = 12;
  TinyModel();
  std::vector<float> w1, b1, w2, b2;

  onnx::ModelProto Proto() const;
  std::vector<float> Input(uint64_t seed) const;
  std::vector<float> Reference(const std::vector<float>& x) const;  // accumulated in double
};

onnx::TensorProto* AddInitializer(onnx::GraphProto& graph, const std::string& name, const std::vector<int64_t>& shape,
                                  const std::vector<float>& values);
void SetType(onnx::ValueInfoProto& info, const std::string& name, const std::vector<int64_t>& shape);
onnx::NodeProto* AddNode(onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& inputs,
                         const std::string& output);
void Save(const onnx::ModelProto& model, const std::string& path);
// Writes the model as folder/tiny.onnx and returns the path.
std::string SaveTiny(const std::string& folder);

}  // namespace hone::system_test
