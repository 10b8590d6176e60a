// Operators that are a formula of a line or two.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// x - bias above lambd, x + bias below -lambd, 0 between.
Outputs Shrink(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Value x = Input(c, 0);
  const double bias = c.FloatAttr("bias", 0), lambd = c.FloatAttr("lambd", 0.5);
  return Results({Where(x < Number(x, -lambd), x + bias, Where(x > Number(x, lambd), x - bias, Number(x, 0)))});
}

// 1 at the first greatest element along the axis; before operator set 13 the dimensions from `axis` on were one.
Outputs Hardmax(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  Value x = Input(c, 0);
  const std::vector<int64_t> shape = x.shape();
  HONE_ASSIGN_OR_RETURN(int64_t axis, c.Axis(c.IntAttr("axis", c.opset() < 13 ? 1 : -1), x.rank()));
  if (c.opset() < 13) {
    int64_t rows = 1, columns = 1;
    for (int64_t d = 0; d < x.rank(); ++d) (d < axis ? rows : columns) *= shape[static_cast<size_t>(d)];
    x = Reshape(x, {rows, columns});
    axis = 1;
  }
  const Value at = Apply("argmax", {x}, {{"axis", axis}, {"keepdims", int64_t{1}}, {"select_last", int64_t{0}}});
  std::vector<int64_t> along(static_cast<size_t>(x.rank()), 1);
  along[static_cast<size_t>(axis)] = x.dim(static_cast<int>(axis));
  const Value hot = at == Reshape(Iota(c, kInt64, x.dim(static_cast<int>(axis))), along);
  return Results({Reshape(Cast(hot, x.dtype()), shape)});
}

// (x - mean) / (deviation + 1e-9) over the axes.
Outputs MeanVarianceNormalization(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Value x = Input(c, 0);
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, c.Axes(c.IntsAttr("axes", {0, 2, 3}), x.rank()));
  const Value mean = Reduce("reduce_mean", x, axes, true), square = Reduce("reduce_mean", x * x, axes, true);
  return Results({(x - mean) / (Sqrt(square - mean * mean) + 1e-9)});
}

// A cosine window: sum of factor[k] * cos(2 pi k n / N), N one less than the size unless periodic.
Outputs Window(NodeContext& c, std::initializer_list<double> factors) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const int64_t number = c.IntAttr("output_datatype", 1);
  const std::optional<DType> dtype = OnnxDType(number);
  if (!dtype.has_value()) return Unsupported(absl::StrCat("elements of type ", OnnxDTypeName(number)));
  int64_t size = 0;
  if (c.IsConstant(0)) {
    HONE_ASSIGN_OR_RETURN(size, c.Int(0, "the size"));
  } else {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, c.ShapeInsteadOf(0, "the size"));
    if (shape.size() != 1) return Unsupported("the declared shape is not a vector");
    size = shape[0];
  }
  if (size < 1 || size > (int64_t{1} << 28)) return Unsupported(absl::StrCat("a window of ", size, " elements"));
  const double period = static_cast<double>(c.IntAttr("periodic", 1) != 0 ? size : std::max<int64_t>(size - 1, 1));
  NdArray window(*dtype, {size});
  for (int64_t n = 0; n < size; ++n) {
    double value = 0;
    int k = 0;
    for (const double factor : factors) value += factor * std::cos(2 * M_PI * k++ * static_cast<double>(n) / period);
    window.Set(n, value);
  }
  return Results({Constant(c, std::move(window))});
}

// The determinant of [..., n, n], by Gauss's elimination with the greatest pivot of each column, unrolled.
Outputs Det(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  constexpr int64_t kMost = 16;
  const Value x = Input(c, 0);
  if (x.rank() < 2 || x.dim(-1) != x.dim(-2) || x.dim(-1) > kMost)
    return Unsupported(absl::StrCat("the determinant of ", ToText(c.type(x.id())), "; squares of at most ", kMost,
                                    " rows are supported"));
  const int64_t n = x.dim(-1);
  int64_t batch = 1;
  for (int d = 0; d + 2 < x.rank(); ++d) batch *= x.dim(d);
  Value m = Reshape(x, {batch, n, n}), det = Expand(Constant(c, x.dtype(), 1), {batch, 1, 1});
  for (int64_t k = 0; k < n; ++k) {
    const int64_t left = n - k;
    const Value column = Slice(m, 2, 0, 1);  // [batch, left, 1]
    const Value at =
        Apply("argmax", {Abs(column)}, {{"axis", int64_t{1}}, {"keepdims", int64_t{1}}, {"select_last", int64_t{0}}});
    const Value is_pivot = Cast(at == Reshape(Iota(c, kInt64, left), {1, left, 1}), x.dtype());
    const Value pivot_row = Reduce("reduce_sum", is_pivot * m, {1}, true), pivot = Slice(pivot_row, 2, 0, 1);
    det = det * pivot * Where(at == Number(at, 0), Number(pivot, 1), Number(pivot, -1));
    if (left == 1) break;
    // The first row takes the pivot's place.
    const Value swapped = m + is_pivot * (Slice(m, 1, 0, 1) - pivot_row);
    const Value safe = Where(pivot == Number(pivot, 0), Number(pivot, 1), pivot);
    const Value below = Slice(swapped, 1, 1, left - 1);
    m = Slice(below - Slice(below, 2, 0, 1) / safe * pivot_row, 2, 1, left - 1);
    HONE_RETURN_IF_ERROR(c.status());
  }
  return Results({Reshape(det, {x.shape().begin(), x.shape().end() - 2})});
}

// The elements up to each sequence's length in reverse order.
Outputs ReverseSequence(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Value x = Input(c, 0);
  HONE_ASSIGN_OR_RETURN(const int64_t batch, c.Axis(c.IntAttr("batch_axis", 1), x.rank()));
  HONE_ASSIGN_OR_RETURN(const int64_t time, c.Axis(c.IntAttr("time_axis", 0), x.rank()));
  if (batch == time) return Unsupported("batch_axis and time_axis are the same");
  std::vector<int64_t> over_batch(x.shape().size(), 1), over_time = over_batch;
  over_batch[static_cast<size_t>(batch)] = x.dim(static_cast<int>(batch));
  over_time[static_cast<size_t>(time)] = x.dim(static_cast<int>(time));
  const Value length = Reshape(Cast(Input(c, 1), kInt64), over_batch),
              i = Reshape(Iota(c, kInt64, x.dim(static_cast<int>(time))), over_time);
  const Value from = Expand(Where(i < length, length - Number(length, 1) - i, i), x.shape());
  return Results({Apply("gather_elements", {x, from}, {{"axis", time}})});
}

// The cache with `update` in the places from each batch's write index on.
Outputs TensorScatter(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 3));
  const Value cache = Input(c, 0), update = Input(c, 1);
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", -2), cache.rank()));
  const std::string mode = c.StringAttr("mode", "linear");
  if (mode != "linear" && mode != "circular") return Unsupported(absl::StrCat("mode is \"", mode, "\""));
  if (axis == 0 || update.rank() != cache.rank())
    return Unsupported("the batch cannot be the axis that is written along");
  const int64_t places = cache.dim(static_cast<int>(axis)), count = update.dim(static_cast<int>(axis));
  std::vector<int64_t> over_batch(cache.shape().size(), 1), along = over_batch;
  over_batch[0] = cache.dim(0);
  along[static_cast<size_t>(axis)] = places;
  const Value start = c.HasInput(2) ? Reshape(Cast(Input(c, 2), kInt64), over_batch)
                                    : Reshape(Iota(c, kInt64, 1), std::vector<int64_t>(along.size(), 1));
  Value from = Reshape(Iota(c, kInt64, places), along) - start;
  if (mode == "circular") from = Apply("mod", {from, Number(from, static_cast<double>(places))});
  const Value written = And(from >= Number(from, 0), from < Number(from, static_cast<double>(count)));
  const Value index = Expand(Clip(from, 0, static_cast<double>(count - 1)), cache.shape());
  return Results({Where(written, Apply("gather_elements", {update, index}, {{"axis", axis}}), cache)});
}

}  // namespace

HONE_OPERATORS(small_formulas) {
  return {{.onnx = {
               {"Shrink", 9, Shrink, "", true},
               {"Hardmax", 1, Hardmax},
               {"MeanVarianceNormalization", 9, MeanVarianceNormalization, "", true},
               {"HannWindow", 17,
                [](NodeContext& c) {
                  return Window(c, {0.5, -0.5});
                }},
               {"HammingWindow", 17,
                [](NodeContext& c) {
                  return Window(c, {25.0 / 46, -21.0 / 46});
                }},
               {"BlackmanWindow", 17,
                [](NodeContext& c) {
                  return Window(c, {0.42, -0.5, 0.08});
                }},
               {"Det", 11, Det, "", true},
               {"ReverseSequence", 10, ReverseSequence},
               {"TensorScatter", 24, TensorScatter},
           }}};
}

}  // namespace hone
