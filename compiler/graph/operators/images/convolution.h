// What convolutions share with those of integers (convolution_variants.cc) and with transposed ones.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/topi/conv.h"

namespace hone {

// "groups", "pad_value" (what a convolution of integers pads with), "channels_first" and the window's attributes.
topi::ConvAttrs ConvAttrsOf(const Attrs& attrs, size_t spatial);

// The node's attributes applied to an image [N, C, S...] and a weight [OC, C / groups, K...]: `product` appends the
// product itself, "conv" or "depthwise_conv2d", of the image with channels last and the weight as op.h has it, and
// what follows it there.
using AddProduct = std::function<absl::StatusOr<int>(const std::string& op, int image, int weight, Attrs attrs)>;
absl::StatusOr<int> EmitConvolution(NodeContext& context, int image, int weight, const AddProduct& product);

// Adds the bias [C], if there is one, to an image whose channels come last.
absl::StatusOr<int> AddBias(NodeContext& context, int image, int bias);

}  // namespace hone
