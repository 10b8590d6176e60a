#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/shapes/per_axis.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/axes.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// "starts", "sizes", "steps", one entry a dimension: y[i] = x[start + i * step].
OpInfo SliceOp() {
  OpInfo op{.name = "slice", .kind = OpKind::kInjective};
  op.per_dimension = {"starts", "sizes", "steps"};
  op.is_no_op = [](size_t, const Attrs& attrs) { return topi::AllAre(IntsAttr(attrs, "steps"), 1); };
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> starts = IntsAttr(attrs, "starts"), sizes = IntsAttr(attrs, "sizes"),
                               steps = IntsAttr(attrs, "steps");
    const size_t rank = in[0].shape.size();
    if (starts.size() != rank || sizes.size() != rank || steps.size() != rank)
      return Refuse("a slice of ", starts.size(), " dimensions of ", ToText(in[0]));
    for (size_t d = 0; d < rank; ++d) {
      int64_t last = 0;
      if (sizes[d] < 0 || steps[d] == 0 ||
          __builtin_mul_overflow(std::max<int64_t>(sizes[d] - 1, 0), steps[d], &last) ||
          __builtin_add_overflow(last, starts[d], &last) ||
          (sizes[d] > 0 && (starts[d] < 0 || starts[d] >= in[0].shape[d] || last < 0 || last >= in[0].shape[d]))) {
        return Refuse("a slice of dimension ", d, " of ", ToText(in[0]), " from ", starts[d], " in steps of ", steps[d],
                      ", ", sizes[d], " elements");
      }
    }
    return Types{{in[0].dtype, sizes}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan out) {
    const std::vector<int64_t> starts = IntsAttr(attrs, "starts"), steps = IntsAttr(attrs, "steps");
    const te::Tensor x = in[0];
    const auto element = [&](const te::Indices& i) {
      std::vector<Expr> at;
      for (size_t d = 0; d < i.size(); ++d) at.push_back(i[d] * Expr(steps[d]) + Expr(starts[d]));
      return x(at);
    };
    return std::vector{te::Compute(te::Shape(out[0].shape), element, "slice")};
  };
  return op;
}

// Where bounds come at run time: along every axis the elements start + i * step of the declared number.
Outputs SliceAtRunTime(NodeContext& c) {
  Value x = Input(c, 0);
  HONE_ASSIGN_OR_RETURN(const Ints shape, c.ShapeInsteadOf(1, "starts"));
  if (static_cast<int>(shape.size()) != x.rank()) return Unsupported("the declared shape has another rank");
  const PerAxis by_axis(x.rank(), Input(c, 3));
  const Value starts = Cast(Input(c, 1), kInt64), steps = c.HasInput(4) ? Cast(Input(c, 4), kInt64) : Value();
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    const double n = static_cast<double>(x.dim(d));
    const Value step = steps ? by_axis.Get(steps, d, 1) : Constant(c, kInt64, 1);
    const Value given = by_axis.Get(starts, d, 0), start = Where(given < Number(given, 0), given + n, given);
    const Value last = Where(step > Number(step, 0), Number(step, n), Number(step, n - 1));
    const Value from = Min(Max(start, Number(start, 0)), last);
    const Value at = from + Iota(c, kInt64, shape[static_cast<size_t>(d)]) * step;
    x = Gather(x, Clip(at, 0, n - 1), d);
    HONE_RETURN_IF_ERROR(c.status());
  }
  return Results({x});
}

Outputs Slice(NodeContext& c) {
  const bool as_inputs = c.opset() >= 10;
  HONE_RETURN_IF_ERROR(c.NeedInputs(as_inputs ? 3 : 1, as_inputs ? 5 : 1));
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.HasInput(i) && !c.IsConstant(i)) return SliceAtRunTime(c);
  }
  const Ints shape = c.shape(c.input(0));
  Ints begins = c.IntsAttr("starts"), ends = c.IntsAttr("ends"), axes = c.IntsAttr("axes"), strides;
  if (as_inputs) {
    HONE_ASSIGN_OR_RETURN(begins, c.Ints(1, "starts"));
    HONE_ASSIGN_OR_RETURN(ends, c.Ints(2, "ends"));
    if (c.HasInput(3)) { HONE_ASSIGN_OR_RETURN(axes, c.Ints(3, "axes")); }
    if (c.HasInput(4)) { HONE_ASSIGN_OR_RETURN(strides, c.Ints(4, "steps")); }
  }
  if (axes.empty()) {
    axes.resize(begins.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (strides.empty()) strides.assign(begins.size(), 1);
  HONE_ASSIGN_OR_RETURN(axes, c.Axes(axes, c.rank(c.input(0))));
  if (ends.size() != begins.size() || axes.size() != begins.size() || strides.size() != begins.size()) {
    return Unsupported("starts, ends, axes and steps differ in length");
  }
  Ints starts(shape.size(), 0), sizes = shape, steps(shape.size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t n = shape[axes[i]], step = strides[i];
    if (step == 0 || step == INT64_MIN) return Unsupported(absl::StrCat("a step of ", step));
    const auto bound = [&](int64_t at, int64_t least, int64_t most) {
      return std::clamp(at < 0 ? at + n : at, least, most);
    };
    int64_t begin = 0, size = 0;
    if (step > 0) {
      begin = bound(begins[i], 0, n);
      const int64_t end = bound(ends[i], 0, n);
      size = end > begin ? (end - begin - 1) / step + 1 : 0;
    } else {
      begin = bound(begins[i], -1, n - 1);
      const int64_t end = bound(ends[i], -1, n - 1);
      size = begin > end ? (begin - end - 1) / -step + 1 : 0;
    }
    starts[axes[i]] = size == 0 ? 0 : begin;
    sizes[axes[i]] = size;
    steps[axes[i]] = size <= 1 ? 1 : step;
  }
  if (sizes == shape && std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 1; }))
    return std::vector<int>{c.input(0)};
  return One(c.Emit("slice", {c.input(0)}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}));
}

}  // namespace

HONE_OPERATORS(slice) { return {{.graph = {SliceOp()}, .onnx = {{.name = "Slice", .since = 1, .import = Slice}}}}; }

}  // namespace hone
