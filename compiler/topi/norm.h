// Softmax and normalisations. Every step is its own block, so that a schedule decides what is recomputed and what is
// kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/te/te.h"

namespace hone::topi {

// Blocks NAME_max, NAME_exp, NAME_sum, NAME:  m = max_j x;  e = exp(x - m);  y = e / sum_j e   along `axis`.
// e and its sum are rounded to `step` where that is narrower than x, y is not.
te::Tensor Softmax(const te::Tensor& x, int64_t axis, const std::string& name = "softmax",
                   std::optional<DType> step = std::nullopt);
// y = x - m - log(sum_j exp(x - m))
te::Tensor LogSoftmax(const te::Tensor& x, int64_t axis, const std::string& name = "log_softmax");

// Over all dimensions from `axis` on: blocks NAME_sum, NAME_mean, NAME_var_sum (of (x - mean)^2), NAME_rstd, NAME.
//   y = (x - mean) * 1 / sqrt(var + epsilon) * scale + bias;  scale and bias [x.shape[axis:]] broadcast; bias may be
//   absent.
// `mean` and `rstd` keep the reduced dimensions with size 1.
struct LayerNormResult {
  te::Tensor y, mean, rstd;
};
LayerNormResult LayerNormAll(const te::Tensor& x, const te::Tensor& scale, const te::Tensor& bias, int64_t axis,
                             double epsilon, const std::string& name = "layer_norm");
te::Tensor LayerNorm(const te::Tensor& x, const te::Tensor& scale, const te::Tensor& bias, int64_t axis, double epsilon,
                     const std::string& name = "layer_norm");
// y = x / sqrt(mean(x^2) + epsilon) * scale over the dimensions from `axis` on.
te::Tensor RmsNorm(const te::Tensor& x, const te::Tensor& scale, int64_t axis, double epsilon,
                   const std::string& name = "rms_norm");

// x [N, ..., C] (channels last): mean and variance of each group of C / groups channels of one image; scale, bias [C].
// Instance norm is groups == C.
te::Tensor GroupNorm(const te::Tensor& x, const te::Tensor& scale, const te::Tensor& bias, int64_t groups,
                     double epsilon, const std::string& name = "group_norm");

// x * scale + shift along `axis`; scale, shift [x.shape[axis]]: a batch norm whose statistics are folded.
te::Tensor ScaleShift(const te::Tensor& x, const te::Tensor& scale, const te::Tensor& shift, int64_t axis,
                      const std::string& name = "scale_shift");
// y = (x - mean) / sqrt(var + epsilon) * scale + bias along `axis`, all four [x.shape[axis]].
te::Tensor BatchNorm(const te::Tensor& x, const te::Tensor& scale, const te::Tensor& bias, const te::Tensor& mean,
                     const te::Tensor& var, int64_t axis, double epsilon, const std::string& name = "batch_norm");

// Local response normalisation across the channels (axis): y = x / (bias + alpha / size * s) ^ beta, where s is the sum
// of squares over channels c - floor((size - 1) / 2) .. c + ceil((size - 1) / 2) that exist.
te::Tensor Lrn(const te::Tensor& x, int64_t size, int64_t axis, double alpha, double beta, double bias,
               const std::string& name = "lrn");

}  // namespace hone::topi
