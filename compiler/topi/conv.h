// Convolutions over channels-last tensors: N spatial... C, weights spatial... input channels, output channels. Conv and
// DepthwiseConv2d also read and write images with channels first, N C spatial...; the weights are the same.
//
// Padding that is not zero is a block of its own, named "pad"; without padding the convolution reads its input
// directly. Sums are of the type that product.h says: int32 where the operands are integers of 8 or 16 bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/te/te.h"

namespace hone::topi {

// All vectors are one entry a spatial dimension; empty means stride 1, dilation 1, no padding.
struct ConvAttrs {
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads_before;  // elements of padding before and after: they may differ
  std::vector<int64_t> pads_after;
  int64_t groups = 1;
  double pad_value = 0;         // read by Conv and DepthwiseConv2d: of integers, what stands for 0
  bool channels_first = false;  // of the image and the result; read by Conv and DepthwiseConv2d
};

// floor((in + before + after - (kernel - 1) * dilation - 1) / stride) + 1
int64_t ConvOutputSize(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t before, int64_t after);

// x [N, S..., IC], w [K..., IC / groups, OC] -> [N, O..., OC] for one, two or three spatial dimensions:
//   y[n, o, oc] = sum_{k, ic} pad(x)[n, o * stride + k * dilation, (oc / (OC / groups)) * (IC / groups) + ic] * w[k,
//   ic, oc]
te::Tensor Conv(const te::Tensor& x, const te::Tensor& w, const ConvAttrs& attrs, const std::string& name = "conv");
// Conv of two dimensions: NHWC x HWIO -> NHWC.
te::Tensor Conv2d(const te::Tensor& x, const te::Tensor& w, const ConvAttrs& attrs, const std::string& name = "conv2d");

// x [N, H, W, C], w [KH, KW, C] -> [N, OH, OW, C]; `groups` is not read.
//   y[n, oh, ow, c] = sum_{kh, kw} pad(x)[n, oh * sh + kh * dh, ow * sw + kw * dw, c] * w[kh, kw, c]
te::Tensor DepthwiseConv2d(const te::Tensor& x, const te::Tensor& w, const ConvAttrs& attrs,
                           const std::string& name = "depthwise_conv2d");

// x [N, S..., IC], w [K..., IC, OC / groups] -> [N, O..., OC], the gradient of Conv:
//   O = (S - 1) * stride + (K - 1) * dilation + 1 - before - after + output_padding
//   y[n, o, oc] = sum_{k, ic} x[n, (o + before - k * dilation) / stride, ic] * w[k, ic, oc mod (OC / groups)]
// over the k for which the division is exact and inside x, and the input channels of oc's group. `output_padding`
// empty: none.
te::Tensor ConvTranspose(const te::Tensor& x, const te::Tensor& w, const ConvAttrs& attrs,
                         const std::vector<int64_t>& output_padding = {}, const std::string& name = "conv_transpose");

}  // namespace hone::topi
