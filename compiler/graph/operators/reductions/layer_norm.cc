// Normalisation over the dimensions from an axis on, with the mean taken off (layer norm) or not (RMS norm).
#include "compiler/graph/operators/reductions/layer_norm.h"

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/norm.h"

namespace hone {

absl::Status CheckStashType(NodeContext& c) {
  const int64_t type = c.IntAttr("stash_type", 1);
  if (type == 1 || type == 10 || type == 16) return absl::OkStatus();
  return Unsupported(absl::StrCat("stash_type is ", OnnxDTypeName(type)));
}

namespace {

using Ints = std::vector<int64_t>;

// x, scale [x.shape[axis:]], bias (may be left out): "axis", "epsilon".
OpInfo LayerNormOp(std::string_view name, bool has_mean) {
  OpInfo op{.name = name, .kind = OpKind::kAnchor};
  op.reduces = Reduces::kFromAxis;
  op.infer = [name](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    if (in.size() != 2 && in.size() != 3) return Refuse(in.size(), " inputs instead of 2 or 3");
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    const std::vector<int64_t> normal(in[0].shape.begin() + axis, in[0].shape.end());
    for (const TensorType& type : in) {
      if (!type.dtype.is_float() || type.dtype != in[0].dtype)
        return Refuse(name, " of ", ToText(type), " beside ", ToText(in[0]));
    }
    for (const TensorType& type : in.subspan(1)) {
      if (type.shape != normal)
        return Refuse(name, " of ", ToText(in[0]), " from axis ", axis, ": scale or bias is ", ToText(type));
    }
    return Types{in[0]};
  };
  op.lower = [has_mean](TensorSpan in, const Attrs& attrs, TypeSpan) {
    const int64_t axis = IntAttr(attrs, "axis");
    const double epsilon = FloatAttr(attrs, "epsilon");
    if (!has_mean) return std::vector{topi::RmsNorm(in[0], in[1], axis, epsilon, "rms_norm")};
    return std::vector{
        topi::LayerNorm(in[0], in[1], in.size() == 3 ? in[2] : te::Tensor(), axis, epsilon, "layer_norm")};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan) { return 8 * Count(in[0].shape); };
  return op;
}

// Scale or bias made the shape of the normalised dimensions.
absl::StatusOr<int> NormParam(NodeContext& c, int param, const Ints& normal) {
  if (c.shape(param) == normal) return param;
  return c.Emit("expand", {param}, {{"shape", normal}});
}

// The mean and the reciprocal deviation are outputs as well: in single steps.
Outputs LayerNormInSteps(NodeContext& c, int scale, int bias, int64_t axis, double epsilon) {
  const int x = c.input(0);
  Ints axes;
  for (int64_t d = axis; d < c.rank(x); ++d) axes.push_back(d);
  const Attrs over{{"axes", axes}, {"keepdims", int64_t{1}}};
  HONE_ASSIGN_OR_RETURN(const int mean, c.Emit("reduce_mean", {x}, over));
  HONE_ASSIGN_OR_RETURN(const int centred, c.Emit("subtract", {x, mean}));
  HONE_ASSIGN_OR_RETURN(const int squared, c.Emit("multiply", {centred, centred}));
  HONE_ASSIGN_OR_RETURN(const int variance, c.Emit("reduce_mean", {squared}, over));
  HONE_ASSIGN_OR_RETURN(const int safe, c.Emit("add", {variance, c.Scalar(c.type(x).dtype, epsilon)}));
  HONE_ASSIGN_OR_RETURN(const int rstd, c.Emit("rsqrt", {safe}));
  HONE_ASSIGN_OR_RETURN(int y, c.Emit("multiply", {centred, rstd}));
  HONE_ASSIGN_OR_RETURN(y, c.Emit("multiply", {y, scale}));
  if (bias >= 0) { HONE_ASSIGN_OR_RETURN(y, c.Emit("add", {y, bias})); }
  return std::vector<int>{y, mean, rstd};
}

Outputs LayerNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(CheckStashType(c));
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 3));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", -1), c.rank(c.input(0))));
  const Ints& shape = c.shape(c.input(0));
  const Ints normal(shape.begin() + axis, shape.end());
  std::vector<int> inputs = {c.input(0)};
  HONE_ASSIGN_OR_RETURN(const int scale, NormParam(c, c.input(1), normal));
  inputs.push_back(scale);
  if (c.HasInput(2)) {
    HONE_ASSIGN_OR_RETURN(const int bias, NormParam(c, c.input(2), normal));
    inputs.push_back(bias);
  }
  if (c.num_outputs() > 1)
    return LayerNormInSteps(c, scale, c.HasInput(2) ? inputs[2] : -1, axis, c.FloatAttr("epsilon", 1e-5));
  HONE_ASSIGN_OR_RETURN(const int y,
                        c.Emit("layer_norm", inputs, {{"axis", axis}, {"epsilon", c.FloatAttr("epsilon", 1e-5)}}));
  return std::vector<int>{y};
}

// x / sqrt(mean(x^2) + epsilon) * scale, the mean over the dimensions from `axis` on.
Outputs RmsNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Value x = Input(c, 0);
  HONE_RETURN_IF_ERROR(CheckStashType(c));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", -1), x.rank()));
  const std::vector<int64_t> normal(x.shape().begin() + axis, x.shape().end());
  const Value scale = Expand(Cast(Input(c, 1), x.dtype()), normal);
  return Results({Apply("rms_norm", {x, scale}, {{"axis", axis}, {"epsilon", c.FloatAttr("epsilon", 1e-5)}})});
}

}  // namespace

HONE_OPERATORS(layer_norm) {
  return {
      {.graph = {LayerNormOp("layer_norm", true)},
       .onnx =
           {
               {"LayerNormalization", 1, LayerNormalization, "", true},  // standard from 17 on; ONNX Runtime's before
           }},
      {.graph = {LayerNormOp("rms_norm", false)},
       .onnx = {{.name = "RMSNormalization", .since = 23, .import = RmsNormalization, .in_float32 = true}}}};
}

}  // namespace hone
