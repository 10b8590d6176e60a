// Operators as they were up to operator set 6: the second operand is broadcast only where the attribute "broadcast"
// says so, its dimensions matched with those of the first from "axis" on.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

absl::StatusOr<Value> SecondOperand(NodeContext& c) {
  const Value a = Input(c, 0), b = Input(c, 1);
  if (c.IntAttr("broadcast", 0) == 0) {
    if (a.shape() == b.shape()) return b;
    return Unsupported(
        absl::StrCat("operands ", ToText(c.type(a.id())), " and ", ToText(c.type(b.id())), " without broadcast"));
  }
  const int64_t axis = c.IntAttr("axis", a.rank() - b.rank());
  if (axis < 0 || axis + b.rank() > a.rank())
    return Unsupported(absl::StrCat("axis ", axis, " for ", ToText(c.type(b.id()))));
  std::vector<int64_t> shape = b.shape();
  shape.resize(a.shape().size() - static_cast<size_t>(axis), 1);
  return Reshape(b, shape);
}

Outputs Import(NodeContext& c, std::string_view op) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  HONE_ASSIGN_OR_RETURN(const Value b, SecondOperand(c));
  return Results({Apply(op, {Input(c, 0), b})});
}

// The slope has one element, or one for each channel (dimension 1).
Outputs PRelu(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Value x = Input(c, 0), slope = Input(c, 1);
  if (x.rank() < 2 || slope.rank() != 1) return Results({Apply("prelu", {x, slope})});
  std::vector<int64_t> shape(x.shape().size() - 1, 1);
  shape[0] = slope.dim(0);
  return Results({Apply("prelu", {x, Reshape(slope, shape)})});
}

// alpha * A' * B' + beta * C
Outputs Gemm(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  c.IntAttr("broadcast", 0);
  Value a = Input(c, 0), b = Input(c, 1);
  if (a.rank() != 2 || b.rank() != 2) return Unsupported("operands that are not matrices");
  if (c.IntAttr("transA", 0) != 0) a = Transpose(a, {1, 0});
  if (c.IntAttr("transB", 0) != 0) b = Transpose(b, {1, 0});
  const Value product = MatMul(a, b), sum = Input(c, 2);
  const double alpha = c.FloatAttr("alpha", 1), beta = c.FloatAttr("beta", 1);
  return Results({(alpha == 1 ? product : product * alpha) + (beta == 1 ? sum : sum * beta)});
}

Outputs BatchNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(5, 5));
  if (c.IntAttr("is_test", 0) == 0 && c.num_outputs() > 1) return Unsupported("training is not supported");
  if (c.IntAttr("spatial", 1) == 0) return Unsupported("spatial 0 is not supported");
  c.FloatAttr("momentum", 0.9);
  const Value x = Input(c, 0);
  if (x.rank() < 2) return Unsupported(absl::StrCat("a batch norm of ", ToText(c.type(x.id()))));
  std::vector<int64_t> shape(x.shape().size() - 1, 1);
  shape[0] = x.dim(1);
  const Value scale = Input(c, 1) / Sqrt(Input(c, 4) + c.FloatAttr("epsilon", 1e-5));
  return Results({x * Reshape(scale, shape) + Reshape(Input(c, 2) - Input(c, 3) * scale, shape)});
}

}  // namespace

HONE_OPERATORS(early_broadcast) {
  return {{.onnx = {
               {"Add", 6, [](NodeContext& c) { return Import(c, "add"); }},
               {"Sub", 6, [](NodeContext& c) { return Import(c, "subtract"); }},
               {"Mul", 6, [](NodeContext& c) { return Import(c, "multiply"); }},
               {"Div", 6, [](NodeContext& c) { return Import(c, "divide"); }},
               {"Pow", 1, [](NodeContext& c) { return Import(c, "power"); }},
               {"And", 1, [](NodeContext& c) { return Import(c, "and"); }},
               {"Or", 1, [](NodeContext& c) { return Import(c, "or"); }},
               {"Xor", 1, [](NodeContext& c) { return Import(c, "xor"); }},
               {"Equal", 1, [](NodeContext& c) { return Import(c, "equal"); }},
               {"Greater", 1, [](NodeContext& c) { return Import(c, "greater"); }},
               {"Less", 1, [](NodeContext& c) { return Import(c, "less"); }},
               {"PRelu", 6, PRelu},
               {"Gemm", 6, Gemm},
               {"BatchNormalization", 6, BatchNormalization},
           }}};
}

}  // namespace hone
