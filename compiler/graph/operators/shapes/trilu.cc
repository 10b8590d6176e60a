// The upper or lower triangle of matrices.
#include <algorithm>

#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/index_ops.h"

namespace hone {
namespace {

// "upper", "k".
OpInfo TriluOp() {
  OpInfo op{.name = "trilu", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs&) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    if (in[0].rank() < 2) return Refuse("the triangle of ", ToText(in[0]));
    return Types{in[0]};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Trilu(in[0], IntAttr(attrs, "upper", 1) != 0, IntAttr(attrs, "k"), "trilu")};
  };
  return op;
}

Outputs Trilu(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 2));
  if (c.HasInput(1) && !c.IsConstant(1)) {  // element (row, column) stays where column - row >= k, or <= k
    const Value x = Input(c, 0), k = Reshape(Cast(Input(c, 1), kInt64), {});
    if (x.rank() < 2) return Unsupported("the triangle of a vector");
    const Value row = Reshape(Iota(c, kInt64, x.dim(-2)), {x.dim(-2), 1}), column = Iota(c, kInt64, x.dim(-1));
    const Value stays = c.IntAttr("upper", 1) != 0 ? column - row >= k : column - row <= k;
    return Results({Where(stays, x, Number(x, 0))});
  }
  int64_t k = 0;
  if (c.HasInput(1)) { HONE_ASSIGN_OR_RETURN(k, c.Int(1, "k")); }
  return One(c.Emit("trilu", {c.input(0)},
                    {{"upper", c.IntAttr("upper", 1)}, {"k", std::clamp<int64_t>(k, -(1 << 30), 1 << 30)}}));
}

}  // namespace

HONE_OPERATORS(trilu) { return {{.graph = {TriluOp()}, .onnx = {{.name = "Trilu", .since = 14, .import = Trilu}}}}; }

}  // namespace hone
