#include <algorithm>

#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/axes.h"
#include "compiler/topi/shape_ops.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// "repeats", one a dimension.
OpInfo RepeatOp() {
  OpInfo op{.name = "tile", .kind = OpKind::kInjective};
  op.per_dimension = {"repeats"};
  op.is_no_op = [](size_t, const Attrs& attrs) { return topi::AllAre(IntsAttr(attrs, "repeats"), 1); };
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> repeats = IntsAttr(attrs, "repeats");
    if (repeats.size() != in[0].shape.size()) return Refuse(repeats.size(), " repeats of ", ToText(in[0]));
    TensorType out = in[0];
    for (size_t d = 0; d < repeats.size(); ++d) {
      if (repeats[d] < 0 || __builtin_mul_overflow(out.shape[d], repeats[d], &out.shape[d]))
        return Refuse(repeats[d], " repeats of dimension ", d);
    }
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Tile(in[0], IntsAttr(attrs, "repeats"), "tile")};
  };
  return op;
}

Outputs Tile(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  Ints repeats;
  if (c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(repeats, c.Ints(1, "repeats"));
  } else {
    HONE_ASSIGN_OR_RETURN(repeats, c.ShapeInsteadOf(1, "repeats"));
    const Ints& shape = c.shape(c.input(0));
    if (repeats.size() != shape.size()) return Unsupported("the declared shape has another rank");
    for (size_t d = 0; d < shape.size(); ++d) repeats[d] = shape[d] == 0 ? 0 : repeats[d] / shape[d];
  }
  if (std::all_of(repeats.begin(), repeats.end(), [](int64_t r) { return r == 1; }))
    return std::vector<int>{c.input(0)};
  return One(c.Emit("tile", {c.input(0)}, {{"repeats", repeats}}));
}

}  // namespace

HONE_OPERATORS(tile) {
  return {{.graph = {RepeatOp()}, .onnx = {{"Tile", 6, Tile, "", false, NarrowElements::kMoves}}}};
}

}  // namespace hone
