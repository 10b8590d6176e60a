// Operators whose results are as many as the data decides. They are compiled for the number the model declares.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

Value Count(const Value& flags, std::vector<int64_t> axes) {
  return flags ? Reduce("reduce_sum", Cast(flags, kInt64), std::move(axes), false) : Value();
}

// The places of the first `count` of the flags [n] that are set: place k is the number of prefixes that hold at most k.
Value Places(const Value& flags, int64_t count) {
  if (!flags) return {};
  NodeContext& c = flags.context();
  const Value prefix = Apply("cumsum", {Cast(flags, kInt64)},
                             {{"axis", int64_t{0}}, {"exclusive", int64_t{0}}, {"reverse", int64_t{0}}});
  const Value before = Reshape(prefix, {1, flags.dim(0)}) <= Reshape(Iota(c, kInt64, count), {count, 1});
  const Value at = Count(before, {1});
  return Clip(at, 0, static_cast<double>(flags.dim(0) - 1));
}

// The slices along the axis (of the flattened tensor without) whose condition holds.
Outputs Compress(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  Value x = Input(c, 0);
  int64_t axis = 0;
  if (!c.HasAttr("axis")) x = Reshape(x, {*NumElements(x.shape())});
  else { HONE_ASSIGN_OR_RETURN(axis, c.Axis(c.IntAttr("axis", 0), x.rank())); }
  HONE_ASSIGN_OR_RETURN(const Ints shape, c.ShapeInsteadOf(1, "the condition"));
  if (static_cast<int>(shape.size()) != x.rank() || Input(c, 1).rank() != 1)
    return Unsupported("the declared shape has another rank");
  return Results({Gather(x, Places(Input(c, 1), shape[static_cast<size_t>(axis)]), axis)});
}

// [n, n]: whether row i of [n, m] equals row j, and whether it comes before it (first differing column).
struct Order {
  Value equal, less;
};
absl::StatusOr<Order> Compare(const Value& rows) {
  constexpr int64_t kMostRows = 4096, kMostColumns = 256;
  const int64_t n = rows.dim(0), m = rows.dim(1);
  if (n > kMostRows || m > kMostColumns) return Unsupported(absl::StrCat(n, " rows of ", m, " elements to tell apart"));
  Order order;
  for (int64_t k = m; k-- > 0;) {
    const Value column = Slice(rows, 1, k, 1), a = Reshape(column, {n, 1}), b = Reshape(column, {1, n});
    const Value same = a == b, before = a < b;
    order.less = order.less ? Or(before, And(same, order.less)) : before;
    order.equal = order.equal ? And(same, order.equal) : same;
  }
  HONE_RETURN_IF_ERROR(rows.context().status());
  return order;
}

// Distinct elements (or slices along the axis), where each is first, which of them each element is, how often each
// comes.
Outputs Unique(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  Value x = Input(c, 0);
  int64_t axis = 0;
  const bool whole = !c.HasAttr("axis"), sorted = c.IntAttr("sorted", 1) != 0;
  if (whole) x = Reshape(x, {*NumElements(x.shape())});
  else { HONE_ASSIGN_OR_RETURN(axis, c.Axis(c.IntAttr("axis", 0), x.rank())); }
  int64_t count = -1;
  for (int i = 0; i < c.num_outputs() && count < 0; ++i) {
    const std::optional<Ints> shape = c.DeclaredShape(i);
    if (!shape.has_value() || i == 2 || static_cast<int64_t>(shape->size()) <= (i == 0 ? axis : 0)) continue;
    count = (*shape)[static_cast<size_t>(i == 0 ? axis : 0)];
    HONE_RETURN_IF_ERROR(c.ShapeInsteadOf(0, "the input", i).status());
  }
  if (count < 0) return Unsupported("how many there are depends on the data, and the model does not declare it");
  Ints perm;  // the axis first
  perm.push_back(axis);
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != axis) perm.push_back(d);
  }
  const int64_t n = x.dim(static_cast<int>(axis));
  if (n < 1 || count < 1) return Unsupported("no elements");
  HONE_ASSIGN_OR_RETURN(const Order order, Compare(Reshape(Transpose(x, perm), {n, *NumElements(x.shape()) / n})));
  const Value i = Reshape(Iota(c, kInt64, n), {n, 1}), j = Reshape(Iota(c, kInt64, n), {1, n});
  const Value has_earlier = Count(And(order.equal, j < i), {1}) > Constant(c, kInt64, 0);
  const Value first = Not(has_earlier), first_row = Reshape(first, {1, n});
  // Its place among the distinct: those that come before it by value, or those whose first is before its own first.
  Value rank;
  if (sorted) {
    rank = Count(And(first_row, Transpose(order.less, {1, 0})), {1});
  } else {
    const Value own_first =
        Count(Not(Cast(Apply("cumsum", {Cast(order.equal, kInt32)},
                             {{"axis", int64_t{1}}, {"exclusive", int64_t{0}}, {"reverse", int64_t{0}}}),
                       kBool)),
              {1});
    rank = Count(And(first_row, j < Reshape(own_first, {n, 1})), {1});
  }
  const Value is_it = Reshape(rank, {1, n}) == Reshape(Iota(c, kInt64, count), {count, 1});  // [count, n]
  const Value counts = Count(is_it, {1});
  const Value at = Reduce("reduce_sum", Where(And(is_it, first_row), j, Constant(c, kInt64, 0)), {1}, false);
  return Results({Gather(x, at, axis), at, rank, counts});
}

// The greatest scores of each class whose boxes overlap none taken before by more than the threshold.
Outputs NonMaxSuppression(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 5));
  constexpr int64_t kMostRounds = 256, kMostBoxes = 4096;
  const Value boxes = Input(c, 0), scores = Input(c, 1);
  HONE_ASSIGN_OR_RETURN(const Ints shape, c.ShapeInsteadOf(0, "the boxes"));
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.dim(2) != 4 || scores.dim(0) != boxes.dim(0) ||
      scores.dim(2) != boxes.dim(1) || shape.size() != 2)
    return Unsupported(absl::StrCat("boxes ", ToText(c.type(boxes.id())), " and scores ", ToText(c.type(scores.id()))));
  const int64_t batch = boxes.dim(0), classes = scores.dim(1), n = boxes.dim(1), selected = shape[0],
                rounds = std::min(n, selected);
  if (rounds > kMostRounds || n > kMostBoxes) return Unsupported(absl::StrCat(rounds, " rounds over ", n, " boxes"));
  if (rounds < 1) return Results({Constant(c, NdArray(kInt64, shape))});
  const auto scalar = [&](int i, DType type, double otherwise) {
    return c.HasInput(i) ? Reshape(Cast(Input(c, i), type), {}) : Constant(c, type, otherwise);
  };
  const Value most = scalar(2, kInt64, 0), overlap = scalar(3, boxes.dtype(), 0);
  // Corners: either any two opposite ones, or centre and sizes.
  const auto part = [&](int64_t k) { return Reshape(Slice(boxes, 2, k, 1), {batch, n}); };
  Value y0 = part(0), x0 = part(1), y1 = part(2), x1 = part(3);
  if (c.IntAttr("center_point_box", 0) != 0) {
    const Value cx = y0, cy = x0, w = y1 / 2, h = x1 / 2;
    x0 = cx - w;
    x1 = cx + w;
    y0 = cy - h;
    y1 = cy + h;
  }
  const Value top = Min(y0, y1), bottom = Max(y0, y1), left = Min(x0, x1), right = Max(x0, x1),
              area = (bottom - top) * (right - left);
  const auto row = [&](const Value& v) { return Reshape(v, {batch, 1, n}); };
  const auto column = [&](const Value& v) { return Reshape(v, {batch, n, 1}); };
  const Value zero = Number(area, 0);
  const Value common = Max(Min(column(bottom), row(bottom)) - Max(column(top), row(top)), zero) *
                       Max(Min(column(right), row(right)) - Max(column(left), row(left)), zero);
  const Value close = common > (column(area) + row(area) - common) * overlap;  // [batch, n, n]
  const Value near = Reshape(close, {batch, 1, n, n}), index = Reshape(Iota(c, kInt64, n), {1, 1, n});
  Value open = c.HasInput(4) ? scores > scalar(4, scores.dtype(), 0) : Expand(Constant(c, kBool, 1), scores.shape());
  std::vector<Value> taken, valid;
  for (int64_t round = 0; round < rounds; ++round) {
    const Value left_over = Where(open, scores, Number(scores, -std::numeric_limits<double>::infinity()));
    const Value best =
        Apply("argmax", {left_over}, {{"axis", int64_t{2}}, {"keepdims", int64_t{1}}, {"select_last", int64_t{0}}});
    const Value any = Reduce("reduce_max", Cast(open, kInt32), {2}, true) > Constant(c, kInt32, 0);
    taken.push_back(best);
    valid.push_back(And(any, Constant(c, kInt64, static_cast<double>(round)) < most));
    const Value is_best = best == index;  // [batch, classes, n]
    const Value hit = Reduce("reduce_max", Cast(And(Reshape(is_best, {batch, classes, n, 1}), near), kInt32), {2},
                             false) > Constant(c, kInt32, 0);
    open = And(open, Not(Or(hit, is_best)));
    HONE_RETURN_IF_ERROR(c.status());
  }
  const int64_t all = batch * classes * rounds;
  const Value at = Places(Reshape(Concat(valid, 2), {all}), selected);
  const Value box = Gather(Reshape(Concat(taken, 2), {all}), at, 0);
  const Value pair = at / Number(at, static_cast<double>(rounds)), number = Number(pair, static_cast<double>(classes));
  const auto as_column = [&](const Value& v) { return Reshape(v, {selected, 1}); };
  return Results({Concat({as_column(pair / number), as_column(Apply("mod", {pair, number})), as_column(box)}, 1)});
}

// Indices of the elements that are not 0, a row a dimension.
Outputs NonZeroAtRunTime(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Value x = Input(c, 0);
  HONE_ASSIGN_OR_RETURN(const Ints shape, c.ShapeInsteadOf(0, "the input"));
  if (shape.size() != 2 || shape[0] != x.rank() || x.rank() < 1)
    return Unsupported("the declared shape is not a list of indices");
  const Value flat = Reshape(x, {*NumElements(x.shape())});
  const Value set = x.dtype().is_bool() ? flat : Not(flat == Number(flat, 0));
  Value rest = Places(set, shape[1]);
  std::vector<Value> rows(shape.size() > 0 ? static_cast<size_t>(x.rank()) : 0);
  for (int d = x.rank(); d-- > 0;) {
    const Value extent = Number(rest, static_cast<double>(x.dim(d)));
    rows[static_cast<size_t>(d)] = Reshape(Apply("mod", {rest, extent}), {1, shape[1]});
    rest = rest / extent;
  }
  return Results({Concat(rows, 0)});
}

Outputs NonZero(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  if (!c.IsConstant(0)) return NonZeroAtRunTime(c);
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const NdArray> x, c.Constant(0, "the input"));
  const int64_t rank = static_cast<int64_t>(x->shape.size());
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x->NumElements(); ++i) {
    if (x->Get(i) != 0) found.push_back(i);
  }
  NdArray result(kInt64, {rank, static_cast<int64_t>(found.size())});
  for (size_t f = 0; f < found.size(); ++f) {
    int64_t rest = found[f];
    for (int64_t d = rank - 1; d >= 0; --d) {
      result.As<int64_t>()[d * static_cast<int64_t>(found.size()) + static_cast<int64_t>(f)] = rest % x->shape[d];
      rest /= x->shape[d];
    }
  }
  return std::vector<int>{c.AddConstant(std::move(result))};
}

}  // namespace

HONE_OPERATORS(selection) {
  return {{.onnx = {
               {"Compress", 9, Compress},
               {"NonZero", 9, NonZero},
               {"Unique", 11, Unique},
               {"NonMaxSuppression", 10, NonMaxSuppression, "", true},
           }}};
}

}  // namespace hone
