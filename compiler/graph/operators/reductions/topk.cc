#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/reduce.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// "axis", "k", "largest": values, and indices (int64).
OpInfo TopKOp() {
  OpInfo op{.name = "topk", .kind = OpKind::kOpaque};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    const int64_t k = IntAttr(attrs, "k");
    if (in[0].dtype.is_bool()) return Refuse("top k of bools");
    if (k < 1 || k > in[0].shape[axis]) return Refuse("the top ", k, " of ", in[0].shape[axis], " elements");
    TensorType values = in[0];
    values.shape[axis] = k;
    TensorType indices{kInt64, values.shape};
    return Types{std::move(values), std::move(indices)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    const topi::TopKResult r =
        topi::TopK(in[0], IntAttr(attrs, "k"), IntAttr(attrs, "axis"), IntAttr(attrs, "largest", 1) != 0, "topk");
    return std::vector{r.values, r.indices};
  };
  op.flop = [](TypeSpan in, const Attrs& attrs, TypeSpan) {
    return Count(in[0].shape) * static_cast<double>(in[0].shape[IntAttr(attrs, "axis")]);
  };
  return op;
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

}  // namespace

HONE_OPERATORS(topk) { return {{.graph = {TopKOp()}, .onnx = {{"TopK", 1, TopK}}}}; }

}  // namespace hone
