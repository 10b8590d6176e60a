// Running sums and products.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/axes.h"
#include "compiler/topi/reduce.h"

namespace hone {
namespace {

// "axis", "exclusive", "reverse".
OpInfo CumSumOp() {
  const auto f = [](const te::Tensor& x, int64_t axis, const Attrs& a) {
    return topi::CumSum(x, axis, IntAttr(a, "exclusive") != 0, IntAttr(a, "reverse") != 0, "cumsum");
  };
  return AlongAxisOp("cumsum", OpKind::kOpaque, 1, f, /*needs_float=*/false);
}

// "axis", "exclusive", "reverse": the product of the elements before (behind) an element and, unless exclusive, itself.
OpInfo CumProdOp() {
  OpInfo op{.name = "cumprod", .kind = OpKind::kOpaque};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    if (in[0].dtype.is_bool()) return Refuse("products of bools");
    HONE_RETURN_IF_ERROR(CheckedAxis(attrs, in[0].rank()).status());
    return Types{in[0]};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    const te::Tensor x = in[0];
    const size_t axis = static_cast<size_t>(IntAttr(attrs, "axis"));
    const bool exclusive = IntAttr(attrs, "exclusive") != 0, reverse = IntAttr(attrs, "reverse") != 0;
    const te::ReduceAxis k(x.shape()[axis], "k");
    const auto element = [&](const te::Indices& i) {
      std::vector<Expr> at = topi::ToExprs(i);
      at[axis] = k;
      const Expr mine = i[axis], other = k;
      const Expr counts = reverse ? exclusive ? other > mine : other >= mine : exclusive ? other < mine : other <= mine;
      return te::Prod(MakeSelect(counts, x(at), Const(1, x.dtype())), {k});
    };
    return std::vector{te::Compute(x.shape(), element, "cumprod")};
  };
  op.flop = [](TypeSpan in, const Attrs& attrs, TypeSpan) {
    return Count(in[0].shape) * static_cast<double>(in[0].shape[static_cast<size_t>(IntAttr(attrs, "axis"))]);
  };
  return op;
}

// The axis is an input. Where it comes at run time, it is one of a few.
Outputs Cumulative(NodeContext& c, std::string_view op) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Value x = Input(c, 0);
  const auto along = [&](int64_t axis) {
    return Apply(op, {x},
                 {{"axis", axis}, {"exclusive", c.IntAttr("exclusive", 0)}, {"reverse", c.IntAttr("reverse", 0)}});
  };
  if (c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(int64_t axis, c.Int(1, "the axis"));
    HONE_ASSIGN_OR_RETURN(axis, c.Axis(axis, x.rank()));
    return Results({along(axis)});
  }
  if (x.rank() < 1) return Unsupported("a running sum of a scalar");
  const Value axis = Reshape(Cast(Input(c, 1), kInt64), {});
  Value y = along(0);
  for (int d = 1; d < x.rank(); ++d) {
    y = Where(Or(axis == Number(axis, d), axis == Number(axis, d - x.rank())), along(d), y);
  }
  return Results({y});
}

}  // namespace

HONE_OPERATORS(cumulative) {
  return {
      {{CumSumOp()}, {{"CumSum", 11, [](NodeContext& c) { return Cumulative(c, "cumsum"); }, "", true}}},
      {{CumProdOp()}, {{"CumProd", 26, [](NodeContext& c) { return Cumulative(c, "cumprod"); }, "", true}}},
  };
}

}  // namespace hone
