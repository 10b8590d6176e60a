// ONNX images are NCHW, ours NHWC: what the operators of images share.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/frontend/operators.h"

namespace hone {

// [N, C, S...] -> [N, S..., C], and back. Passes sink and cancel these transposes later.
absl::StatusOr<int> ToChannelsLast(NodeContext& context, int value);
absl::StatusOr<int> ToChannelsFirst(NodeContext& context, int value);

}  // namespace hone
