// Normalisation over groups of channels of an image; over each channel (instance norm).
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/images/image_layout.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/graph/operators/reductions/layer_norm.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/norm.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// x [N, ..., C], scale [C], bias [C]: "groups", "epsilon".
OpInfo GroupNormOp() {
  OpInfo op{.name = "group_norm", .kind = OpKind::kAnchor};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 3));
    if (in[0].rank() < 3 || !in[0].dtype.is_float()) return Refuse("group norm of ", ToText(in[0]));
    const int64_t channels = in[0].shape.back(), groups = IntAttr(attrs, "groups");
    if (groups < 1 || channels % groups != 0) return Refuse(groups, " groups of ", channels, " channels");
    for (const TensorType& type : in.subspan(1)) {
      if (type.shape != std::vector<int64_t>{channels} || type.dtype != in[0].dtype)
        return Refuse("scale or bias is ", ToText(type), " for ", ToText(in[0]));
    }
    return Types{in[0]};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{
        topi::GroupNorm(in[0], in[1], in[2], IntAttr(attrs, "groups"), FloatAttr(attrs, "epsilon"), "group_norm")};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan) { return 8 * Count(in[0].shape); };
  return op;
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

}  // namespace

HONE_OPERATORS(group_norm) {
  return {{.graph = {GroupNormOp()},
           .onnx = {
               {"GroupNormalization", 18, GroupNormalization, "", true},
               {"InstanceNormalization", 6, InstanceNormalization, "", true},
           }}};
}

}  // namespace hone
