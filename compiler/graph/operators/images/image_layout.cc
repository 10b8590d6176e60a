#include "compiler/graph/operators/images/image_layout.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<int> ToChannelsLast(NodeContext& c, int value) {
  std::vector<int64_t> perm(c.rank(value));
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
  return c.Transpose(value, perm);
}

absl::StatusOr<int> ToChannelsFirst(NodeContext& c, int value) {
  std::vector<int64_t> perm(c.rank(value));
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
  return c.Transpose(value, perm);
}

absl::Status CheckImage(NodeContext& c, int value) {
  if (c.rank(value) >= 3 && c.rank(value) <= 5) return absl::OkStatus();
  return Unsupported(
      absl::StrCat("an image of shape ", ToText(c.type(value)), "; one to three spatial dimensions are supported"));
}

std::vector<int64_t> SpatialSizes(const std::vector<int64_t>& shape) { return {shape.begin() + 2, shape.end()}; }

absl::StatusOr<WindowAttrs> ReadWindow(NodeContext& c, const std::vector<int64_t>& spatial,
                                       std::vector<int64_t> kernel) {
  const size_t n = spatial.size();
  const std::vector<int64_t> named = c.IntsAttr("kernel_shape", kernel);
  if (!kernel.empty() && named != kernel) return Unsupported("kernel_shape is not the weight's");
  WindowAttrs w{named, c.IntsAttr("strides", std::vector<int64_t>(n, 1)),
                c.IntsAttr("dilations", std::vector<int64_t>(n, 1)),
                c.IntsAttr("pads", std::vector<int64_t>(2 * n, 0))};
  if (w.kernel.size() != n || w.strides.size() != n || w.dilations.size() != n || w.pads.size() != 2 * n) {
    return Unsupported(absl::StrCat("kernel_shape, strides, dilations or pads do not fit ", n, " spatial dimensions"));
  }
  constexpr int64_t kLimit = int64_t{1} << 20;
  for (const std::vector<int64_t>* list : {&w.kernel, &w.strides, &w.dilations}) {
    for (const int64_t v : *list) {
      if (v < 1 || v > kLimit) return Unsupported(absl::StrCat("a kernel size, stride or dilation of ", v));
    }
  }
  const std::string auto_pad = c.StringAttr("auto_pad", "NOTSET");
  if (auto_pad == "VALID") w.pads.assign(2 * n, 0);
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    for (size_t i = 0; i < n; ++i) {
      const int64_t out = (spatial[i] + w.strides[i] - 1) / w.strides[i];
      const int64_t total =
          std::max<int64_t>(0, (out - 1) * w.strides[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 - spatial[i]);
      const int64_t less = total / 2;
      w.pads[i] = auto_pad == "SAME_UPPER" ? less : total - less;
      w.pads[n + i] = total - w.pads[i];
    }
  } else if (auto_pad != "NOTSET" && auto_pad != "VALID" && !auto_pad.empty()) {
    return Unsupported(absl::StrCat("auto_pad is \"", auto_pad, "\""));
  }
  return w;
}

absl::StatusOr<WithHeight> AddHeight(NodeContext& c, int value) {
  if (c.rank(value) != 3) return WithHeight{value, false};
  const std::vector<int64_t> shape = c.shape(value);
  HONE_ASSIGN_OR_RETURN(const int image, c.Reshape(value, {shape[0], shape[1], 1, shape[2]}));
  return WithHeight{image, true};
}

void AddHeight(WindowAttrs& w) {
  w.kernel.insert(w.kernel.begin(), 1);
  w.strides.insert(w.strides.begin(), 1);
  w.dilations.insert(w.dilations.begin(), 1);
  w.pads = {0, w.pads[0], 0, w.pads[1]};
}

absl::StatusOr<int> RemoveHeight(NodeContext& c, int value, bool added) {
  if (!added) return value;
  const std::vector<int64_t> shape = c.shape(value);
  return c.Reshape(value, {shape[0], shape[1], shape[3]});
}

}  // namespace hone
