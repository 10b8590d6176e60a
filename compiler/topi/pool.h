// Pooling over tensors [N, S..., C] of up to three spatial dimensions; MaxPool and AveragePool take [N, C, S...] too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/te/te.h"

namespace hone::topi {

// One entry a spatial dimension; empty strides and dilations are 1, empty pads 0.
struct PoolAttrs {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads_before, pads_after;
  bool ceil_mode = false;          // the output size is rounded up
  bool count_include_pad = false;  // average: padding (not what ceil_mode adds) counts as elements
  bool channels_first = false;     // of the image and the result
};

// With ceil_mode a window that would start in the padding after the input is left out.
int64_t PoolOutputSize(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t before, int64_t after,
                       bool ceil_mode);

// A window that reaches past the input is padded in a block named "pad" (-infinity for max, 0 for average).
te::Tensor MaxPool(const te::Tensor& x, const PoolAttrs& attrs, const std::string& name = "max_pool");
// Blocks NAME_sum and NAME.
te::Tensor AveragePool(const te::Tensor& x, const PoolAttrs& attrs, const std::string& name = "avg_pool");
// [N, S..., C] -> [N, 1..., C]
te::Tensor GlobalAveragePool(const te::Tensor& x, const std::string& name = "global_avg_pool");
te::Tensor GlobalMaxPool(const te::Tensor& x, const std::string& name = "global_max_pool");

}  // namespace hone::topi
