// The products of bytes that ONNX has as operators of their own are kernels that sum integers, not floats, and write
// bytes where they are quantised again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"
#include "tests/compiler/frontend/onnx_builder.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

onnx::TensorProto Bytes(const Ints& dims, int type, int64_t first) {
  onnx::TensorProto tensor;
  int64_t count = 1;
  for (const int64_t dim : dims) {
    tensor.add_dims(dim);
    count *= dim;
  }
  tensor.set_data_type(type);
  for (int64_t i = 0; i < count; ++i) tensor.add_int32_data(static_cast<int32_t>(first + i % 7));
  return tensor;
}

// The types of what a kernel's blocks sum: "int32 float32".
std::string SumsOf(const PlanTask& task) {
  std::string sums;
  ForEachStmt(task.func.body, [&](const Stmt& stmt) {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize != nullptr && realize->block.init)
      sums += (sums.empty() ? "" : " ") + ToText(realize->block.writes[0].buffer.type());
    return true;
  });
  return sums;
}

// A model of one operator, of which all but the first input are constants.
class OneOperator {
 public:
  explicit OneOperator(const Ints& image, int type = onnx::TensorProto::UINT8) { model_.Input("x", image, type); }
  // first, first + 1, .. first + 6, first, ..
  void Constant(const std::string& name, const Ints& dims, int type, int64_t first = 0) {
    *model_.graph().add_initializer() = Bytes(dims, type, first);
    model_.graph().mutable_initializer(model_.graph().initializer_size() - 1)->set_name(name);
  }
  void Floats(const std::string& name, const Ints& dims, size_t count) {
    model_.Floats(name, dims, std::vector<float>(count, 0.5f));
  }
  void Scale(const std::string& name) { Floats(name, {}, 1); }
  // A node whose first result is "y", the model's output.
  void Node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<OnnxAttr>& attrs = {}) {
    model_.Node(op, inputs, {"y"}, attrs);
    model_.Output("y");
  }
  void Between(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
               const std::vector<OnnxAttr>& attrs = {}) {
    model_.Node(op, inputs, {output}, attrs);
  }
  absl::StatusOr<Plan> Planned() const {
    const absl::StatusOr<Graph> graph = ImportOnnxBytes(model_.Bytes(), "", {});
    return graph.ok() ? MakePlan(*graph) : graph.status();
  }
  // The types of what the blocks of the plan's kernels sum, one after the other.
  std::string Sums() const {
    const absl::StatusOr<Plan> plan = Planned();
    if (!plan.ok()) return plan.status().ToString();
    std::string sums;
    for (const PlanTask& task : plan->tasks) sums += (sums.empty() || SumsOf(task).empty() ? "" : " ") + SumsOf(task);
    return sums;
  }
  std::string Sums(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<OnnxAttr>& attrs = {}) {
    Node(op, inputs, attrs);
    return Sums();
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

// ---- Vectors and batches

// numpy's matmul: of what the matrices are of, the dimensions in front broadcast.
struct ProductCase {
  const char* name;
  Ints a, b, result;
  Ints a_zero = {}, b_zero = {};
};
void PrintTo(const ProductCase& c, std::ostream* out) { *out << c.name; }
const ProductCase kProducts[] = {
    {"Matrices", {4, 8}, {8, 16}, {4, 16}, {4}, {16}},
    {"RowByMatrix", {8}, {8, 16}, {16}, {}, {16}},
    {"MatrixByColumn", {4, 8}, {8}, {4}, {4}, {}},
    {"RowByColumn", {8}, {8}, {}},
    {"RowByBatch", {8}, {3, 8, 16}, {3, 16}, {}, {16}},
    {"BatchByColumn", {3, 4, 8}, {8}, {3, 4}, {4}, {}},
    {"MatrixByBatch", {4, 8}, {3, 8, 16}, {3, 4, 16}, {4}, {16}},
    {"BatchByMatrix", {3, 4, 8}, {8, 16}, {3, 4, 16}, {4}, {16}},
    {"BatchesOfBatchesByBatch", {2, 3, 4, 8}, {3, 8, 16}, {2, 3, 4, 16}, {4}, {16}},
    {"BatchesThatBroadcast", {2, 1, 4, 8}, {3, 8, 16}, {2, 3, 4, 16}, {2, 1, 4, 1}, {3, 1, 16}},
};

// The extents of a matrix in at most two dimensions of batches: [.., rows, columns].
Ints InFour(Ints shape, bool left) {
  if (shape.size() == 1) shape.insert(left ? shape.begin() : shape.end(), 1);
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  return shape;
}
// Bytes(shape) at an index, each dimension of which may be of 1.
int64_t ByteAt(const Ints& shape, const Ints& index, int64_t first) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + (shape[d] == 1 ? 0 : index[d]);
  return first + at % 7;
}
constexpr int64_t kFirst = 200, kFirstZero = 198, kFirstWeight = -5, kFirstWeightZero = -3;

std::vector<int64_t> Reference(const ProductCase& c) {
  const Ints a = InFour(c.a, true), b = InFour(c.b, false);
  Ints a_zero = c.a_zero, b_zero = c.b_zero;
  if (a_zero.size() == 1) a_zero.push_back(1);
  a_zero = InFour(a_zero.empty() ? Ints{1} : a_zero, true);
  b_zero = InFour(b_zero.empty() ? Ints{1} : b_zero, true);
  std::vector<int64_t> sums;
  for (int64_t i = 0; i < std::max(a[0], b[0]); ++i) {
    for (int64_t j = 0; j < std::max(a[1], b[1]); ++j) {
      for (int64_t m = 0; m < a[2]; ++m) {
        for (int64_t n = 0; n < b[3]; ++n) {
          int64_t sum = 0;
          for (int64_t k = 0; k < a[3]; ++k) {
            sum += (ByteAt(a, {i, j, m, k}, kFirst) - ByteAt(a_zero, {i, j, m, 0}, kFirstZero)) *
                   (ByteAt(b, {i, j, k, n}, kFirstWeight) - ByteAt(b_zero, {i, j, 0, n}, kFirstWeightZero));
          }
          sums.push_back(sum);
        }
      }
    }
  }
  return sums;
}

// The only output, on the bytes that Bytes(shape) has.
NdArray Output(const Plan& plan) {
  const PlanTensor& x = plan.tensors[plan.inputs.at(0)];
  NdArray bytes(x.dtype, x.shape);
  for (int64_t i = 0; i < bytes.NumElements(); ++i) bytes.SetInt(i, kFirst + i % 7);
  const absl::StatusOr<std::vector<NdArray>> outputs = InterpretPlan(plan, {&bytes, 1});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? outputs->at(0) : NdArray();
}
std::vector<std::string> Words(const std::string& text) { return absl::StrSplit(text, ' '); }

class IntegerProduct : public testing::TestWithParam<ProductCase> {};
TEST_P(IntegerProduct, SumsIntegers) {
  const ProductCase& c = GetParam();
  OneOperator net(c.a);
  net.Constant("w", c.b, kInt8, kFirstWeight);
  net.Constant("x_zero", c.a_zero, kUInt8, kFirstZero);
  net.Constant("w_zero", c.b_zero, kInt8, kFirstWeightZero);
  net.Node("MatMulInteger", {"x", "w", "x_zero", "w_zero"});
  EXPECT_THAT(Words(net.Sums()), testing::Each("int32"));
  const absl::StatusOr<Plan> plan = net.Planned();
  ASSERT_TRUE(plan.ok()) << plan.status();
  const NdArray y = Output(*plan);
  EXPECT_EQ(y.dtype, kInt32);
  EXPECT_EQ(y.shape, c.result);
  std::vector<int64_t> sums;
  for (int64_t i = 0; i < y.NumElements(); ++i) sums.push_back(y.GetInt(i));
  EXPECT_EQ(sums, Reference(c));
}
TEST_P(IntegerProduct, IsQuantisedAgain) {
  const ProductCase& c = GetParam();
  OneOperator net(c.a);
  net.Constant("w", c.b, kInt8, kFirstWeight);
  net.Constant("x_zero", c.a_zero, kUInt8, kFirstZero);
  net.Constant("w_zero", c.b_zero, kInt8, kFirstWeightZero);
  net.Scale("w_scale");
  const bool by_row = c.a.size() > 1 && c.a_zero.size() == 1;
  for (const char* scale : {"x_scale", "y_scale"})
    net.Floats(scale, by_row ? c.a_zero : Ints{}, by_row ? static_cast<size_t>(c.a_zero[0]) : 1);
  net.Constant("y_zero", by_row ? c.a_zero : Ints{}, kUInt8, 100);
  net.Node("QLinearMatMul", {"x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"});
  EXPECT_THAT(Words(net.Sums()), testing::Each("int32"));
  const absl::StatusOr<Plan> plan = net.Planned();
  ASSERT_TRUE(plan.ok()) << plan.status();
  const NdArray y = Output(*plan);
  EXPECT_EQ(y.dtype, DType::UInt(8));
  ASSERT_EQ(y.shape, c.result);
  const std::vector<int64_t> sums = Reference(c);
  const int64_t columns = InFour(c.b, false)[3];
  for (int64_t i = 0; i < y.NumElements(); ++i) {
    const int64_t row = i / columns % InFour(c.a, true)[2], zero = 100 + (by_row ? row % 7 : 0);
    const double real =
        std::nearbyint(static_cast<double>(sums[static_cast<size_t>(i)]) / 2) + static_cast<double>(zero);
    EXPECT_EQ(static_cast<double>(y.GetInt(i)), std::clamp(real, 0.0, 255.0)) << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, IntegerProduct, testing::ValuesIn(kProducts),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(IntegerOperators, ScalarsAreNoMatrices) {
  OneOperator net(Ints{});
  net.Constant("w", {8}, kInt8);
  EXPECT_THAT(net.Sums("MatMulInteger", {"x", "w"}), testing::HasSubstr("a product of scalars"));
}

// ---- Requantisation

// One kernel computes, to bytes, and what follows only moves them: the sums, and the numbers that they stand for, are
// nowhere in memory.
void ExpectOneKernelOfBytes(const OneOperator& net) {
  const absl::StatusOr<Plan> plan = net.Planned();
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const PlanStep& step : plan->steps) {
    const PlanTask& task = plan->tasks[step.task];
    EXPECT_EQ(task.func.params.back().type(), DType::UInt(8)) << task.name;
    EXPECT_EQ(SumsOf(task), &step == &plan->steps.front() ? "int32" : "") << ToText(*plan);
    EXPECT_TRUE(&step == &plan->steps.front() || task.name.starts_with("transpose_")) << ToText(*plan);
  }
  for (const PlanTensor& tensor : plan->tensors) {
    EXPECT_TRUE(tensor.kind == PlanTensor::kConstant || tensor.dtype == DType::UInt(8)) << ToText(*plan);
  }
}

TEST(IntegerOperators, AConvolutionIsQuantisedInItsKernel) {
  OneOperator net({1, 8, 6, 5});
  net.Constant("w", {4, 8, 3, 3}, kInt8);
  for (const char* scale : {"x_scale", "w_scale", "y_scale"}) net.Scale(scale);
  net.Constant("x_zero", {}, kUInt8, 3);
  net.Constant("w_zero", {}, kInt8);
  net.Constant("y_zero", {}, kUInt8, 5);
  net.Floats("bias", {4}, 4);
  net.Between("DequantizeLinear", {"x", "x_scale", "x_zero"}, "x_real");
  net.Between("DequantizeLinear", {"w", "w_scale", "w_zero"}, "w_real");
  net.Between("Conv", {"x_real", "w_real", "bias"}, "conv", {{"pads", Ints{1, 1, 1, 1}}});
  net.Between("Relu", {"conv"}, "relu");
  net.Node("QuantizeLinear", {"relu", "y_scale", "y_zero"});
  ExpectOneKernelOfBytes(net);
}

TEST(IntegerOperators, QLinearConvIsQuantisedInItsKernel) {
  OneOperator net({1, 8, 6, 5});
  net.Constant("w", {4, 8, 3, 3}, kInt8);
  for (const char* scale : {"x_scale", "w_scale", "y_scale"}) net.Scale(scale);
  net.Constant("x_zero", {}, kUInt8, 3);
  net.Constant("w_zero", {}, kInt8);
  net.Constant("y_zero", {}, kUInt8, 5);
  net.Node("QLinearConv", {"x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"},
           {{"pads", Ints{1, 1, 1, 1}}});
  ExpectOneKernelOfBytes(net);
}

TEST(IntegerOperators, AProductIsQuantisedInItsKernel) {
  OneOperator net({4, 8});
  net.Constant("w", {8, 16}, kInt8);
  for (const char* scale : {"x_scale", "w_scale", "y_scale"}) net.Scale(scale);
  net.Constant("x_zero", {}, kUInt8, 3);
  net.Constant("w_zero", {}, kInt8);
  net.Constant("y_zero", {}, kUInt8, 5);
  net.Node("QLinearMatMul", {"x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"});
  ExpectOneKernelOfBytes(net);
}

// A product of floats is told from those.
TEST(IntegerOperators, MatMulSumsFloats) {
  OneOperator net({4, 8}, onnx::TensorProto::FLOAT);
  net.Floats("w", {8, 16}, 128);
  EXPECT_EQ(net.Sums("MatMul", {"x", "w"}), "float32");
}

}  // namespace
}  // namespace hone
