// Resizing images [N, S..., C] along their spatial dimensions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/te/te.h"

namespace hone::topi {

enum class ResizeMode { kNearest, kLinear, kCubic };
// Where pixel i of the output lies in the input, with scale = out / in unless given:
//   kHalfPixel         (i + 0.5) / scale - 0.5
//   kPytorchHalfPixel  the same, but 0 where the output has one pixel
//   kAsymmetric        i / scale
//   kAlignCorners      i * (in - 1) / (out - 1), 0 where the output has one pixel
enum class ResizeCoordinates { kHalfPixel, kPytorchHalfPixel, kAsymmetric, kAlignCorners };
enum class ResizeRounding { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

struct ResizeAttrs {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kRoundPreferFloor;  // for kNearest
  double cubic_coefficient = -0.75;
  std::vector<double> scales;  // one a spatial dimension, or empty: out / in
};

// Positions are exact: a scale is taken as the fraction it stands for, so that indices are integer arithmetic of the
// output's (floor divisions), never rounded floats. Coordinates outside are clamped to the edge.
te::Tensor Resize(const te::Tensor& x, const std::vector<int64_t>& spatial, const ResizeAttrs& attrs,
                  const std::string& name = "resize");

}  // namespace hone::topi
