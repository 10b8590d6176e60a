// Discrete Fourier transforms, as products with matrices of cosines and sines, and what weighs their results.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int64_t kMostEntries = int64_t{1} << 26;

// The matrix [in, out] of cos or sin(2 pi i k / n).
Value Waves(NodeContext& c, DType dtype, int64_t in, int64_t out, int64_t n, bool sine) {
  NdArray array(dtype, {in, out});
  for (int64_t i = 0; i < in; ++i) {
    for (int64_t k = 0; k < out; ++k) {
      const double angle = 2 * M_PI * static_cast<double>(i * k % n) / static_cast<double>(n);
      array.Set(i * out + k, sine ? std::sin(angle) : std::cos(angle));
    }
  }
  return Constant(c, std::move(array));
}

// x [rows, in, 1 or 2] real or complex, as n points of which those beyond `in` are 0: [rows, out, 2].
Value Transform(const Value& x, int64_t n, int64_t out, bool inverse) {
  if (!x) return {};
  NodeContext& c = x.context();
  const int64_t rows = x.dim(0), in = std::min(x.dim(1), n);
  if (in * out > kMostEntries) return Fail(c, Unsupported(absl::StrCat("a transform of ", n, " points")));
  const Value used = Slice(x, 1, 0, in);
  const Value cosine = Waves(c, x.dtype(), in, out, n, false), sine = Waves(c, x.dtype(), in, out, n, true);
  const Value real = Reshape(Slice(used, 2, 0, 1), {rows, in});
  Value re = MatMul(real, cosine), im = MatMul(real, sine);  // e^(i w) = cos w + i sin w
  if (x.dim(2) == 2) {
    const Value imaginary = Reshape(Slice(used, 2, 1, 1), {rows, in});
    const Value a = MatMul(imaginary, cosine), b = MatMul(imaginary, sine);
    re = inverse ? re - b : re + b;
    im = inverse ? im + a : a - im;
  } else if (!inverse) {
    im = -im;
  }
  if (inverse) {
    re = re / static_cast<double>(n);
    im = im / static_cast<double>(n);
  }
  return Concat({Reshape(re, {rows, out, 1}), Reshape(im, {rows, out, 1})}, 2);
}

// Of a half transform's n / 2 + 1 points the real signal of n.
Value RealInverse(const Value& x, int64_t n) {
  if (!x) return {};
  const int64_t half = n / 2 + 1, rest = n - half;
  Value full = Slice(x, 1, 0, std::min(half, x.dim(1)));
  if (rest > 0) {
    const Value back = Slice(x, 1, rest, rest, -1);  // conjugates, from the other end
    NodeContext& c = x.context();
    NdArray signs(x.dtype(), {2});
    signs.Set(0, 1);
    signs.Set(1, -1);
    full = Concat({full, back * Constant(c, std::move(signs))}, 1);
  }
  return Slice(Transform(full, n, n, true), 2, 0, 1);
}

// x [..., 1 or 2] along one axis; `length` 0: as many points as there are.
Value AlongAxis(const Value& x, int64_t axis, int64_t length, bool inverse, bool onesided) {
  NodeContext& c = x.context();
  int64_t n = x.dim(static_cast<int>(axis));
  if (inverse && onesided) n = 2 * (n - 1);
  if (length > 0) n = length;
  if (n < 1) return Fail(c, Unsupported(absl::StrCat("a transform of ", n, " points")));
  // [others, along, 1 or 2]
  std::vector<int64_t> perm, shape;
  int64_t rows = 1;
  for (int64_t d = 0; d + 1 < x.rank(); ++d) {
    if (d == axis) continue;
    perm.push_back(d);
    shape.push_back(x.dim(static_cast<int>(d)));
    rows *= shape.back();
  }
  perm.push_back(axis);
  perm.push_back(x.rank() - 1);
  const Value lines = Reshape(Transpose(x, perm), {rows, x.dim(static_cast<int>(axis)), x.dim(-1)});
  const Value y = inverse && onesided ? RealInverse(lines, n) : Transform(lines, n, onesided ? n / 2 + 1 : n, inverse);
  if (!y) return {};
  shape.push_back(y.dim(1));
  shape.push_back(y.dim(2));
  std::vector<int64_t> back(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) back[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  return Transpose(Reshape(y, shape), back);
}

// The axis is an attribute up to operator set 19, then an input; where that comes at run time it is one of those that
// give the declared shape.
Outputs Dft(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, c.opset() >= 20 ? 3 : 2));
  const Value x = Input(c, 0);
  const bool inverse = c.IntAttr("inverse", 0) != 0, onesided = c.IntAttr("onesided", 0) != 0;
  int64_t axis = c.opset() >= 20 ? -2 : c.IntAttr("axis", 1), length = 0;
  if (x.rank() < 2 || x.dim(-1) > 2) return Unsupported(absl::StrCat("a transform of ", ToText(c.type(x.id()))));
  if (c.HasInput(1)) { HONE_ASSIGN_OR_RETURN(length, c.Int(1, "dft_length")); }
  if (c.HasInput(2) && !c.IsConstant(2)) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> declared, c.ShapeInsteadOf(2, "the axis"));
    const Value named = Reshape(Cast(Input(c, 2), kInt64), {});
    Value y;
    for (int d = 0; d + 1 < x.rank(); ++d) {
      if (inverse && onesided && length == 0 && x.dim(d) < 2) continue;  // half of no signal
      const Value along = AlongAxis(x, d, length, inverse, onesided);
      HONE_RETURN_IF_ERROR(c.status());
      if (along.shape() != declared) continue;
      y = y ? Where(Or(named == Number(named, d), named == Number(named, d - x.rank())), along, y) : along;
    }
    if (!y) return Unsupported("no axis gives the shape that is declared");
    return Results({y});
  }
  if (c.HasInput(2)) { HONE_ASSIGN_OR_RETURN(axis, c.Int(2, "the axis")); }
  HONE_ASSIGN_OR_RETURN(axis, c.Axis(axis, x.rank()));
  if (axis == x.rank() - 1) return Unsupported("a transform along the last axis, which holds real and imaginary parts");
  return Results({AlongAxis(x, axis, length, inverse, onesided)});
}

// signal [N, length, 1 or 2], step, window, length of a frame: [N, frames, points, 2].
Outputs Stft(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 4));
  const Value x = Input(c, 0);
  if (x.rank() != 3) return Unsupported(absl::StrCat("a signal ", ToText(c.type(x.id()))));
  const Value window = Input(c, 2);
  int64_t length = window ? window.dim(0) : 0, step = 0;
  const std::optional<std::vector<int64_t>> declared = c.DeclaredShape(0);
  if (c.HasInput(3) && c.IsConstant(3)) { HONE_ASSIGN_OR_RETURN(length, c.Int(3, "frame_length")); }
  const bool onesided = c.IntAttr("onesided", 1) != 0;
  if (length < 1) return Unsupported("frame_length is computed at run time and there is no window");
  HONE_ASSIGN_OR_RETURN(step, c.Int(1, "frame_step"));
  if (step < 1 || length > x.dim(1)) return Unsupported(absl::StrCat("frames of ", length, " in steps of ", step));
  const int64_t frames = (x.dim(1) - length) / step + 1;
  std::vector<int64_t> at;
  for (int64_t f = 0; f < frames; ++f) {
    for (int64_t i = 0; i < length; ++i) at.push_back(f * step + i);
  }
  const int64_t count = static_cast<int64_t>(at.size());
  Value framed = Gather(x, Constant(c, NdArray::Of<int64_t>(kInt64, {count}, at)), 1);
  framed = Reshape(framed, {x.dim(0) * frames, length, x.dim(2)});
  if (window) framed = framed * Reshape(Cast(window, x.dtype()), {1, length, 1});
  const int64_t points = onesided ? length / 2 + 1 : length;
  return Results({Reshape(Transform(framed, length, points, false), {x.dim(0), frames, points, 2})});
}

// The bins of a spectrum at which triangles begin, peak and end, `count` of them, evenly spaced in mel:
// mel(f) = 2595 log10(1 + f / 700).
std::vector<int64_t> MelPoints(int64_t count, int64_t length, int64_t rate, double low, double high) {
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const auto hertz = [](double value) { return 700 * (std::pow(10, value / 2595) - 1); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(count);
  std::vector<int64_t> points;
  for (int64_t i = 0; i < count; ++i) {
    const double at = hertz(static_cast<double>(i) * step + mel(low));
    points.push_back(
        static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * at / static_cast<double>(rate))));
  }
  return points;
}

// [bins of the spectrum, bins of mel]: triangles.
Outputs MelWeightMatrix(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(5, 5));
  HONE_ASSIGN_OR_RETURN(const int64_t bins, c.Int(0, "num_mel_bins"));
  HONE_ASSIGN_OR_RETURN(const int64_t length, c.Int(1, "dft_length"));
  HONE_ASSIGN_OR_RETURN(const int64_t rate, c.Int(2, "sample_rate"));
  HONE_ASSIGN_OR_RETURN(const double low, c.Number(3, "lower_edge_hertz"));
  HONE_ASSIGN_OR_RETURN(const double high, c.Number(4, "upper_edge_hertz"));
  const int64_t number = c.IntAttr("output_datatype", 1), rows = length / 2 + 1;
  const std::optional<DType> dtype = OnnxDType(number);
  if (!dtype.has_value()) return Unsupported(absl::StrCat("elements of type ", OnnxDTypeName(number)));
  constexpr int64_t kMost = 1 << 20;
  if (bins < 1 || length < 1 || rate < 1 || bins > kMost || length > kMost || rows * bins > kMostEntries)
    return Unsupported(absl::StrCat(bins, " mel bins of ", length, " points at a rate of ", rate));
  if (!(low >= 0 && low < high && high <= static_cast<double>(rate)))
    return Unsupported(absl::StrCat("frequencies from ", low, " to ", high));
  const std::vector<int64_t> points = MelPoints(bins + 2, length, rate, low, high);
  if (points.back() > rows) return Unsupported(absl::StrCat("frequencies up to ", high, " at a rate of ", rate));
  NdArray weights(*dtype, {rows, bins});
  for (size_t i = 0; i < static_cast<size_t>(bins); ++i) {
    const int64_t begin = points[i], peak = points[i + 1], end = points[i + 2], column = static_cast<int64_t>(i);
    const auto part = [](int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
    for (int64_t j = begin; j < peak; ++j) weights.Set(j * bins + column, part(j - begin, peak - begin));
    if (peak < rows) weights.Set(peak * bins + column, 1);
    for (int64_t j = peak + 1; j < end; ++j) weights.Set(j * bins + column, part(end - j, end - peak));
  }
  return Results({Constant(c, std::move(weights))});
}

}  // namespace

HONE_OPERATORS(fourier) {
  return {
      {.onnx = {{"DFT", 17, Dft, "", true}, {"STFT", 17, Stft, "", true}, {"MelWeightMatrix", 17, MelWeightMatrix}}}};
}

}  // namespace hone
