// ONNX images are NCHW, ours NHWC: what the operators of images share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/operators/node_context.h"

namespace hone {

// [N, C, S...] -> [N, S..., C], and back. Passes sink and cancel these transposes later.
absl::StatusOr<int> ToChannelsLast(NodeContext& context, int value);
absl::StatusOr<int> ToChannelsFirst(NodeContext& context, int value);

struct WindowAttrs {
  std::vector<int64_t> kernel, strides, dilations, pads;  // pads: all befores, then all afters
};
// Reads and completes kernel_shape (given where the weight says it), strides, dilations, pads and auto_pad for an image
// of these spatial sizes.
absl::StatusOr<WindowAttrs> ReadWindow(NodeContext& context, const std::vector<int64_t>& spatial,
                                       std::vector<int64_t> kernel);

// The node's attributes applied to an image [N, C, S...] and a weight [OC, C / groups, K...]: `product` appends the
// product itself, "conv" or "depthwise_conv2d", of the image with channels last and the weight as op.h has it, and
// what follows it there.
using AddProduct = std::function<absl::StatusOr<int>(const std::string& op, int image, int weight, Attrs attrs)>;
absl::StatusOr<int> EmitConvolution(NodeContext& context, int image, int weight, const AddProduct& product);

}  // namespace hone
