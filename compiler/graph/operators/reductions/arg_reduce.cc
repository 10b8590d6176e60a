// The places of greatest and least elements along an axis.
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/reduce.h"

namespace hone {
namespace {

// "axis", "keepdims", "select_last"; the index is int64.
OpInfo ArgOp(std::string_view name, te::Tensor (*f)(const te::Tensor&, int64_t, bool, bool, const std::string&)) {
  OpInfo op{.name = name, .kind = OpKind::kOpaque};
  op.infer = [name](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    if (in[0].dtype.is_bool()) return Refuse(name, " of bools");
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    if (in[0].shape[axis] == 0)
      return Refuse(name, " over axis ", axis, " of ", ToText(in[0]), ", which has no elements");
    return Types{{kInt64, ReducedShape(in[0].shape, {axis}, IntAttr(attrs, "keepdims") != 0)}};
  };
  op.lower = [f, name](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{f(in[0], IntAttr(attrs, "axis"), IntAttr(attrs, "keepdims") != 0,
                         IntAttr(attrs, "select_last") != 0, std::string(name))};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan) { return Count(in[0].shape); };
  return op;
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

}  // namespace

HONE_OPERATORS(arg_reduce) {
  return {{.graph = {ArgOp("argmax", topi::ArgMax), ArgOp("argmin", topi::ArgMin)},
           .onnx = {
               {"ArgMax", 1, [](NodeContext& c) { return ArgReduce(c, "argmax"); }},
               {"ArgMin", 1, [](NodeContext& c) { return ArgReduce(c, "argmin"); }},
           }}};
}

}  // namespace hone
