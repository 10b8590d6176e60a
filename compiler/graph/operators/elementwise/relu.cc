// The rectified linear unit and its variants.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/elementwise/elementwise.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/elementwise.h"

namespace hone {
namespace {

// "alpha".
OpInfo LeakyReluOp() {
  return UnaryFunction("leaky_relu", Accepts::kFloat, [](const te::Tensor& x, const Attrs& a) {
    return topi::LeakyRelu(x, FloatAttr(a, "alpha"), "leaky_relu");
  });
}
OpInfo EluOp() {
  return UnaryFunction("elu", Accepts::kFloat,
                       [](const te::Tensor& x, const Attrs& a) { return topi::Elu(x, FloatAttr(a, "alpha"), "elu"); });
}

OpInfo PreluOp() {
  OpInfo op = BinaryFunction("prelu", Accepts::kFloat, topi::Prelu);
  const auto infer = op.infer;
  op.infer = [infer](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_ASSIGN_OR_RETURN(Types types, infer(in, attrs));
    if (types[0].shape != in[0].shape)
      return Refuse("prelu: the slope ", ToText(in[1]), " does not broadcast to ", ToText(in[0]));
    return types;
  };
  return op;
}

Outputs LeakyRelu(NodeContext& c) { return ImportAs(c, 1, "leaky_relu", {{"alpha", c.FloatAttr("alpha", 0.01)}}); }
Outputs Elu(NodeContext& c) { return ImportAs(c, 1, "elu", {{"alpha", c.FloatAttr("alpha", 1.0)}}); }
Outputs Selu(NodeContext& c) {
  const double alpha = c.FloatAttr("alpha", 1.67326319217681884765625),
               gamma = c.FloatAttr("gamma", 1.05070102214813232421875);
  HONE_ASSIGN_OR_RETURN(const std::vector<int> elu, ImportAs(c, 1, "elu", {{"alpha", alpha}}));
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

// The slope is aligned at the last dimension, as numpy does; of one element a channel it is [C, 1, 1] by then.
Outputs PRelu(NodeContext& c) { return ImportAs(c, 2, "prelu"); }

}  // namespace

HONE_OPERATORS(relu) {
  return {{.graph = {UnaryFunction("relu", Accepts::kNumber, topi::Relu), LeakyReluOp(), EluOp(), PreluOp()},
           .onnx = {
               {"Relu", 6, [](NodeContext& c) { return ImportAs(c, 1, "relu"); }},
               {"LeakyRelu", 6, LeakyRelu},
               {"PRelu", 7, PRelu},
               {"ThresholdedRelu", 10, ThresholdedRelu, "", true},
               {"Elu", 6, Elu, "", true},
               {"Selu", 6, Selu, "", true},
               {"Celu", 12, Celu, "", true},
           }}};
}

}  // namespace hone
