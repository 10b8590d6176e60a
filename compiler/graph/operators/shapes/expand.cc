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

// "shape": numpy's broadcast_to.
OpInfo ExpandOp() {
  OpInfo op{.name = "expand", .kind = OpKind::kInjective};
  op.per_dimension = {"shape"};
  op.is_no_op = [](size_t, const Attrs&) { return true; };
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> shape = IntsAttr(attrs, "shape");
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> both, BroadcastShapes(in[0].shape, shape));
    if (both != shape) return Refuse(ToText(in[0]), " does not broadcast to [", absl::StrJoin(shape, ", "), "]");
    return Types{{in[0].dtype, shape}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::BroadcastTo(in[0], IntsAttr(attrs, "shape"), "expand")};
  };
  return op;
}

Outputs Expand(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  HONE_ASSIGN_OR_RETURN(const Ints wanted, c.ShapeFrom(1, "the shape"));
  Ints shape = c.shape(c.input(0));  // both broadcast: the result may be larger than what is asked for
  if (shape.size() < wanted.size()) shape.insert(shape.begin(), wanted.size() - shape.size(), 1);
  for (size_t i = 0; i < wanted.size(); ++i) {
    int64_t& extent = shape[shape.size() - 1 - i];
    const int64_t other = wanted[wanted.size() - 1 - i];
    if (other < 0) return Unsupported(absl::StrCat("the shape [", absl::StrJoin(wanted, ", "), "]"));
    if (extent == 1) extent = other;
  }
  if (shape == c.shape(c.input(0))) return std::vector<int>{c.input(0)};
  return One(c.Emit("expand", {c.input(0)}, {{"shape", shape}}));
}

}  // namespace

HONE_OPERATORS(expand) {
  return {{.graph = {ExpandOp()}, .onnx = {{"Expand", 8, Expand, "", false, NarrowElements::kMoves}}}};
}

}  // namespace hone
