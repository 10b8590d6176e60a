// One element in, one element out.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/onnx_operators.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// An ONNX operator that is one of ours, of so many inputs.
template <int kInputs>
Outputs Plain(NodeContext& c, std::string_view op, Attrs attrs = {}) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(kInputs, kInputs));
  return One(c.Emit(op, c.inputs(), std::move(attrs)));
}

// A constant exponent is kept apart: x^2 is x * x.
Outputs Pow(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const GraphValue& exponent = c.graph().values[c.input(1)];
  const DType dtype = c.type(c.input(0)).dtype;
  if (exponent.is_constant() && NumElements(exponent.type.shape) == 1 && dtype.is_float() &&
      exponent.type.rank() <= c.rank(c.input(0))) {
    return One(c.Emit("pow_scalar", {c.input(0)}, {{"exponent", exponent.data->Get(0)}}));
  }
  if (!dtype.is_float()) {  // of integers: shapes, so small that float64 is exact
    HONE_ASSIGN_OR_RETURN(const int a, c.Emit("cast", {c.input(0)}, {{"to", std::string("float64")}}));
    HONE_ASSIGN_OR_RETURN(const int b, c.Emit("cast", {c.input(1)}, {{"to", std::string("float64")}}));
    HONE_ASSIGN_OR_RETURN(const int y, c.Emit("power", {a, b}));
    return One(c.Emit("cast", {y}, {{"to", ToText(dtype)}}));
  }
  HONE_ASSIGN_OR_RETURN(const int b, c.Emit("cast", {c.input(1)}, {{"to", ToText(dtype)}}));
  return One(c.Emit("power", {c.input(0), b}));
}

Outputs Mod(NodeContext& c) { return Plain<2>(c, c.IntAttr("fmod", 0) != 0 ? "fmod" : "mod"); }

// Max, Min, Sum of any number of inputs.
Outputs Variadic(NodeContext& c, std::string_view op) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1 << 16));
  int result = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!c.HasInput(i)) return Unsupported(absl::StrCat("input ", i, " is left out"));
    HONE_ASSIGN_OR_RETURN(result, c.Emit(op, {result, c.input(i)}));
  }
  return std::vector<int>{result};
}

Outputs Mean(NodeContext& c) {
  HONE_ASSIGN_OR_RETURN(const std::vector<int> sum, Variadic(c, "add"));
  return One(c.Emit("multiply", {sum[0], c.Scalar(c.type(sum[0]).dtype, 1.0 / c.num_inputs())}));
}

Outputs Clip(NodeContext& c) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, c.opset() < 11 ? 1 : 3));
  double bounds[2] = {-kInfinity, kInfinity};
  int result = c.input(0);
  if (c.opset() < 11) {
    bounds[0] = c.FloatAttr("min", -kInfinity);
    bounds[1] = c.FloatAttr("max", kInfinity);
  }
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (!c.HasInput(i)) continue;
    if (NumElements(c.shape(c.input(i))) != 1)
      return Unsupported(absl::StrCat("a bound of shape ", ToText(c.type(c.input(i)))));
    if (c.graph().values[c.input(i)].is_constant()) {
      HONE_ASSIGN_OR_RETURN(bounds[i - 1], c.Number(i, "a bound"));
    } else {
      HONE_ASSIGN_OR_RETURN(const int bound, c.Reshape(c.input(i), {}));
      HONE_ASSIGN_OR_RETURN(result, c.Emit(i == 1 ? "maximum" : "minimum", {result, bound}));
    }
  }
  if (bounds[0] == -kInfinity && bounds[1] == kInfinity) return std::vector<int>{result};
  if (bounds[0] == 0 && bounds[1] == kInfinity) return One(c.Emit("relu", {result}));
  return One(c.Emit("clip", {result}, {{"min", bounds[0]}, {"max", bounds[1]}}));
}

Outputs LeakyRelu(NodeContext& c) { return Plain<1>(c, "leaky_relu", {{"alpha", c.FloatAttr("alpha", 0.01)}}); }
Outputs Elu(NodeContext& c) { return Plain<1>(c, "elu", {{"alpha", c.FloatAttr("alpha", 1.0)}}); }
Outputs HardSigmoid(NodeContext& c) {
  return Plain<1>(c, "hard_sigmoid", {{"alpha", c.FloatAttr("alpha", 0.2)}, {"beta", c.FloatAttr("beta", 0.5)}});
}
Outputs Selu(NodeContext& c) {
  const double alpha = c.FloatAttr("alpha", 1.67326319217681884765625),
               gamma = c.FloatAttr("gamma", 1.05070102214813232421875);
  HONE_ASSIGN_OR_RETURN(const std::vector<int> elu, Plain<1>(c, "elu", {{"alpha", alpha}}));
  return One(c.Emit("multiply", {elu[0], c.Scalar(c.type(elu[0]).dtype, gamma)}));
}
// max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) = elu(x / alpha) * alpha with elu's alpha 1, for alpha > 0
Outputs Celu(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const double alpha = c.FloatAttr("alpha", 1.0);
  if (!(alpha > 0)) return Unsupported(absl::StrCat("alpha is ", alpha, "; it must be positive"));
  const DType dtype = c.type(c.input(0)).dtype;
  HONE_ASSIGN_OR_RETURN(const int scaled, c.Emit("multiply", {c.input(0), c.Scalar(dtype, 1 / alpha)}));
  HONE_ASSIGN_OR_RETURN(const int elu, c.Emit("elu", {scaled}, {{"alpha", 1.0}}));
  return One(c.Emit("multiply", {elu, c.Scalar(dtype, alpha)}));
}
Outputs ThresholdedRelu(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const DType dtype = c.type(c.input(0)).dtype;
  HONE_ASSIGN_OR_RETURN(const int above, c.Emit("greater", {c.input(0), c.Scalar(dtype, c.FloatAttr("alpha", 1.0))}));
  return One(c.Emit("where", {above, c.input(0), c.Scalar(dtype, 0)}));
}
Outputs Softsign(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_ASSIGN_OR_RETURN(const int abs, c.Emit("abs", {c.input(0)}));
  HONE_ASSIGN_OR_RETURN(const int below, c.Emit("add", {abs, c.Scalar(c.type(abs).dtype, 1)}));
  return One(c.Emit("divide", {c.input(0), below}));
}
Outputs Mish(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_ASSIGN_OR_RETURN(const int softplus, c.Emit("softplus", {c.input(0)}));
  HONE_ASSIGN_OR_RETURN(const int tanh, c.Emit("tanh", {softplus}));
  return One(c.Emit("multiply", {c.input(0), tanh}));
}
Outputs Tan(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_ASSIGN_OR_RETURN(const int sin, c.Emit("sin", {c.input(0)}));
  HONE_ASSIGN_OR_RETURN(const int cos, c.Emit("cos", {c.input(0)}));
  return One(c.Emit("divide", {sin, cos}));
}
Outputs Gelu(NodeContext& c) {
  const std::string approximate = c.StringAttr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return Unsupported(absl::StrCat("approximate is \"", approximate, "\""));
  return Plain<1>(c, approximate == "tanh" ? "gelu_tanh" : "gelu");
}

// The slope is aligned at the last dimension, as numpy does; of one element a channel it is [C, 1, 1] by then.
Outputs PRelu(NodeContext& c) { return Plain<2>(c, "prelu"); }

Outputs IsInf(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const bool negative = c.IntAttr("detect_negative", 1) != 0, positive = c.IntAttr("detect_positive", 1) != 0;
  HONE_ASSIGN_OR_RETURN(const int infinite, c.Emit("isinf", {c.input(0)}));
  if (negative && positive) return std::vector<int>{infinite};
  HONE_ASSIGN_OR_RETURN(const int sign,
                        c.Emit(positive ? "greater" : "less", {c.input(0), c.Scalar(c.type(c.input(0)).dtype, 0)}));
  HONE_ASSIGN_OR_RETURN(const int one_sided, c.Emit("and", {infinite, sign}));
  if (negative || positive) return std::vector<int>{one_sided};
  return One(c.Emit("and", {infinite, c.Scalar(kBool, 0)}));
}

// Bools compare as integers.
Outputs Equal(NodeContext& c) { return Plain<2>(c, "equal"); }

constexpr OnnxOperator kOperators[] = {
    {"Abs", 6, [](NodeContext& c) { return Plain<1>(c, "abs"); }},
    {"Add", 7, [](NodeContext& c) { return Plain<2>(c, "add"); }},
    {"And", 7, [](NodeContext& c) { return Plain<2>(c, "and"); }},
    {"BitwiseAnd", 18, [](NodeContext& c) { return Plain<2>(c, "bitwise_and"); }},
    {"BitwiseOr", 18, [](NodeContext& c) { return Plain<2>(c, "bitwise_or"); }},
    {"BitwiseXor", 18, [](NodeContext& c) { return Plain<2>(c, "bitwise_xor"); }},
    {"Ceil", 6, [](NodeContext& c) { return Plain<1>(c, "ceil"); }},
    {"Celu", 12, Celu, "", true},
    {"Clip", 6, Clip},
    {"Cos", 7, [](NodeContext& c) { return Plain<1>(c, "cos"); }},
    {"Div", 7, [](NodeContext& c) { return Plain<2>(c, "divide"); }},
    {"Elu", 6, Elu, "", true},
    {"Equal", 7, Equal},
    {"Erf", 9, [](NodeContext& c) { return Plain<1>(c, "erf"); }, "", true},
    {"Exp", 6, [](NodeContext& c) { return Plain<1>(c, "exp"); }, "", true},
    {"Floor", 6, [](NodeContext& c) { return Plain<1>(c, "floor"); }},
    {"Gelu", 20, Gelu, "", true},
    {"Greater", 7, [](NodeContext& c) { return Plain<2>(c, "greater"); }},
    {"GreaterOrEqual", 12, [](NodeContext& c) { return Plain<2>(c, "greater_equal"); }},
    {"HardSigmoid", 6, HardSigmoid, "", true},
    {"HardSwish", 14, [](NodeContext& c) { return Plain<1>(c, "hard_swish"); }, "", true},
    {"IsInf", 10, IsInf},
    {"IsNaN", 9, [](NodeContext& c) { return Plain<1>(c, "isnan"); }},
    {"LeakyRelu", 6, LeakyRelu},
    {"Less", 7, [](NodeContext& c) { return Plain<2>(c, "less"); }},
    {"LessOrEqual", 12, [](NodeContext& c) { return Plain<2>(c, "less_equal"); }},
    {"Log", 6, [](NodeContext& c) { return Plain<1>(c, "log"); }, "", true, NarrowElements::kRefuses, true},
    {"Max", 6, [](NodeContext& c) { return Variadic(c, "maximum"); }},
    {"Mean", 6, Mean, "", true},
    {"Min", 6, [](NodeContext& c) { return Variadic(c, "minimum"); }},
    {"Mish", 18, Mish, "", true},
    {"Mod", 10, Mod},
    {"Mul", 7, [](NodeContext& c) { return Plain<2>(c, "multiply"); }},
    {"Neg", 6, [](NodeContext& c) { return Plain<1>(c, "negative"); }},
    {"Not", 1, [](NodeContext& c) { return Plain<1>(c, "not"); }},
    {"Or", 7, [](NodeContext& c) { return Plain<2>(c, "or"); }},
    {"PRelu", 7, PRelu},
    {"Pow", 7, Pow, "", true},
    {"Reciprocal", 6, [](NodeContext& c) { return Plain<1>(c, "reciprocal"); }},
    {"Relu", 6, [](NodeContext& c) { return Plain<1>(c, "relu"); }},
    {"Round", 11, [](NodeContext& c) { return Plain<1>(c, "round"); }},
    {"Selu", 6, Selu, "", true},
    {"Sigmoid", 6, [](NodeContext& c) { return Plain<1>(c, "sigmoid"); }, "", true},
    {"Sign", 9, [](NodeContext& c) { return Plain<1>(c, "sign"); }},
    {"Sin", 7, [](NodeContext& c) { return Plain<1>(c, "sin"); }},
    {"Softplus", 1, [](NodeContext& c) { return Plain<1>(c, "softplus"); }, "", true},
    {"Softsign", 1, Softsign, "", true},
    {"Sqrt", 6, [](NodeContext& c) { return Plain<1>(c, "sqrt"); }, "", true, NarrowElements::kRefuses, true},
    {"Sub", 7, [](NodeContext& c) { return Plain<2>(c, "subtract"); }},
    {"Sum", 6, [](NodeContext& c) { return Variadic(c, "add"); }, "", true},
    {"Tan", 7, Tan, "", true},
    {"Tanh", 6, [](NodeContext& c) { return Plain<1>(c, "tanh"); }, "", true},
    {"ThresholdedRelu", 10, ThresholdedRelu, "", true},
    {"Where", 9, [](NodeContext& c) { return Plain<3>(c, "where"); }},
    {"Xor", 7, [](NodeContext& c) { return Plain<2>(c, "xor"); }},
};

}  // namespace

std::span<const OnnxOperator> ElementwiseOperators() { return kOperators; }

}  // namespace hone
