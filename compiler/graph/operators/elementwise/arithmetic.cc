// Arithmetic of two operands; the sign and the absolute value of one.
#include <algorithm>

#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

OpInfo WithNeutral(double neutral, OpInfo op) {
  op.neutral = neutral;
  return op;
}

// Float32 arrays, the second's shape being that of the first's last dimensions or ones: what the folding of scales into
// weights needs.
bool IsOfLastDimensions(std::span<const TensorType> in, const TensorType& out) {
  if (in[0].dtype != kFloat32 || in[1].dtype != kFloat32 || in[0].shape != out.shape) return false;
  std::vector<int64_t> suffix = in[1].shape;
  while (!suffix.empty() && suffix[0] == 1) suffix.erase(suffix.begin());
  return suffix.size() <= out.shape.size() && std::equal(suffix.rbegin(), suffix.rend(), out.shape.rbegin());
}

template <class F>
OpInfo WithFloatArrays(F f, OpInfo op) {
  op.evaluation.takes = IsOfLastDimensions;
  op.evaluation.run = [f](DirectEvaluation::Arrays in, const Attrs&, const TensorType& out) {
    NdArray y(kFloat32, out.shape);
    const float *a = in[0]->As<float>(), *b = in[1]->As<float>();
    float* to = y.As<float>();
    const int64_t n = in[0]->NumElements(), period = in[1]->NumElements();
    for (int64_t i = 0; i < n; i += period) {
      for (int64_t j = 0; j < period; ++j) to[i + j] = f(a[i + j], b[j]);
    }
    return y;
  };
  return op;
}

OpInfo AddOp() {
  return WithFloatArrays([](float a, float b) { return a + b; },
                         Commutative(WithNeutral(0, BinaryFunction("add", Accepts::kNumber, topi::Add))));
}
OpInfo SubtractOp() {
  return WithFloatArrays([](float a, float b) { return a - b; },
                         WithNeutral(0, BinaryFunction("subtract", Accepts::kNumber, topi::Subtract)));
}
OpInfo MultiplyOp() {
  return WithFloatArrays([](float a, float b) { return a * b; },
                         Commutative(WithNeutral(1, BinaryFunction("multiply", Accepts::kNumber, topi::Multiply))));
}
OpInfo DivideOp() {
  return WithFloatArrays([](float a, float b) { return a / b; },
                         WithNeutral(1, BinaryFunction("divide", Accepts::kNumber, topi::Divide)));
}

Outputs Mod(NodeContext& c) { return ImportAs(c, 2, c.IntAttr("fmod", 0) != 0 ? "fmod" : "mod"); }

}  // namespace

HONE_OPERATORS(arithmetic) {
  constexpr Accepts kNumber = Accepts::kNumber;
  return {{.graph = {AddOp(), SubtractOp(), MultiplyOp(), DivideOp(), BinaryFunction("mod", kNumber, topi::Mod),
                     BinaryFunction("fmod", kNumber, topi::Fmod), UnaryFunction("abs", kNumber, topi::Abs),
                     UnaryFunction("negative", kNumber, topi::Negative), UnaryFunction("sign", kNumber, topi::Sign)},
           .onnx = {
               {"Add", 7, [](NodeContext& c) { return ImportAs(c, 2, "add"); }},
               {"Sub", 7, [](NodeContext& c) { return ImportAs(c, 2, "subtract"); }},
               {"Mul", 7, [](NodeContext& c) { return ImportAs(c, 2, "multiply"); }},
               {"Div", 7, [](NodeContext& c) { return ImportAs(c, 2, "divide"); }},
               {"Mod", 10, Mod},
               {"Abs", 6, [](NodeContext& c) { return ImportAs(c, 1, "abs"); }},
               {"Neg", 6, [](NodeContext& c) { return ImportAs(c, 1, "negative"); }},
               {"Sign", 9, [](NodeContext& c) { return ImportAs(c, 1, "sign"); }},
           }}};
}

}  // namespace hone
