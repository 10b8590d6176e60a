// ONNX images are NCHW, ours NHWC: what importing the operators of images shares. They are imported as their NHWC forms
// between two transposes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/operators/node_context.h"

namespace hone {

// [N, C, S...] -> [N, S..., C], and back. Passes sink and cancel these transposes later.
absl::StatusOr<int> ToChannelsLast(NodeContext& context, int value);
absl::StatusOr<int> ToChannelsFirst(NodeContext& context, int value);

// Refuses what is no image of one to three spatial dimensions.
absl::Status CheckImage(NodeContext& context, int value);
// Those of [N, C, S...], or of a weight's shape.
std::vector<int64_t> SpatialSizes(const std::vector<int64_t>& shape);

struct WindowAttrs {
  std::vector<int64_t> kernel, strides, dilations, pads;  // pads: all befores, then all afters
};
// Reads and completes kernel_shape (given where the weight says it), strides, dilations, pads and auto_pad for an image
// of these spatial sizes.
absl::StatusOr<WindowAttrs> ReadWindow(NodeContext& context, const std::vector<int64_t>& spatial,
                                       std::vector<int64_t> kernel);

// Images of one spatial dimension are handled as [N, C, 1, L]; the vectors get the entry for the new dimension.
struct WithHeight {
  int value;
  bool added;  // false where the image had one
};
absl::StatusOr<WithHeight> AddHeight(NodeContext& context, int value);
void AddHeight(WindowAttrs& window);
absl::StatusOr<int> RemoveHeight(NodeContext& context, int value, bool added);

}  // namespace hone
