#include "compiler/graph/operators/images/image_shapes.h"

#include <algorithm>

#include "compiler/support/status_macros.h"
#include "compiler/topi/pool.h"

namespace hone {

absl::StatusOr<ImageWindow> ReadImageWindow(const Attrs& attrs, std::vector<int64_t> kernel) {
  const size_t n = kernel.size();
  ImageWindow w{std::move(kernel),
                IntsAttr(attrs, "strides", std::vector<int64_t>(n, 1)),
                IntsAttr(attrs, "dilations", std::vector<int64_t>(n, 1)),
                {},
                {}};
  const std::vector<int64_t> pads = IntsAttr(attrs, "pads", std::vector<int64_t>(2 * n, 0));
  if (w.strides.size() != n) return Refuse(w.strides.size(), " strides for ", n, " spatial dimensions");
  if (w.dilations.size() != n) return Refuse(w.dilations.size(), " dilations for ", n, " spatial dimensions");
  if (pads.size() != 2 * n) return Refuse(pads.size(), " pads for ", n, " spatial dimensions");
  constexpr int64_t kLimit = int64_t{1} << 20;
  for (size_t i = 0; i < n; ++i) {
    if (w.kernel[i] < 1 || w.kernel[i] > kLimit) return Refuse("a kernel of size ", w.kernel[i]);
    if (w.strides[i] < 1 || w.strides[i] > kLimit) return Refuse("a stride of ", w.strides[i]);
    if (w.dilations[i] < 1 || w.dilations[i] > kLimit) return Refuse("a dilation of ", w.dilations[i]);
    if (pads[i] < 0 || pads[n + i] < 0 || pads[i] > kLimit || pads[n + i] > kLimit) {
      return Refuse("a padding of ", pads[i], " and ", pads[n + i]);
    }
  }
  w.before.assign(pads.begin(), pads.begin() + n);
  w.after.assign(pads.begin() + n, pads.end());
  return w;
}

absl::StatusOr<std::vector<int64_t>> WindowOutput(const TensorType& x, const ImageWindow& w, int64_t channels,
                                                  bool ceil_mode) {
  std::vector<int64_t> shape = {x.shape[0]};
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int64_t size = topi::PoolOutputSize(x.shape[i + 1], w.kernel[i], w.strides[i], w.dilations[i], w.before[i],
                                              w.after[i], ceil_mode);
    const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    if (x.shape[i + 1] + w.before[i] + w.after[i] < reach || size < 1) {
      return Refuse("the window of ", reach, " does not fit into ", x.shape[i + 1], " elements padded by ", w.before[i],
                    " and ", w.after[i]);
    }
    shape.push_back(size);
  }
  shape.push_back(channels);
  return shape;
}

TensorType ChannelsLast(const TensorType& image, const Attrs& attrs) {
  TensorType last = image;
  if (IntAttr(attrs, "channels_first", 0) != 0 && image.rank() > 2)
    std::rotate(last.shape.begin() + 1, last.shape.begin() + 2, last.shape.end());
  return last;
}

TensorType ResultInLayout(DType type, std::vector<int64_t> shape, const Attrs& attrs) {
  if (IntAttr(attrs, "channels_first", 0) != 0) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return {type, std::move(shape)};
}

absl::Status CheckImageRank(const TensorType& image) {
  if (image.rank() >= 3 && image.rank() <= 5) return absl::OkStatus();
  return Refuse("an image of shape ", ToText(image), ": 1 to 3 spatial dimensions are supported");
}

absl::Status CheckImages(TypeSpan in, size_t count) {
  HONE_RETURN_IF_ERROR(ExpectInputs(in, count));
  HONE_RETURN_IF_ERROR(CheckImageRank(in[0]));
  if (!in[0].dtype.is_float()) return Refuse("an image of type ", ToText(in[0].dtype));
  for (const TensorType& type : in) {
    if (type.dtype != in[0].dtype) return Refuse("operands of different types: ", ToText(in[0]), " and ", ToText(type));
  }
  return absl::OkStatus();
}

}  // namespace hone
