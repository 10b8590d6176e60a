// The products of bytes that ONNX has as operators of their own are kernels that sum integers, not floats.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/planner.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"
#include "tests/compiler/frontend/onnx_builder.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

onnx::TensorProto Bytes(const Ints& dims, int type) {
  onnx::TensorProto tensor;
  int64_t count = 1;
  for (const int64_t dim : dims) {
    tensor.add_dims(dim);
    count *= dim;
  }
  tensor.set_data_type(type);
  for (int64_t i = 0; i < count; ++i) tensor.add_int32_data(static_cast<int32_t>(i % 7));
  return tensor;
}

// A model of one operator, of which all but the first input are constants.
class OneOperator {
 public:
  explicit OneOperator(const Ints& image, int type = onnx::TensorProto::UINT8) { model_.Input("x", image, type); }
  void Constant(const std::string& name, const Ints& dims, int type) {
    *model_.graph().add_initializer() = Bytes(dims, type);
    model_.graph().mutable_initializer(model_.graph().initializer_size() - 1)->set_name(name);
  }
  void Floats(const std::string& name, const Ints& dims, size_t count) {
    model_.Floats(name, dims, std::vector<float>(count, 0.5f));
  }
  void Scale(const std::string& name) { Floats(name, {}, 1); }
  // The types of what the blocks of the plan's kernels sum, one after the other.
  std::string Sums(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<OnnxAttr>& attrs = {}) {
    model_.Node(op, inputs, {"y"}, attrs);
    model_.Output("y");
    const absl::StatusOr<Graph> graph = ImportOnnxBytes(model_.Bytes(), "", {});
    if (!graph.ok()) return graph.status().ToString();
    const absl::StatusOr<Plan> plan = MakePlan(*graph);
    if (!plan.ok()) return plan.status().ToString();
    std::string sums;
    for (const PlanTask& task : plan->tasks) {
      ForEachStmt(task.func.body, [&](const Stmt& stmt) {
        const BlockRealize* realize = stmt.As<BlockRealize>();
        if (realize != nullptr && realize->block.init) {
          sums += (sums.empty() ? "" : " ") + ToText(realize->block.writes[0].buffer.type());
        }
        return true;
      });
    }
    return sums;
  }

 private:
  OnnxBuilder model_;
};

constexpr int kUInt8 = onnx::TensorProto::UINT8, kInt8 = onnx::TensorProto::INT8;

TEST(IntegerOperators, MatMulIntegerSumsIntegers) {
  OneOperator net({4, 8});
  net.Constant("w", {8, 16}, kInt8);
  EXPECT_EQ(net.Sums("MatMulInteger", {"x", "w"}), "int32");
}

TEST(IntegerOperators, QLinearMatMulSumsIntegers) {
  OneOperator net({4, 8});
  net.Constant("w", {8, 16}, kInt8);
  for (const char* scale : {"x_scale", "w_scale", "y_scale"}) net.Scale(scale);
  net.Constant("x_zero", {}, kUInt8);
  net.Constant("w_zero", {}, kInt8);
  net.Constant("y_zero", {}, kUInt8);
  EXPECT_EQ(net.Sums("QLinearMatMul", {"x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"}),
            "int32");
}

TEST(IntegerOperators, ConvIntegerSumsIntegers) {
  OneOperator net({1, 8, 6, 5});
  net.Constant("w", {4, 8, 3, 3}, kInt8);
  EXPECT_EQ(net.Sums("ConvInteger", {"x", "w"}, {{"pads", Ints{1, 1, 1, 1}}}), "int32");
}

TEST(IntegerOperators, QLinearConvSumsIntegers) {
  OneOperator net({1, 8, 6, 5});
  net.Constant("w", {4, 8, 3, 3}, kInt8);
  for (const char* scale : {"x_scale", "w_scale", "y_scale"}) net.Scale(scale);
  net.Constant("x_zero", {}, kUInt8);
  net.Constant("w_zero", {}, kInt8);
  net.Constant("y_zero", {}, kUInt8);
  EXPECT_EQ(net.Sums("QLinearConv", {"x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"},
                     {{"pads", Ints{1, 1, 1, 1}}}),
            "int32");
}

// A product of floats is told from those.
TEST(IntegerOperators, MatMulSumsFloats) {
  OneOperator net({4, 8}, onnx::TensorProto::FLOAT);
  net.Floats("w", {8, 16}, 128);
  EXPECT_EQ(net.Sums("MatMul", {"x", "w"}), "float32");
}

}  // namespace
}  // namespace hone
