// Shape functions that operators on images share. Images have channels last; "strides", "dilations" have one entry a
// spatial dimension, "pads" two: all befores, then all afters. Image and result of a node with "channels_first" have
// channels first; its weight is the same.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/operators/op_shapes.h"

namespace hone {

struct ImageWindow {
  std::vector<int64_t> kernel, strides, dilations, before, after;
};
// The window attributes, completed with their defaults and checked.
absl::StatusOr<ImageWindow> ReadImageWindow(const Attrs& attrs, std::vector<int64_t> kernel);
// The shape, channels last, of the windows' results.
absl::StatusOr<std::vector<int64_t>> WindowOutput(const TensorType& image, const ImageWindow& window, int64_t channels,
                                                  bool ceil_mode);

// The image with channels last, as all is checked.
TensorType ChannelsLast(const TensorType& image, const Attrs& attrs);
// And back.
TensorType ResultInLayout(DType type, std::vector<int64_t> shape, const Attrs& attrs);

absl::Status CheckImageRank(const TensorType& image);
// Refuses other than so many inputs of one floating type, of which the first is an image.
absl::Status CheckImages(TypeSpan inputs, size_t count);

}  // namespace hone
