// Normalisations, softmax, reductions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/image_layout.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/onnx_operators.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// In training the statistics are the batch's own; running ones are outputs.
Outputs BatchNormOfBatch(NodeContext& c) {
  const Value x = Input(c, 0), running_mean = Input(c, 3), running_variance = Input(c, 4);
  if (x.rank() < 2) return Unsupported(absl::StrCat("a batch norm of ", ToText(c.type(x.id()))));
  const double momentum = c.FloatAttr("momentum", 0.9);
  Ints over, shape(c.shape(x.id()).size() - 1, 1);
  for (int d = 0; d < x.rank(); ++d) {
    if (d != 1) over.push_back(d);
  }
  shape[0] = x.dim(1);
  const Value mean = Reduce("reduce_mean", x, over, false), centred = x - Reshape(mean, shape);
  const Value variance = Reduce("reduce_mean", centred * centred, over, false);
  const Value scale = Input(c, 1) / Sqrt(variance + c.FloatAttr("epsilon", 1e-5));
  return Results({centred * Reshape(scale, shape) + Reshape(Input(c, 2), shape),
                  running_mean * momentum + mean * (1 - momentum),
                  running_variance * momentum + variance * (1 - momentum)});
}

// x * (scale / sqrt(var + epsilon)) + (bias - mean * scale / sqrt(var + epsilon)), a multiply and an add by channel:
// with constant statistics both fold into the convolution in front.
Outputs BatchNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(5, 5));
  c.FloatAttr("momentum", 0.9);
  if (c.IntAttr("training_mode", 0) != 0) return BatchNormOfBatch(c);
  if (c.IntAttr("spatial", 1) == 0) return Unsupported("spatial 0 is not supported");
  const int x = c.input(0);
  if (c.rank(x) < 2) return Unsupported(absl::StrCat("a batch norm of ", ToText(c.type(x))));
  const DType dtype = c.type(x).dtype;
  const int64_t channels = c.shape(x)[1];
  for (int i = 1; i < 5; ++i) {
    if (c.shape(c.input(i)) != Ints{channels})
      return Unsupported(absl::StrCat("input ", i, " is ", ToText(c.type(c.input(i))), " for ", channels, " channels"));
  }
  HONE_ASSIGN_OR_RETURN(const int safe, c.Emit("add", {c.input(4), c.Scalar(dtype, c.FloatAttr("epsilon", 1e-5))}));
  HONE_ASSIGN_OR_RETURN(const int deviation, c.Emit("sqrt", {safe}));
  HONE_ASSIGN_OR_RETURN(int scale, c.Emit("divide", {c.input(1), deviation}));
  HONE_ASSIGN_OR_RETURN(const int moved, c.Emit("multiply", {c.input(3), scale}));
  HONE_ASSIGN_OR_RETURN(int shift, c.Emit("subtract", {c.input(2), moved}));
  Ints shape(c.rank(x) - 1, 1);
  shape[0] = channels;
  HONE_ASSIGN_OR_RETURN(scale, c.Reshape(scale, shape));
  HONE_ASSIGN_OR_RETURN(shift, c.Reshape(shift, shape));
  HONE_ASSIGN_OR_RETURN(const int scaled, c.Emit("multiply", {x, scale}));
  HONE_ASSIGN_OR_RETURN(const int y, c.Emit("add", {scaled, shift}));
  return std::vector<int>{y};
}

Outputs EmitGroupNorm(NodeContext& c, int scale, int bias, int64_t groups, double epsilon) {
  HONE_ASSIGN_OR_RETURN(const int x, ToChannelsLast(c, c.input(0)));
  HONE_ASSIGN_OR_RETURN(int y, c.Emit("group_norm", {x, scale, bias}, {{"groups", groups}, {"epsilon", epsilon}}));
  HONE_ASSIGN_OR_RETURN(y, ToChannelsFirst(c, y));
  return std::vector<int>{y};
}

Outputs InstanceNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  if (c.rank(c.input(0)) < 3) return Unsupported(absl::StrCat("an instance norm of ", ToText(c.type(c.input(0)))));
  return EmitGroupNorm(c, c.input(1), c.input(2), c.shape(c.input(0))[1], c.FloatAttr("epsilon", 1e-5));
}

// Statistics are computed in float32 at least, which is all that stash_type may ask for.
absl::Status CheckStashType(NodeContext& c) {
  const int64_t type = c.IntAttr("stash_type", 1);
  if (type == 1 || type == 10 || type == 16) return absl::OkStatus();
  return Unsupported(absl::StrCat("stash_type is ", OnnxDTypeName(type)));
}

Outputs GroupNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(CheckStashType(c));
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  if (c.rank(c.input(0)) < 3) return Unsupported(absl::StrCat("a group norm of ", ToText(c.type(c.input(0)))));
  const int64_t groups = c.IntAttr("num_groups", 0), channels = c.shape(c.input(0))[1];
  if (groups < 1 || channels % groups != 0)
    return Unsupported(absl::StrCat(groups, " groups of ", channels, " channels"));
  int params[2] = {c.input(1), c.input(2)};
  for (int& param : params) {
    if (c.shape(param) == Ints{channels}) continue;  // since operator set 21; before that one number a group
    if (c.shape(param) != Ints{groups})
      return Unsupported(absl::StrCat("scale or bias is ", ToText(c.type(param)), " for ", channels, " channels"));
    HONE_ASSIGN_OR_RETURN(param, c.Reshape(param, {groups, 1}));
    HONE_ASSIGN_OR_RETURN(param, c.Emit("expand", {param}, {{"shape", Ints{groups, channels / groups}}}));
    HONE_ASSIGN_OR_RETURN(param, c.Reshape(param, {channels}));
  }
  return EmitGroupNorm(c, params[0], params[1], groups, c.FloatAttr("epsilon", 1e-5));
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

// Before operator set 13 the dimensions from `axis` (1 by default) on were one.
absl::StatusOr<int> AlongAxis(NodeContext& c, int x, std::string_view op, Attrs attrs) {
  const auto along = [&](int value, int64_t axis) {
    attrs["axis"] = axis;
    return c.Emit(op, {value}, attrs);
  };
  if (c.opset() >= 13) {
    HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", -1), c.rank(x)));
    return along(x, axis);
  }
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 1), c.rank(x)));
  const Ints shape = c.shape(x);
  const auto product = [&](int64_t from, int64_t to) {
    return std::accumulate(shape.begin() + from, shape.begin() + to, int64_t{1}, std::multiplies<int64_t>());
  };
  if (axis + 1 == c.rank(x)) return along(x, axis);
  HONE_ASSIGN_OR_RETURN(int y, c.Reshape(x, {product(0, axis), product(axis, c.rank(x))}));
  HONE_ASSIGN_OR_RETURN(y, along(y, 1));
  return c.Reshape(y, shape);
}

Outputs LogSoftmax(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_ASSIGN_OR_RETURN(const int y, AlongAxis(c, c.input(0), "log_softmax", {}));
  return std::vector<int>{y};
}

// The function that the standard gives for Softmax rounds every step to the type of x: of a narrow type the
// exponentials and their sum are rounded as well, and everything is computed in float32.
Outputs Softmax(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  int x = c.input(0);
  const DType dtype = c.type(x).dtype;
  const bool narrow = dtype.is_float() && dtype.bits == 16;
  Attrs attrs;
  if (narrow) {
    attrs["step"] = ToText(dtype);
    HONE_ASSIGN_OR_RETURN(x, c.Emit("cast", {x}, {{"to", ToText(kFloat32)}}));
  }
  HONE_ASSIGN_OR_RETURN(int y, AlongAxis(c, x, "softmax", attrs));
  if (narrow) { HONE_ASSIGN_OR_RETURN(y, c.Emit("cast", {y}, {{"to", ToText(dtype)}})); }
  return std::vector<int>{y};
}

Outputs ArgReduce(NodeContext& c, std::string_view op) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), c.rank(c.input(0))));
  HONE_ASSIGN_OR_RETURN(const int y, c.Emit(op, {c.input(0)},
                                            {{"axis", axis},
                                             {"keepdims", c.IntAttr("keepdims", 1)},
                                             {"select_last", c.IntAttr("select_last_index", 0)}}));
  return std::vector<int>{y};
}

// x divided by its norm along an axis.
Outputs LpNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const int64_t p = c.IntAttr("p", 2);
  if (p != 1 && p != 2) return Unsupported(absl::StrCat("p is ", p, "; 1 and 2 are supported"));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", -1), c.rank(c.input(0))));
  HONE_ASSIGN_OR_RETURN(const int norm, c.Emit(p == 1 ? "reduce_l1" : "reduce_l2", {c.input(0)},
                                               {{"axes", Ints{axis}}, {"keepdims", int64_t{1}}}));
  // Where the norm is 0 so is x: it is divided by 1.
  const DType dtype = c.type(norm).dtype;
  HONE_ASSIGN_OR_RETURN(const int zero, c.Emit("equal", {norm, c.Scalar(dtype, 0)}));
  HONE_ASSIGN_OR_RETURN(const int divisor, c.Emit("where", {zero, c.Scalar(dtype, 1), norm}));
  HONE_ASSIGN_OR_RETURN(const int y, c.Emit("divide", {c.input(0), divisor}));
  return std::vector<int>{y};
}

Outputs TopK(NodeContext& c) {
  const bool as_input = c.opset() >= 10;
  c.IntAttr("sorted", 1);  // they are in any case
  HONE_RETURN_IF_ERROR(c.NeedInputs(as_input ? 2 : 1, as_input ? 2 : 1));
  int64_t k = as_input ? 0 : c.IntAttr("k", 0);
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", -1), c.rank(c.input(0))));
  if (as_input && c.IsConstant(1)) { HONE_ASSIGN_OR_RETURN(k, c.Int(1, "k")); }
  if (as_input && !c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(const Ints shape, c.ShapeInsteadOf(1, "k"));
    if (shape.size() != c.shape(c.input(0)).size()) return Unsupported("the declared shape has another rank");
    k = shape[axis];
  }
  return c.EmitAll("topk", {c.input(0)}, {{"k", k}, {"axis", axis}, {"largest", c.IntAttr("largest", 1)}});
}

constexpr OnnxOperator kOperators[] = {
    {"ArgMax", 1, [](NodeContext& c) { return ArgReduce(c, "argmax"); }},
    {"ArgMin", 1, [](NodeContext& c) { return ArgReduce(c, "argmin"); }},
    {"BatchNormalization", 7, BatchNormalization, "", true},
    {"GroupNormalization", 18, GroupNormalization, "", true},
    {"InstanceNormalization", 6, InstanceNormalization, "", true},
    {"LayerNormalization", 1, LayerNormalization, "", true},  // standard from 17 on; ONNX Runtime's before
    {"LogSoftmax", 1, LogSoftmax, "", true},
    {"LpNormalization", 1, LpNormalization, "", true},
    {"Softmax", 1, Softmax},
    {"TopK", 1, TopK},
};

}  // namespace

std::span<const OnnxOperator> NormOperators() { return kOperators; }

}  // namespace hone
