// Reductions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/reduce.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// "axes" (at least one), "keepdims".
OpInfo ReduceOp(std::string_view name, bool needs_float,
                te::Tensor (*f)(const te::Tensor&, const topi::Axes&, bool, const std::string&)) {
  OpInfo op{.name = name, .kind = OpKind::kAnchor};
  op.reduces = Reduces::kAxes;
  op.infer = [name, needs_float](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    if (in[0].dtype.is_bool() || (needs_float && !in[0].dtype.is_float()))
      return Refuse(name, " of elements of type ", ToText(in[0].dtype));
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, CheckedAxes(attrs, "axes", in[0].rank()));
    if (axes.empty()) return Refuse(name, " over no axes");
    for (const int64_t axis : axes) {
      if (in[0].shape[axis] == 0)
        return Refuse(name, " over axis ", axis, " of ", ToText(in[0]), ", which has no elements");
    }
    return Types{{in[0].dtype, ReducedShape(in[0].shape, axes, IntAttr(attrs, "keepdims") != 0)}};
  };
  op.lower = [f, name](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{f(in[0], IntsAttr(attrs, "axes"), IntAttr(attrs, "keepdims") != 0, std::string(name.substr(7)))};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan) { return Count(in[0].shape); };
  return op;
}

// What a reduction of no elements gives.
Outputs OfNothing(const Value& x, std::string_view op, const Ints& shape) {
  NodeContext& c = x.context();
  const DType type = x.dtype();
  double value = op == "reduce_prod" ? 1 : op == "reduce_logsumexp" ? -std::numeric_limits<double>::infinity() : 0;
  if (op == "reduce_mean") return Unsupported("the mean of no elements");
  NdArray result(type, shape);
  if (op == "reduce_max" || op == "reduce_min") {  // the neutral element
    const bool least = op == "reduce_max";
    for (int64_t i = 0; i < result.NumElements(); ++i) {
      if (type.is_float())
        result.Set(i, least ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
      else if (type.code == TypeCode::kUInt) result.SetInt(i, least ? 0 : -1);
      else
        result.SetInt(i, least ? -(int64_t{1} << (type.bits - 2)) * 2 : ((int64_t{1} << (type.bits - 2)) - 1) * 2 + 1);
    }
  } else {
    for (int64_t i = 0; i < result.NumElements(); ++i) {
      if (type.is_float()) result.Set(i, value);
      else result.SetInt(i, static_cast<int64_t>(value));
    }
  }
  return Results({Constant(c, std::move(result))});
}

// Axes that come at run time: of the sets of axes that give the declared shape, the one that is named is chosen then.
// Axes of extent 1 may or may not be among those named where they stay: it makes no difference.
Outputs ReduceAtRunTime(const Value& x, std::string_view op, bool keepdims) {
  constexpr int kMostAxes = 8;
  NodeContext& c = x.context();
  HONE_ASSIGN_OR_RETURN(const Ints declared, c.ShapeInsteadOf(1, "axes"));
  const int rank = x.rank();
  if (rank < 1 || rank > kMostAxes) return Unsupported(absl::StrCat("axes at run time of ", ToText(c.type(x.id()))));
  if (NumElements(x.shape()) == 0) return OfNothing(x, op, declared);
  const Value axes = Cast(Input(c, 1), kInt64);
  Value result;
  for (int set = 1; set < 1 << rank; ++set) {
    Ints over, shape;
    for (int d = 0; d < rank; ++d) {
      const bool gone = (set >> d & 1) != 0;
      if (gone) over.push_back(d);
      if (!gone || keepdims) shape.push_back(gone ? 1 : x.dim(d));
    }
    const bool all = static_cast<int>(over.size()) == rank;
    if (shape != declared || axes.rank() != 1 ||
        (static_cast<int64_t>(over.size()) != axes.dim(0) && !(all && axes.dim(0) == 0)))
      continue;
    const Value reduced = Reduce(op, x, over, keepdims);
    if (!result || axes.dim(0) == 0) {
      result = reduced;
      continue;
    }
    Value named = Constant(c, kBool, 1);  // every axis of the set is among those named
    for (const int64_t d : over) {
      const Value is_it =
          Or(axes == Number(axes, static_cast<double>(d)), axes == Number(axes, static_cast<double>(d - rank)));
      named = And(named, Reduce("reduce_max", Cast(is_it, kInt32), {0}, false) > Constant(c, kInt32, 0));
    }
    result = Where(named, reduced, result);
    HONE_RETURN_IF_ERROR(c.status());
  }
  if (!result) return Unsupported("no axes give the shape that is declared");
  return Results({result});
}

// Axes are an attribute, from operator set `by_input` on an input. None at all means every axis, or, where the model
// says so, no reduction.
//
// `each`: what a reduction over no axes makes of each element, where that is not the element itself.
Outputs ReduceBy(NodeContext& c, std::string_view op, int by_input, Value (*each)(const Value&) = nullptr,
                 Value instead = {}) {
  const bool as_input = c.opset() >= by_input;
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, as_input ? 2 : 1));
  int x = instead ? instead.id() : c.input(0);
  Ints axes;
  if (!as_input) axes = c.IntsAttr("axes");
  const int64_t keepdims = c.IntAttr("keepdims", 1);
  const bool no_axes_is_none = c.IntAttr("noop_with_empty_axes", 0) != 0;
  if (as_input && c.HasInput(1) && !c.IsConstant(1)) return ReduceAtRunTime(Value(c, x), op, keepdims != 0);
  if (as_input && c.HasInput(1)) { HONE_ASSIGN_OR_RETURN(axes, c.Ints(1, "axes")); }
  if (axes.empty() && no_axes_is_none) {
    if (each == nullptr) return std::vector<int>{x};
    return Results({each(Value(c, x))});
  }
  Ints shape = c.shape(x);
  HONE_ASSIGN_OR_RETURN(axes, c.Axes(axes, c.rank(x)));
  if (axes.empty()) {
    axes.resize(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::sort(axes.begin(), axes.end());
  if (std::any_of(axes.begin(), axes.end(), [&](int64_t axis) { return shape[axis] == 0; })) {
    Ints left;
    for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
      const bool gone = std::count(axes.begin(), axes.end(), d) > 0;
      if (!gone || keepdims != 0) left.push_back(gone ? 1 : shape[d]);
    }
    return OfNothing(Value(c, x), op, left);
  }
  if (axes.empty()) {  // a scalar: one element to reduce
    HONE_ASSIGN_OR_RETURN(x, c.Reshape(x, {1}));
    HONE_ASSIGN_OR_RETURN(const int y, c.Emit(op, {x}, {{"axes", Ints{0}}, {"keepdims", int64_t{0}}}));
    return std::vector<int>{y};
  }
  HONE_ASSIGN_OR_RETURN(const int y, c.Emit(op, {x}, {{"axes", axes}, {"keepdims", keepdims}}));
  return std::vector<int>{y};
}

Value Absolute(const Value& x) { return Abs(x); }
Value Square(const Value& x) { return x * x; }
Value LogExp(const Value& x) { return x; }
Value Logarithm(const Value& x) { return Log(x); }

// Bools are ordered as integers are.
Outputs Extreme(NodeContext& c, std::string_view op) {
  if (!c.HasInput(0) || !c.type(c.input(0)).dtype.is_bool()) return ReduceBy(c, op, 18);
  HONE_ASSIGN_OR_RETURN(const std::vector<int> y, ReduceBy(c, op, 18, nullptr, Cast(Input(c, 0), kInt32)));
  return Results(
      {Value(c, y[0]) > Constant(c, kInt32, 0)});  // also of none: their neutral elements are the ends of int32
}

Outputs ReduceLogSum(NodeContext& c) {
  if (c.IntAttr("noop_with_empty_axes", 0) != 0 &&
      !(c.HasInput(1) && !(c.IsConstant(1) && c.shape(c.input(1)) == Ints{0}))) {
    if (c.IntsAttr("axes").empty()) return Results({Logarithm(Input(c, 0))});
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<int> sum, ReduceBy(c, "reduce_sum", 18));
  return Results({Log(Value(c, sum[0]))});
}

}  // namespace

HONE_OPERATORS(reduce) {
  constexpr bool kWide = true;
  return {{.graph =
               {
                   ReduceOp("reduce_sum", false, topi::ReduceSum),
                   ReduceOp("reduce_max", false, topi::ReduceMax),
                   ReduceOp("reduce_min", false, topi::ReduceMin),
                   ReduceOp("reduce_prod", false, topi::ReduceProd),
                   ReduceOp("reduce_mean", true, topi::ReduceMean),
                   ReduceOp("reduce_l1", false, topi::ReduceL1),
                   ReduceOp("reduce_l2", true, topi::ReduceL2),
                   ReduceOp("reduce_sum_square", false, topi::ReduceSumSquare),
                   ReduceOp("reduce_logsumexp", true, topi::ReduceLogSumExp),
               },
           .onnx = {
               {"ReduceL1", 1, [](NodeContext& c) { return ReduceBy(c, "reduce_l1", 18, Absolute); }, "", kWide},
               {"ReduceL2", 1, [](NodeContext& c) { return ReduceBy(c, "reduce_l2", 18, Absolute); }, "", kWide},
               {"ReduceLogSum", 1, ReduceLogSum, "", kWide},
               {"ReduceLogSumExp", 1, [](NodeContext& c) { return ReduceBy(c, "reduce_logsumexp", 18, LogExp); }, "",
                kWide},
               {"ReduceMax", 1, [](NodeContext& c) { return Extreme(c, "reduce_max"); }, "", kWide},
               {"ReduceMean", 1, [](NodeContext& c) { return ReduceBy(c, "reduce_mean", 18); }, "", kWide},
               {"ReduceMin", 1, [](NodeContext& c) { return Extreme(c, "reduce_min"); }, "", kWide},
               {"ReduceProd", 1, [](NodeContext& c) { return ReduceBy(c, "reduce_prod", 18); }, "", kWide},
               {"ReduceSum", 1, [](NodeContext& c) { return ReduceBy(c, "reduce_sum", 13); }, "", kWide},
               {"ReduceSumSquare", 1, [](NodeContext& c) { return ReduceBy(c, "reduce_sum_square", 18, Square); }, "",
                kWide},
           }}};
}

}  // namespace hone
