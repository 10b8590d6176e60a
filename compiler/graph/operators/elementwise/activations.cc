// Smooth activations, and the piecewise linear functions that stand in for them.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

// "alpha", "beta".
OpInfo HardSigmoidOp() {
  return UnaryFunction("hard_sigmoid", Accepts::kFloat, [](const te::Tensor& x, const Attrs& a) {
    return topi::HardSigmoid(x, FloatAttr(a, "alpha"), FloatAttr(a, "beta"), "hard_sigmoid");
  });
}

Outputs HardSigmoid(NodeContext& c) {
  return ImportAs(c, 1, "hard_sigmoid", {{"alpha", c.FloatAttr("alpha", 0.2)}, {"beta", c.FloatAttr("beta", 0.5)}});
}
Outputs Gelu(NodeContext& c) {
  const std::string approximate = c.StringAttr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    return Unsupported(absl::StrCat("approximate is \"", approximate, "\""));
  return ImportAs(c, 1, approximate == "tanh" ? "gelu_tanh" : "gelu");
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

}  // namespace

HONE_OPERATORS(activations) {
  constexpr Accepts kFloat = Accepts::kFloat;
  return {{.graph = {UnaryFunction("sigmoid", kFloat, topi::Sigmoid), HardSigmoidOp(),
                     UnaryFunction("silu", kFloat, topi::Silu), UnaryFunction("hard_swish", kFloat, topi::HardSwish),
                     UnaryFunction("gelu", kFloat, topi::Gelu), UnaryFunction("gelu_tanh", kFloat, topi::GeluTanh),
                     UnaryFunction("softplus", kFloat, topi::Softplus)},
           .onnx = {
               {"Sigmoid", 6, [](NodeContext& c) { return ImportAs(c, 1, "sigmoid"); }, "", true},
               {"HardSigmoid", 6, HardSigmoid, "", true},
               {"HardSwish", 14, [](NodeContext& c) { return ImportAs(c, 1, "hard_swish"); }, "", true},
               {"Gelu", 20, Gelu, "", true},
               {"Softplus", 1, [](NodeContext& c) { return ImportAs(c, 1, "softplus"); }, "", true},
               {"Softsign", 1, Softsign, "", true},
               {"Mish", 18, Mish, "", true},
           }}};
}

}  // namespace hone
