#include "compiler/topi/resize.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tests/compiler/topi/expect_computes.h"

namespace hone::topi {
namespace {

using te::Placeholder;
using te::Tensor;

double Place(int64_t o, int64_t in, int64_t out, double scale, ResizeCoordinates c) {
  switch (c) {
    case ResizeCoordinates::kHalfPixel: return (o + 0.5) / scale - 0.5;
    case ResizeCoordinates::kPytorchHalfPixel: return out > 1 ? (o + 0.5) / scale - 0.5 : 0;
    case ResizeCoordinates::kAsymmetric: return o / scale;
    case ResizeCoordinates::kAlignCorners: return out > 1 ? static_cast<double>(o) * (in - 1) / (out - 1) : 0;
  }
  return 0;
}

const ResizeCoordinates kAllCoordinates[] = {ResizeCoordinates::kHalfPixel, ResizeCoordinates::kPytorchHalfPixel,
                                             ResizeCoordinates::kAsymmetric, ResizeCoordinates::kAlignCorners};
// Weighted neighbours along one dimension by the definition; `a` of the cubic.
std::vector<std::pair<int64_t, double>> Taps(ResizeMode mode, ResizeRounding r, double x, int64_t in, double a) {
  const auto clamp = [&](double at) { return std::clamp<int64_t>(static_cast<int64_t>(at), 0, in - 1); };
  if (mode == ResizeMode::kNearest) {
    const double at = r == ResizeRounding::kFloor              ? std::floor(x)
                      : r == ResizeRounding::kCeil             ? std::ceil(x)
                      : r == ResizeRounding::kRoundPreferFloor ? std::ceil(x - 0.5)
                                                               : std::floor(x + 0.5);
    return {{clamp(at), 1}};
  }
  const double low = std::floor(x), t = x - low;
  if (mode == ResizeMode::kLinear) return {{clamp(low), 1 - t}, {clamp(low + 1), t}};
  std::vector<std::pair<int64_t, double>> taps;
  for (int k = -1; k <= 2; ++k) {
    const double d = std::abs(t - k);
    const double w = d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1 : a * (d * d * d - 5 * d * d + 8 * d - 4);
    taps.emplace_back(clamp(low + k), w);
  }
  return taps;
}

void Check(const std::vector<int64_t>& from, const std::vector<int64_t>& to, const ResizeAttrs& attrs) {
  const Tensor x = Placeholder({1, from[0], from[1], 2}, kFloat32, "x");
  ExpectComputes({x}, Resize(x, to, attrs), [&](const auto& in, const Index& at) {
    std::vector<std::vector<std::pair<int64_t, double>>> taps;
    for (int d = 0; d < 2; ++d) {
      const double scale =
          attrs.scales.empty() ? static_cast<double>(to[d]) / static_cast<double>(from[d]) : attrs.scales[d];
      taps.push_back(Taps(attrs.mode, attrs.rounding, Place(at[d + 1], from[d], to[d], scale, attrs.coordinates),
                          from[d], attrs.cubic_coefficient));
    }
    double sum = 0;
    for (const auto& [h, wh] : taps[0]) {
      for (const auto& [w, ww] : taps[1]) sum += wh * ww * in[0]({at[0], h, w, at[3]});
    }
    return sum;
  });
}

TEST(Resize, Nearest) {
  // Sizes whose ratios are exact in floating point, so that the double formulas above decide ties as exact arithmetic
  // does.
  for (const ResizeCoordinates c : kAllCoordinates) {
    for (const ResizeRounding r : {ResizeRounding::kRoundPreferFloor, ResizeRounding::kRoundPreferCeil,
                                   ResizeRounding::kFloor, ResizeRounding::kCeil}) {
      Check({3, 5}, {6, 20}, {ResizeMode::kNearest, c, r});
      Check({8, 6}, {4, 3}, {ResizeMode::kNearest, c, r});
      Check({4, 1}, {1, 4}, {ResizeMode::kNearest, c, r});
    }
  }
}

TEST(Resize, LinearAndCubic) {
  for (const ResizeCoordinates c : kAllCoordinates) {
    for (const ResizeMode mode : {ResizeMode::kLinear, ResizeMode::kCubic}) {
      Check({3, 5}, {6, 13}, {mode, c});
      Check({9, 6}, {4, 3}, {mode, c});
      Check({4, 4}, {4, 1}, {mode, c});
      Check({1, 3}, {5, 3}, {mode, c});
    }
  }
  Check({4, 5}, {6, 6}, {ResizeMode::kLinear, ResizeCoordinates::kHalfPixel, {}, -0.75, {1.5, 1.3333334}});
}

}  // namespace
}  // namespace hone::topi
