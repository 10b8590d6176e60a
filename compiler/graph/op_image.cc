// Operators of images, channels last. "strides", "dilations" have one entry a spatial dimension, "pads" two: all
// befores, then all afters; "pad_value" of a convolution of integers is what it pads with. Image and result of a
// convolution with "channels_first" have channels first; its weight is the same.
#include <algorithm>
#include <cmath>

#include "compiler/graph/op_groups.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/conv.h"
#include "compiler/topi/norm.h"
#include "compiler/topi/pool.h"
#include "compiler/topi/resize.h"

namespace hone {
namespace {

struct Window {
  std::vector<int64_t> kernel, strides, dilations, before, after;
};

// The window attributes, completed with their defaults and checked.
absl::StatusOr<Window> ReadWindow(const Attrs& attrs, std::vector<int64_t> kernel) {
  const size_t n = kernel.size();
  Window w{std::move(kernel),
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

topi::ConvAttrs ConvAttrsOf(const Attrs& attrs, size_t spatial) {
  const Window w = *ReadWindow(attrs, std::vector<int64_t>(spatial, 1));
  return {w.strides,
          w.dilations,
          w.before,
          w.after,
          IntAttr(attrs, "groups", 1),
          static_cast<double>(IntAttr(attrs, "pad_value", 0)),
          IntAttr(attrs, "channels_first", 0) != 0};
}

// The image with channels last, as all is checked.
TensorType ChannelsLast(const TensorType& image, const Attrs& attrs) {
  TensorType last = image;
  if (IntAttr(attrs, "channels_first", 0) != 0 && image.rank() > 2)
    std::rotate(last.shape.begin() + 1, last.shape.begin() + 2, last.shape.end());
  return last;
}
// And back.
TensorType ResultOf(DType type, std::vector<int64_t> shape, const Attrs& attrs) {
  if (IntAttr(attrs, "channels_first", 0) != 0) std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return {type, std::move(shape)};
}

absl::Status CheckRank(const TensorType& image) {
  if (image.rank() >= 3 && image.rank() <= 5) return absl::OkStatus();
  return Refuse("an image of shape ", ToText(image), ": 1 to 3 spatial dimensions are supported");
}

absl::Status CheckImages(TypeSpan in, size_t count) {
  HONE_RETURN_IF_ERROR(ExpectInputs(in, count));
  HONE_RETURN_IF_ERROR(CheckRank(in[0]));
  if (!in[0].dtype.is_float()) return Refuse("an image of type ", ToText(in[0].dtype));
  for (const TensorType& type : in) {
    if (type.dtype != in[0].dtype) return Refuse("operands of different types: ", ToText(in[0]), " and ", ToText(type));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> WindowOutput(const TensorType& x, const Window& w, int64_t channels,
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

OpInfo ConvOp() {
  OpInfo op{.name = "conv", .kind = OpKind::kAnchor};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    const TensorType x = ChannelsLast(in[0], attrs), &w = in[1];
    HONE_RETURN_IF_ERROR(CheckRank(x));
    HONE_ASSIGN_OR_RETURN(const DType sum, SumOfProducts(x, w));
    if (w.rank() != x.rank()) return Refuse("an image of rank ", x.rank(), " and a weight of rank ", w.rank());
    const int64_t groups = IntAttr(attrs, "groups", 1), in_channels = x.shape.back(), out_channels = w.shape.back();
    if (groups < 1 || in_channels % groups != 0 || out_channels % groups != 0) {
      return Refuse(groups, " groups of ", in_channels, " input and ", out_channels, " output channels");
    }
    if (w.shape.end()[-2] != in_channels / groups) {
      return Refuse("the image has ", in_channels, " channels in ", groups, " groups, the weight takes ",
                    w.shape.end()[-2], " a group");
    }
    HONE_ASSIGN_OR_RETURN(const Window window, ReadWindow(attrs, {w.shape.begin(), w.shape.end() - 2}));
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, WindowOutput(x, window, out_channels, false));
    return Types{ResultOf(sum, std::move(shape), attrs)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    const int spatial = in[0].rank() - 2;
    return std::vector{topi::Conv(in[0], in[1], ConvAttrsOf(attrs, spatial), absl::StrCat("conv", spatial, "d"))};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan out) {
    return 2 * Count(out[0].shape) * Count(in[1].shape) / static_cast<double>(in[1].shape.back());
  };
  return op;
}

OpInfo DepthwiseConv2dOp() {
  OpInfo op{.name = "depthwise_conv2d", .kind = OpKind::kAnchor};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    const TensorType x = ChannelsLast(in[0], attrs), &w = in[1];
    HONE_ASSIGN_OR_RETURN(const DType sum, SumOfProducts(x, w));
    if (x.rank() != 4 || w.rank() != 3 || x.shape[3] != w.shape[2]) {
      return Refuse("a depthwise convolution of ", ToText(x), " with ", ToText(w));
    }
    HONE_ASSIGN_OR_RETURN(const Window window, ReadWindow(attrs, {w.shape[0], w.shape[1]}));
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, WindowOutput(x, window, w.shape[2], false));
    return Types{ResultOf(sum, std::move(shape), attrs)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::DepthwiseConv2d(in[0], in[1], ConvAttrsOf(attrs, 2), "depthwise_conv2d")};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan out) {
    return 2 * Count(out[0].shape) * static_cast<double>(in[1].shape[0] * in[1].shape[1]);
  };
  return op;
}

// Weight [K..., IC, OC / groups].
OpInfo ConvTransposeOp() {
  OpInfo op{.name = "conv_transpose", .kind = OpKind::kAnchor};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(CheckImages(in, 2));
    const TensorType &x = in[0], &w = in[1];
    if (w.rank() != x.rank()) return Refuse("an image of rank ", x.rank(), " and a weight of rank ", w.rank());
    const int64_t groups = IntAttr(attrs, "groups", 1);
    if (groups < 1 || x.shape.back() % groups != 0 || w.shape.end()[-2] != x.shape.back()) {
      return Refuse("the image has ", x.shape.back(), " channels in ", groups, " groups, the weight takes ",
                    w.shape.end()[-2]);
    }
    HONE_ASSIGN_OR_RETURN(const Window window, ReadWindow(attrs, {w.shape.begin(), w.shape.end() - 2}));
    const std::vector<int64_t> extra = IntsAttr(attrs, "output_padding", std::vector<int64_t>(window.kernel.size(), 0));
    if (extra.size() != window.kernel.size())
      return Refuse(extra.size(), " output paddings for ", window.kernel.size(), " spatial dimensions");
    std::vector<int64_t> shape = {x.shape[0]};
    for (size_t i = 0; i < extra.size(); ++i) {
      int64_t size = 0;
      if (extra[i] < 0 || __builtin_mul_overflow(x.shape[i + 1] - 1, window.strides[i], &size))
        return Refuse("output padding ", extra[i]);
      size += (window.kernel[i] - 1) * window.dilations[i] + 1 - window.before[i] - window.after[i] + extra[i];
      if (size < 1) return Refuse("the output would have ", size, " elements in spatial dimension ", i);
      shape.push_back(size);
    }
    shape.push_back(w.shape.back() * groups);
    return Types{{x.dtype, std::move(shape)}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::ConvTranspose(in[0], in[1], ConvAttrsOf(attrs, in[0].rank() - 2),
                                           IntsAttr(attrs, "output_padding"), "conv_transpose")};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan) {
    return 2 * Count(in[0].shape) * Count(in[1].shape) / static_cast<double>(in[1].shape.end()[-2]);
  };
  return op;
}

// "kernel", "ceil_mode", "count_include_pad" (average), "channels_first".
OpInfo PoolOp(std::string_view name, te::Tensor (*f)(const te::Tensor&, const topi::PoolAttrs&, const std::string&)) {
  OpInfo op{.name = name, .kind = OpKind::kAnchor};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(CheckImages(in, 1));
    const TensorType x = ChannelsLast(in[0], attrs);
    const std::vector<int64_t> kernel = IntsAttr(attrs, "kernel");
    if (static_cast<int>(kernel.size()) != x.rank() - 2) {
      return Refuse("a kernel of ", kernel.size(), " dimensions on an image of ", x.rank() - 2);
    }
    HONE_ASSIGN_OR_RETURN(const Window window, ReadWindow(attrs, kernel));
    for (size_t i = 0; i < kernel.size(); ++i) {
      const int64_t reach = (kernel[i] - 1) * window.dilations[i] + 1;
      if (window.before[i] >= reach || window.after[i] >= reach) {
        return Refuse("a padding of ", window.before[i], " and ", window.after[i],
                      " makes windows that see no element: the window has ", reach);
      }
    }
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                          WindowOutput(x, window, x.shape.back(), IntAttr(attrs, "ceil_mode") != 0));
    return Types{ResultOf(x.dtype, std::move(shape), attrs)};
  };
  op.lower = [f, name](TensorSpan in, const Attrs& attrs, TypeSpan) {
    const Window w = *ReadWindow(attrs, IntsAttr(attrs, "kernel"));
    const topi::PoolAttrs pool{w.kernel,
                               w.strides,
                               w.dilations,
                               w.before,
                               w.after,
                               IntAttr(attrs, "ceil_mode") != 0,
                               IntAttr(attrs, "count_include_pad") != 0,
                               IntAttr(attrs, "channels_first") != 0};
    return std::vector{f(in[0], pool, std::string(name))};
  };
  op.flop = [](TypeSpan, const Attrs& attrs, TypeSpan out) {
    return Count(out[0].shape) * Count(IntsAttr(attrs, "kernel"));
  };
  return op;
}

topi::ResizeAttrs ResizeAttrsOf(const Attrs& attrs, size_t spatial) {
  topi::ResizeAttrs resize;
  const std::string mode = StringAttr(attrs, "mode", "nearest");
  resize.mode = mode == "nearest"  ? topi::ResizeMode::kNearest
                : mode == "linear" ? topi::ResizeMode::kLinear
                                   : topi::ResizeMode::kCubic;
  const std::string coordinates = StringAttr(attrs, "coordinates", "half_pixel");
  resize.coordinates = coordinates == "half_pixel"           ? topi::ResizeCoordinates::kHalfPixel
                       : coordinates == "pytorch_half_pixel" ? topi::ResizeCoordinates::kPytorchHalfPixel
                       : coordinates == "asymmetric"         ? topi::ResizeCoordinates::kAsymmetric
                                                             : topi::ResizeCoordinates::kAlignCorners;
  const std::string rounding = StringAttr(attrs, "rounding", "round_prefer_floor");
  resize.rounding = rounding == "round_prefer_floor"  ? topi::ResizeRounding::kRoundPreferFloor
                    : rounding == "round_prefer_ceil" ? topi::ResizeRounding::kRoundPreferCeil
                    : rounding == "floor"             ? topi::ResizeRounding::kFloor
                                                      : topi::ResizeRounding::kCeil;
  resize.cubic_coefficient = FloatAttr(attrs, "cubic_coefficient", -0.75);
  for (size_t i = 0; i < spatial; ++i) {
    const double scale = FloatAttr(attrs, absl::StrCat("scale_", i), 0);
    if (scale > 0) resize.scales.push_back(scale);
  }
  if (resize.scales.size() != spatial) resize.scales.clear();
  return resize;
}

// "sizes" of the spatial dimensions, "mode", "coordinates", "rounding", "cubic_coefficient", "scale_0", "scale_1", ...
OpInfo ResizeOp() {
  OpInfo op{.name = "resize", .kind = OpKind::kAnchor};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    const std::vector<int64_t> sizes = IntsAttr(attrs, "sizes");
    if (in[0].rank() < 3 || static_cast<int>(sizes.size()) != in[0].rank() - 2)
      return Refuse("a resize of ", ToText(in[0]), " in ", sizes.size(), " dimensions");
    if (!in[0].dtype.is_float()) return Refuse("a resize of elements of type ", ToText(in[0].dtype));
    TensorType out = in[0];
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] < 1) return Refuse("a resize to ", sizes[i], " elements");
      out.shape[i + 1] = sizes[i];
    }
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    const std::vector<int64_t> sizes = IntsAttr(attrs, "sizes");
    return std::vector{topi::Resize(in[0], sizes, ResizeAttrsOf(attrs, sizes.size()), "resize")};
  };
  op.flop = [](TypeSpan, const Attrs& attrs, TypeSpan out) {
    const std::string mode = StringAttr(attrs, "mode");
    return Count(out[0].shape) * (mode == "linear" ? 8 : mode == "cubic" ? 40 : 1);
  };
  return op;
}

// Across the last axis: "size", "alpha", "beta", "bias".
OpInfo LrnOp() {
  OpInfo op{.name = "lrn", .kind = OpKind::kAnchor};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(CheckImages(in, 1));
    if (IntAttr(attrs, "size") < 1) return Refuse("a neighbourhood of ", IntAttr(attrs, "size"), " channels");
    return Types{in[0]};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Lrn(in[0], IntAttr(attrs, "size"), in[0].rank() - 1, FloatAttr(attrs, "alpha"),
                                 FloatAttr(attrs, "beta"), FloatAttr(attrs, "bias"), "lrn")};
  };
  op.flop = [](TypeSpan, const Attrs& attrs, TypeSpan out) {
    return Count(out[0].shape) * static_cast<double>(2 * IntAttr(attrs, "size") + 4);
  };
  return op;
}

}  // namespace

std::vector<OpInfo> ImageOps() {
  return {ConvOp(),
          DepthwiseConv2dOp(),
          ConvTransposeOp(),
          PoolOp("max_pool", topi::MaxPool),
          PoolOp("avg_pool", topi::AveragePool),
          ResizeOp(),
          LrnOp()};
}

}  // namespace hone
