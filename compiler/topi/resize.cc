#include "compiler/topi/resize.h"

#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "compiler/support/check.h"
#include "compiler/topi/axes.h"

namespace hone::topi {
namespace {

// Where pixel `o` of the output lies in the input: (slope * o + offset) / unit, exact integers with unit > 0.
struct Line {
  int64_t slope = 0, offset = 0, unit = 1;
  int64_t in = 1;  // pixels of the input
  bool one_to_one() const { return slope == unit && offset == 0; }
};

struct Ratio {
  int64_t top, bottom;
};

// The simplest fraction within a millionth of `value`, by its continued fraction: a scale kept in float32 is 4/3 again.
Ratio Rational(double value) {
  int64_t p0 = 0, q0 = 1, p1 = 1, q1 = 0;
  double rest = value;
  for (int step = 0; step < 32; ++step) {
    const int64_t whole = static_cast<int64_t>(std::floor(rest));
    const int64_t p = whole * p1 + p0, q = whole * q1 + q0;
    p0 = p1, q0 = q1, p1 = p, q1 = q;
    if (std::abs(value - static_cast<double>(p) / static_cast<double>(q)) <= 1e-6 * value || q > (1 << 20)) break;
    rest = 1 / (rest - static_cast<double>(whole));
  }
  return {p1, q1};
}

Line LineOf(int64_t in, int64_t out, double scale, ResizeCoordinates coordinates) {
  Line line;
  line.in = in;
  const Ratio step = scale > 0 ? Rational(1 / scale) : Ratio{in, out};  // pixels of the input for one of the output
  switch (coordinates) {
    case ResizeCoordinates::kAlignCorners:
      if (out > 1) line.slope = in - 1, line.unit = out - 1;
      return line;
    case ResizeCoordinates::kAsymmetric: line.slope = step.top, line.unit = step.bottom; return line;
    case ResizeCoordinates::kPytorchHalfPixel:
      if (out == 1) return line;
      [[fallthrough]];
    case ResizeCoordinates::kHalfPixel:
      // (o + 1/2) * top / bottom - 1/2
      line.slope = 2 * step.top, line.offset = step.top - step.bottom, line.unit = 2 * step.bottom;
      return line;
  }
  HONE_UNREACHABLE();
}

Line Reduced(Line line) {
  const int64_t common = std::gcd(std::gcd(line.slope, line.offset), line.unit);
  line.slope /= common, line.offset /= common, line.unit /= common;
  return line;
}

Expr Clamp(const Expr& e, int64_t low, int64_t high) { return Min(Max(e, Expr(low)), Expr(high)); }

Expr NearestIndex(const Line& line, const Expr& o, ResizeRounding rounding) {
  if (line.one_to_one()) return o;
  const Expr place = o * line.slope + line.offset;
  const int64_t u = line.unit;
  switch (rounding) {
    case ResizeRounding::kFloor: return Clamp(FloorDiv(place, u), 0, line.in - 1);
    case ResizeRounding::kCeil: return Clamp(FloorDiv(place + (u - 1), u), 0, line.in - 1);
    // ceil(x - 1/2) and floor(x + 1/2)
    case ResizeRounding::kRoundPreferFloor: return Clamp(FloorDiv(place * 2 + (u - 1), 2 * u), 0, line.in - 1);
    case ResizeRounding::kRoundPreferCeil: return Clamp(FloorDiv(place * 2 + u, 2 * u), 0, line.in - 1);
  }
  HONE_UNREACHABLE();
}

// One weighted element of the input along one dimension.
struct Tap {
  Expr index, weight;  // no weight: 1
};

std::vector<Tap> LinearTaps(const Line& line, const Expr& o, DType type) {
  if (line.one_to_one()) return {{o, Expr()}};
  const Expr place = Clamp(o * line.slope + line.offset, 0, (line.in - 1) * line.unit);
  const Expr low = FloorDiv(place, line.unit);
  const Expr part = MakeCast(type, FloorMod(place, line.unit)) * Const(1.0 / static_cast<double>(line.unit), type);
  return {{low, Const(1, type) - part}, {Min(low + 1, Expr(line.in - 1)), part}};
}

// Keys' cubic convolution with coefficient a: weights of the four neighbours at distances 1 + t, t, 1 - t, 2 - t.
std::vector<Tap> CubicTaps(const Line& line, const Expr& o, DType type, double a) {
  if (line.one_to_one()) return {{o, Expr()}};
  const Expr place = o * line.slope + line.offset;
  const Expr low = FloorDiv(place, line.unit);
  const Expr t = MakeCast(type, FloorMod(place, line.unit)) * Const(1.0 / static_cast<double>(line.unit), type);
  const auto c = [&](double v) { return Const(v, type); };
  const auto near = [&](const Expr& d) { return (c(a + 2) * d - c(a + 3)) * d * d + c(1); };              // d <= 1
  const auto far = [&](const Expr& d) { return ((c(a) * d - c(5 * a)) * d + c(8 * a)) * d - c(4 * a); };  // 1 < d < 2
  const std::vector<Expr> weights = {far(t + c(1)), near(t), near(c(1) - t), far(c(2) - t)};
  std::vector<Tap> taps;
  for (int64_t k = 0; k < 4; ++k) taps.push_back({Clamp(low + (k - 1), 0, line.in - 1), weights[k]});
  return taps;
}

}  // namespace

te::Tensor Resize(const te::Tensor& x, const std::vector<int64_t>& spatial, const ResizeAttrs& attrs,
                  const std::string& name) {
  HONE_CHECK(x.rank() == static_cast<int>(spatial.size()) + 2) << name << ": sizes for another rank";
  te::Shape shape = {x.shape()[0]};
  std::vector<Line> lines;
  for (size_t d = 0; d < spatial.size(); ++d) {
    shape.push_back(spatial[d]);
    lines.push_back(Reduced(LineOf(x.dim(static_cast<int>(d) + 1), spatial[d],
                                   attrs.scales.empty() ? 0 : attrs.scales[d], attrs.coordinates)));
  }
  shape.push_back(x.shape().back());
  return te::Compute(
      shape,
      [&](const te::Indices& i) -> Expr {
        std::vector<Expr> at = ToExprs(i);
        if (attrs.mode == ResizeMode::kNearest) {
          for (size_t d = 0; d < lines.size(); ++d) at[d + 1] = NearestIndex(lines[d], i[d + 1], attrs.rounding);
          return x(at);
        }
        // The dimensions' taps inside one another: innermost is an element.
        const std::function<Expr(size_t)> weighted = [&](size_t d) -> Expr {
          if (d == lines.size()) return x(at);
          const std::vector<Tap> taps = attrs.mode == ResizeMode::kLinear
                                            ? LinearTaps(lines[d], i[d + 1], x.dtype())
                                            : CubicTaps(lines[d], i[d + 1], x.dtype(), attrs.cubic_coefficient);
          Expr sum;
          for (const Tap& tap : taps) {
            at[d + 1] = tap.index;
            const Expr inner = weighted(d + 1);
            const Expr term = tap.weight ? inner * tap.weight : inner;
            sum = sum ? sum + term : term;
          }
          return sum;
        };
        return weighted(0);
      },
      name);
}

}  // namespace hone::topi
