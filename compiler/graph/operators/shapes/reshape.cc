// Other shapes for the same elements in the same order.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/shape_ops.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// "shape": as many elements as the input.
OpInfo ReshapeOp() {
  OpInfo op{.name = "reshape", .kind = OpKind::kView};
  op.rearranges = true;
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> shape = IntsAttr(attrs, "shape");
    if (NumElements(shape) != NumElements(in[0].shape)) {
      return Refuse("a reshape of ", ToText(in[0]), " to [", absl::StrJoin(shape, ", "),
                    "]: the numbers of elements differ");
    }
    return Types{{in[0].dtype, shape}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Reshape(in[0], IntsAttr(attrs, "shape"), "reshape")};
  };
  return op;
}

Outputs Reshape(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Ints from = c.shape(c.input(0));
  const bool allow_zero = c.IntAttr("allowzero", 0) != 0;
  if (!c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(const Ints shape, c.ShapeInsteadOf(1, "the shape"));
    return One(c.Reshape(c.input(0), shape));
  }
  HONE_ASSIGN_OR_RETURN(Ints shape, c.Ints(1, "the shape"));
  int unknown = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !allow_zero) {
      if (d >= from.size())
        return Unsupported(absl::StrCat("dimension ", d, " of the shape copies one that ", ToText(c.type(c.input(0))),
                                        " does not have"));
      shape[d] = from[d];
    }
    if (shape[d] == -1) {
      if (unknown >= 0) return Unsupported("two dimensions of the shape are -1");
      unknown = static_cast<int>(d);
    }
  }
  if (unknown >= 0) {
    shape[unknown] = 1;
    const std::optional<int64_t> rest = NumElements(shape), all = NumElements(from);
    if (!rest.has_value() || *rest == 0 || *all % *rest != 0) {
      return Unsupported(absl::StrCat("a reshape of ", ToText(c.type(c.input(0))), " to [", absl::StrJoin(shape, ", "),
                                      "] with dimension ", unknown, " unknown"));
    }
    shape[unknown] = *all / *rest;
  }
  return One(c.Reshape(c.input(0), shape));
}

Outputs Flatten(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Ints shape = c.shape(c.input(0));
  const int64_t rank = c.rank(c.input(0)), given = c.IntAttr("axis", 1), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) return Unsupported(absl::StrCat("axis ", given, " is outside the rank ", rank));
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d < rank; ++d) (d < axis ? rows : columns) *= shape[d];
  return One(c.Reshape(c.input(0), {rows, columns}));
}

// Axes are an attribute, an input since operator set 13.
absl::StatusOr<Ints> AxesOf(NodeContext& c) {
  if (c.opset() < 13) return c.IntsAttr("axes");
  if (!c.HasInput(1)) return Ints{};
  return c.Ints(1, "axes");
}

Outputs Squeeze(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, c.opset() < 13 ? 1 : 2));
  if (c.HasInput(1) && !c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(const Ints declared, c.ShapeInsteadOf(1, "axes"));
    return One(c.Reshape(c.input(0), declared));
  }
  const Ints shape = c.shape(c.input(0));
  HONE_ASSIGN_OR_RETURN(Ints axes, AxesOf(c));
  HONE_ASSIGN_OR_RETURN(axes, c.Axes(axes, c.rank(c.input(0))));
  Ints left;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool named = std::count(axes.begin(), axes.end(), static_cast<int64_t>(d)) > 0;
    if (named && shape[d] != 1)
      return Unsupported(absl::StrCat("dimension ", d, " of ", ToText(c.type(c.input(0))), " is not 1"));
    if (named || (axes.empty() && shape[d] == 1)) continue;
    left.push_back(shape[d]);
  }
  return One(c.Reshape(c.input(0), left));
}

Outputs Unsqueeze(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, c.opset() < 13 ? 1 : 2));
  if (c.HasInput(1) && !c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(const Ints declared, c.ShapeInsteadOf(1, "axes"));
    return One(c.Reshape(c.input(0), declared));
  }
  HONE_ASSIGN_OR_RETURN(Ints axes, AxesOf(c));
  HONE_ASSIGN_OR_RETURN(axes, c.Axes(axes, c.rank(c.input(0)) + static_cast<int>(std::min<size_t>(axes.size(), 64))));
  std::sort(axes.begin(), axes.end());
  Ints shape = c.shape(c.input(0));
  for (const int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return One(c.Reshape(c.input(0), shape));
}

}  // namespace

HONE_OPERATORS(reshape) {
  return {{.graph = {ReshapeOp()},
           .onnx = {
               {"Reshape", 5, Reshape, "", false, NarrowElements::kMoves},
               {"Flatten", 1, Flatten, "", false, NarrowElements::kMoves},
               {"Squeeze", 1, Squeeze, "", false, NarrowElements::kMoves},
               {"Unsqueeze", 1, Unsqueeze, "", false, NarrowElements::kMoves},
           }}};
}

}  // namespace hone
