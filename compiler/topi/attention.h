// Scaled dot-product attention.
#pragma once

#include <optional>
#include <string>

#include "compiler/te/te.h"

namespace hone::topi {

// q [B..., M, D], k [B..., N, D], v [B..., N, E] -> [B..., M, E]; leading dimensions broadcast.
//   y = softmax_n(scale * q k^T + mask) v
// Blocks NAME_scores, NAME_scaled, NAME_softmax_max, _exp, _sum, NAME_softmax, NAME. `scale` absent: 1 / sqrt(D).
// `mask` (absent: none) broadcasts to [B..., M, N] and is added; a bool mask lets through where it is true. A row with
// nothing let through gives NaN.
te::Tensor Attention(const te::Tensor& q, const te::Tensor& k, const te::Tensor& v, const te::Tensor& mask = {},
                     std::optional<double> scale = std::nullopt, const std::string& name = "attention");

}  // namespace hone::topi
