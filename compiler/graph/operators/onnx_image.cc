// Operators of images. Imported as their NHWC forms between two transposes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/image_layout.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/onnx_operators.h"
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

// Reads and completes kernel_shape (given where the weight says it), strides, dilations, pads and auto_pad for an image
// of these spatial sizes.
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

namespace {

using Ints = std::vector<int64_t>;

// Images of one spatial dimension are handled as [N, C, 1, L]; the vectors get the entry for the new dimension.
struct Lifted {
  int value;
  bool lifted;
};
absl::StatusOr<Lifted> Lift(NodeContext& c, int value) {
  if (c.rank(value) != 3) return Lifted{value, false};
  const Ints shape = c.shape(value);
  HONE_ASSIGN_OR_RETURN(const int image, c.Reshape(value, {shape[0], shape[1], 1, shape[2]}));
  return Lifted{image, true};
}
absl::StatusOr<int> Lower(NodeContext& c, int value, bool lifted) {
  if (!lifted) return value;
  const Ints shape = c.shape(value);
  return c.Reshape(value, {shape[0], shape[1], shape[3]});
}

void LiftWindow(WindowAttrs& w) {
  w.kernel.insert(w.kernel.begin(), 1);
  w.strides.insert(w.strides.begin(), 1);
  w.dilations.insert(w.dilations.begin(), 1);
  w.pads = {0, w.pads[0], 0, w.pads[1]};
}

Ints Spatial(const Ints& shape) { return {shape.begin() + 2, shape.end()}; }

absl::Status CheckImage(NodeContext& c, int value) {
  if (c.rank(value) >= 3 && c.rank(value) <= 5) return absl::OkStatus();
  return Unsupported(
      absl::StrCat("an image of shape ", ToText(c.type(value)), "; one to three spatial dimensions are supported"));
}

// Adds the bias [C] to an image whose channels come last.
absl::StatusOr<int> AddBias(NodeContext& c, int image, int bias) {
  if (bias < 0) return image;
  if (c.shape(bias) != Ints{c.shape(image).back()})
    return Unsupported(absl::StrCat("the bias is ", ToText(c.type(bias)), " for ", c.shape(image).back(), " channels"));
  return c.Emit("add", {image, bias});
}

}  // namespace

absl::StatusOr<int> EmitConvolution(NodeContext& c, int image, int weight, const AddProduct& product) {
  HONE_RETURN_IF_ERROR(CheckImage(c, image));
  if (c.rank(weight) != c.rank(image))
    return Unsupported(absl::StrCat("the weight is ", ToText(c.type(weight)), " for ", ToText(c.type(image))));
  HONE_ASSIGN_OR_RETURN(WindowAttrs w, ReadWindow(c, Spatial(c.shape(image)), Spatial(c.shape(weight))));
  HONE_ASSIGN_OR_RETURN(const Lifted lifted, Lift(c, image));
  HONE_ASSIGN_OR_RETURN(const Lifted kernel, Lift(c, weight));
  if (lifted.lifted) LiftWindow(w);
  const int64_t groups = c.IntAttr("group", 1), channels = c.shape(lifted.value)[1];
  const Ints ws = c.shape(kernel.value);  // [OC, IC / groups, K...]
  if (groups < 1 || groups > channels || ws[1] * groups != channels || ws[0] % groups != 0) {
    return Unsupported(absl::StrCat("the image has ", channels, " channels in ", groups, " groups, the weight is ",
                                    ToText(c.type(weight))));
  }
  HONE_ASSIGN_OR_RETURN(const int x, ToChannelsLast(c, lifted.value));
  Attrs attrs{{"strides", w.strides}, {"dilations", w.dilations}, {"pads", w.pads}};
  int y = -1;
  if (ws.size() == 4 && groups == channels && groups > 1 && ws[0] == groups) {
    HONE_ASSIGN_OR_RETURN(int k, c.Transpose(kernel.value, {2, 3, 0, 1}));
    HONE_ASSIGN_OR_RETURN(k, c.Reshape(k, {ws[2], ws[3], ws[0]}));
    HONE_ASSIGN_OR_RETURN(y, product("depthwise_conv2d", x, k, std::move(attrs)));
  } else {
    Ints perm;
    for (int64_t d = 2; d < static_cast<int64_t>(ws.size()); ++d) perm.push_back(d);
    perm.insert(perm.end(), {1, 0});
    HONE_ASSIGN_OR_RETURN(const int k, c.Transpose(kernel.value, perm));
    attrs["groups"] = groups;
    HONE_ASSIGN_OR_RETURN(y, product("conv", x, k, std::move(attrs)));
  }
  HONE_ASSIGN_OR_RETURN(y, ToChannelsFirst(c, y));
  return Lower(c, y, lifted.lifted);
}

namespace {

Outputs Conv(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 3));
  const auto product = [&](const std::string& op, int x, int k, Attrs attrs) -> absl::StatusOr<int> {
    HONE_ASSIGN_OR_RETURN(const int y, c.Emit(op, {x, k}, std::move(attrs)));
    return AddBias(c, y, c.input(2));
  };
  HONE_ASSIGN_OR_RETURN(const int y, EmitConvolution(c, c.input(0), c.input(1), product));
  return std::vector<int>{y};
}

// The window of a transposed convolution, and what is added behind each spatial dimension of its result.
struct TransposedWindow {
  WindowAttrs window;
  Ints output_padding;
};

// Pads that give the result the wanted size, or with auto_pad SAME_* the image's times the stride.
absl::Status PadToSize(NodeContext& c, const Ints& spatial, bool upper, TransposedWindow& t) {
  const Ints wanted = c.IntsAttr("output_shape");
  WindowAttrs& w = t.window;
  const size_t n = spatial.size();
  if (!wanted.empty() && wanted.size() != n && wanted.size() != n + 2)
    return Unsupported("output_shape does not fit the image");
  for (size_t i = 0; i < n; ++i) {
    const int64_t size = wanted.empty() ? spatial[i] * w.strides[i] : wanted[wanted.size() - n + i];
    if (!wanted.empty() && (size < 1 || size > kMostElements)) return Unsupported("output_shape is not a size");
    const int64_t total =
        (spatial[i] - 1) * w.strides[i] + t.output_padding[i] + (w.kernel[i] - 1) * w.dilations[i] + 1 - size;
    if (total < 0) {  // elements beyond the last that any input reaches
      t.output_padding[i] -= total;
      w.pads[i] = w.pads[n + i] = 0;
      continue;
    }
    w.pads[i] = upper ? total / 2 : total - total / 2;
    w.pads[n + i] = total - w.pads[i];
  }
  return absl::OkStatus();
}

// Of an image and a kernel of these spatial sizes.
absl::StatusOr<TransposedWindow> ReadTransposedWindow(NodeContext& c, const Ints& spatial, const Ints& kernel) {
  const size_t n = spatial.size();
  const std::string auto_pad = c.StringAttr("auto_pad", "NOTSET");
  TransposedWindow t{{kernel, c.IntsAttr("strides", Ints(n, 1)), c.IntsAttr("dilations", Ints(n, 1)),
                      c.IntsAttr("pads", Ints(2 * n, 0))},
                     c.IntsAttr("output_padding", Ints(n, 0))};
  const WindowAttrs& w = t.window;
  if (c.IntsAttr("kernel_shape", kernel) != kernel) return Unsupported("kernel_shape is not the weight's");
  if (w.strides.size() != n || w.dilations.size() != n || t.output_padding.size() != n || w.pads.size() != 2 * n) {
    return Unsupported(
        absl::StrCat("strides, dilations, pads or output_padding do not fit ", n, " spatial dimensions"));
  }
  for (size_t i = 0; i < n; ++i) {
    for (const int64_t v : {w.strides[i], w.dilations[i], t.output_padding[i]}) {
      if (v < 0 || v > (1 << 20)) return Unsupported(absl::StrCat("strides, dilations or output_padding of ", v));
    }
  }
  if (auto_pad == "VALID") t.window.pads.assign(2 * n, 0);
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (same || !c.IntsAttr("output_shape").empty()) {
    HONE_RETURN_IF_ERROR(PadToSize(c, spatial, auto_pad == "SAME_UPPER", t));
  }
  return t;
}

Outputs ConvTranspose(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 3));
  HONE_RETURN_IF_ERROR(CheckImage(c, c.input(0)));
  const Ints xs = c.shape(c.input(0)), ws = c.shape(c.input(1));  // weight [IC, OC / groups, K...]
  if (ws.size() != xs.size())
    return Unsupported(absl::StrCat("the weight is ", ToText(c.type(c.input(1))), " for ", ToText(c.type(c.input(0)))));
  HONE_ASSIGN_OR_RETURN(TransposedWindow t, ReadTransposedWindow(c, Spatial(xs), Spatial(ws)));
  HONE_ASSIGN_OR_RETURN(const Lifted image, Lift(c, c.input(0)));
  HONE_ASSIGN_OR_RETURN(const Lifted weight, Lift(c, c.input(1)));
  if (image.lifted) {
    LiftWindow(t.window);
    t.output_padding.insert(t.output_padding.begin(), 0);
  }
  HONE_ASSIGN_OR_RETURN(const int x, ToChannelsLast(c, image.value));
  Ints perm;
  for (int64_t d = 2; d < c.rank(weight.value); ++d) perm.push_back(d);
  perm.insert(perm.end(), {0, 1});
  HONE_ASSIGN_OR_RETURN(const int k, c.Transpose(weight.value, perm));
  HONE_ASSIGN_OR_RETURN(int y, c.Emit("conv_transpose", {x, k},
                                      {{"strides", t.window.strides},
                                       {"dilations", t.window.dilations},
                                       {"pads", t.window.pads},
                                       {"groups", c.IntAttr("group", 1)},
                                       {"output_padding", t.output_padding}}));
  HONE_ASSIGN_OR_RETURN(y, AddBias(c, y, c.input(2)));
  HONE_ASSIGN_OR_RETURN(y, ToChannelsFirst(c, y));
  HONE_ASSIGN_OR_RETURN(y, Lower(c, y, image.lifted));
  return std::vector<int>{y};
}

Outputs Pool(NodeContext& c, std::string_view op) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_RETURN_IF_ERROR(CheckImage(c, c.input(0)));
  if (c.IntAttr("storage_order", 0) != 0) return Unsupported("storage_order is not supported");
  HONE_ASSIGN_OR_RETURN(WindowAttrs w, ReadWindow(c, Spatial(c.shape(c.input(0))), {}));
  HONE_ASSIGN_OR_RETURN(const Lifted image, Lift(c, c.input(0)));
  if (image.lifted) LiftWindow(w);
  HONE_ASSIGN_OR_RETURN(const int x, ToChannelsLast(c, image.value));
  HONE_ASSIGN_OR_RETURN(int y, c.Emit(op, {x},
                                      {{"kernel", w.kernel},
                                       {"strides", w.strides},
                                       {"dilations", w.dilations},
                                       {"pads", w.pads},
                                       {"ceil_mode", c.IntAttr("ceil_mode", 0)},
                                       {"count_include_pad", c.IntAttr("count_include_pad", 0)}}));
  HONE_ASSIGN_OR_RETURN(y, ToChannelsFirst(c, y));
  HONE_ASSIGN_OR_RETURN(y, Lower(c, y, image.lifted));
  return std::vector<int>{y};
}

Outputs GlobalPool(NodeContext& c, std::string_view op) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  if (c.rank(c.input(0)) < 3) return Unsupported(absl::StrCat("an image of shape ", ToText(c.type(c.input(0)))));
  Ints axes;
  for (int64_t d = 1; d + 1 < c.rank(c.input(0)); ++d) axes.push_back(d);
  HONE_ASSIGN_OR_RETURN(const int x, ToChannelsLast(c, c.input(0)));
  HONE_ASSIGN_OR_RETURN(int y, c.Emit(op, {x}, {{"axes", axes}, {"keepdims", int64_t{1}}}));
  HONE_ASSIGN_OR_RETURN(y, ToChannelsFirst(c, y));
  return std::vector<int>{y};
}

Outputs Lrn(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_RETURN_IF_ERROR(CheckImage(c, c.input(0)));
  HONE_ASSIGN_OR_RETURN(const int x, ToChannelsLast(c, c.input(0)));
  HONE_ASSIGN_OR_RETURN(int y, c.Emit("lrn", {x},
                                      {{"size", c.IntAttr("size", 0)},
                                       {"alpha", c.FloatAttr("alpha", 1e-4)},
                                       {"beta", c.FloatAttr("beta", 0.75)},
                                       {"bias", c.FloatAttr("bias", 1.0)}}));
  HONE_ASSIGN_OR_RETURN(y, ToChannelsFirst(c, y));
  return std::vector<int>{y};
}

// ---- Resize and its ancestor Upsample: along the spatial dimensions alone.
struct ResizePlan {
  Ints sizes;                  // of the spatial dimensions
  std::vector<double> scales;  // where the model gives scales, not sizes
};

// From one entry a dimension of the image; sizes take precedence where they are given.
absl::StatusOr<ResizePlan> PlanResize(const Ints& shape, const std::vector<double>& scales, const Ints& sizes) {
  if (shape.size() < 3) return Unsupported("only images [N, C, spatial...] can be resized");
  ResizePlan plan;
  for (size_t d = 0; d < shape.size(); ++d) {
    const double scale = sizes.empty() ? scales[d] : 1;
    // In float32, as ONNX Runtime multiplies: 5 * 2.6f is 13 there, and a little less in float64.
    const double scaled = std::floor(static_cast<float>(shape[d]) * static_cast<float>(scale));
    if (!(scale > 0) || !(scaled < 0x1p40)) return Unsupported(absl::StrCat("a scale of ", scale));
    const int64_t size = sizes.empty() ? static_cast<int64_t>(scaled) : sizes[d];
    if (d < 2 && size != shape[d]) return Unsupported("a resize of the batch or the channels");
    if (d < 2) continue;
    plan.sizes.push_back(size);
    if (sizes.empty()) plan.scales.push_back(scale);
  }
  return plan;
}

Outputs EmitResize(NodeContext& c, const ResizePlan& plan, const std::string& mode, const std::string& coordinates,
                   const std::string& rounding, double cubic) {
  const std::string our_mode = mode == "bilinear" ? "linear" : mode;
  if (our_mode != "nearest" && our_mode != "linear" && our_mode != "cubic")
    return Unsupported(absl::StrCat("mode \"", mode, "\""));
  if (coordinates != "half_pixel" && coordinates != "pytorch_half_pixel" && coordinates != "asymmetric" &&
      coordinates != "align_corners") {
    return Unsupported(absl::StrCat("coordinate_transformation_mode \"", coordinates, "\""));
  }
  if (rounding != "round_prefer_floor" && rounding != "round_prefer_ceil" && rounding != "floor" &&
      rounding != "ceil") {
    return Unsupported(absl::StrCat("nearest_mode \"", rounding, "\""));
  }
  HONE_ASSIGN_OR_RETURN(const int x, ToChannelsLast(c, c.input(0)));
  Attrs attrs{{"sizes", plan.sizes},
              {"mode", our_mode},
              {"coordinates", coordinates},
              {"rounding", rounding},
              {"cubic_coefficient", cubic}};
  for (size_t i = 0; i < plan.scales.size(); ++i) attrs[absl::StrCat("scale_", i)] = plan.scales[i];
  HONE_ASSIGN_OR_RETURN(int y, c.Emit("resize", {x}, std::move(attrs)));
  HONE_ASSIGN_OR_RETURN(y, ToChannelsFirst(c, y));
  return std::vector<int>{y};
}

absl::StatusOr<std::vector<double>> Scales(NodeContext& c, int i) {
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const NdArray> array, c.Constant(i, "scales"));
  std::vector<double> scales;
  for (int64_t e = 0; e < array->NumElements(); ++e) scales.push_back(array->Get(e));
  return scales;
}

Outputs Upsample(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(c.opset() >= 9 ? 2 : 1, c.opset() >= 9 ? 2 : 1));
  std::vector<double> scales = c.FloatsAttr("scales");
  if (c.opset() >= 9) { HONE_ASSIGN_OR_RETURN(scales, Scales(c, 1)); }
  if (static_cast<int>(scales.size()) != c.rank(c.input(0)))
    return Unsupported(absl::StrCat(scales.size(), " scales for ", ToText(c.type(c.input(0)))));
  HONE_ASSIGN_OR_RETURN(const ResizePlan plan, PlanResize(c.shape(c.input(0)), scales, {}));
  return EmitResize(c, plan, c.StringAttr("mode", "nearest"), "asymmetric", "floor", -0.75);
}

// Between channels and blocks of pixels: reshapes around a transpose, in NCHW.
Outputs DepthToSpace(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const int64_t b = c.IntAttr("blocksize", 0);
  const std::string mode = c.StringAttr("mode", "DCR");
  const Ints s = c.shape(c.input(0));
  if (s.size() != 4 || b < 1 || b > (1 << 16) || s[1] % (b * b) != 0)
    return Unsupported(absl::StrCat("blocks of ", b, " in ", ToText(c.type(c.input(0)))));
  if (mode != "DCR" && mode != "CRD") return Unsupported(absl::StrCat("mode \"", mode, "\""));
  const int64_t depth = s[1] / (b * b);
  HONE_ASSIGN_OR_RETURN(int y, c.Reshape(c.input(0), mode == "DCR" ? Ints{s[0], b, b, depth, s[2], s[3]}
                                                                   : Ints{s[0], depth, b, b, s[2], s[3]}));
  HONE_ASSIGN_OR_RETURN(y, c.Transpose(y, mode == "DCR" ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3}));
  HONE_ASSIGN_OR_RETURN(y, c.Reshape(y, {s[0], depth, s[2] * b, s[3] * b}));
  return std::vector<int>{y};
}

Outputs SpaceToDepth(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const int64_t b = c.IntAttr("blocksize", 0);
  const Ints s = c.shape(c.input(0));
  if (s.size() != 4 || b < 1 || b > (1 << 16) || s[2] % b != 0 || s[3] % b != 0)
    return Unsupported(absl::StrCat("blocks of ", b, " in ", ToText(c.type(c.input(0)))));
  const std::string mode = c.StringAttr("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return Unsupported(absl::StrCat("mode \"", mode, "\""));
  HONE_ASSIGN_OR_RETURN(int y, c.Reshape(c.input(0), {s[0], s[1], s[2] / b, b, s[3] / b, b}));
  HONE_ASSIGN_OR_RETURN(y, c.Transpose(y, mode == "DCR" ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4}));
  HONE_ASSIGN_OR_RETURN(y, c.Reshape(y, {s[0], b * b * s[1], s[2] / b, s[3] / b}));
  return std::vector<int>{y};
}

constexpr OnnxOperator kOperators[] = {
    {"AveragePool", 1, [](NodeContext& c) { return Pool(c, "avg_pool"); }, "", true},
    {"Conv", 1, Conv, "", true},
    {"ConvTranspose", 1, ConvTranspose, "", true},
    {"DepthToSpace", 1, DepthToSpace},
    {"GlobalAveragePool", 1, [](NodeContext& c) { return GlobalPool(c, "reduce_mean"); }, "", true},
    {"GlobalMaxPool", 1, [](NodeContext& c) { return GlobalPool(c, "reduce_max"); }, "", true},
    {"LRN", 1, Lrn, "", true},
    {"Resize", 10, Upsample, "", true},
    {"SpaceToDepth", 1, SpaceToDepth},
    {"Upsample", 7, Upsample},
};

}  // namespace

Outputs MaxPoolImage(NodeContext& c) { return Pool(c, "max_pool"); }

Outputs ResizeImage(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 4));
  const Ints shape = c.shape(c.input(0));
  Ints all(shape.size());
  std::iota(all.begin(), all.end(), 0);
  HONE_ASSIGN_OR_RETURN(const Ints axes, c.Axes(c.IntsAttr("axes", all), c.rank(c.input(0))));
  std::vector<double> scales(shape.size(), 1.0);
  Ints sizes;
  if (c.HasInput(3)) {
    HONE_ASSIGN_OR_RETURN(const Ints given, c.Ints(3, "sizes"));
    if (given.size() != axes.size())
      return Unsupported(absl::StrCat(given.size(), " sizes for ", axes.size(), " axes"));
    sizes = shape;
    for (size_t i = 0; i < axes.size(); ++i) sizes[axes[i]] = given[i];
  } else {
    HONE_ASSIGN_OR_RETURN(const std::vector<double> given, Scales(c, 2));
    if (given.size() != axes.size())
      return Unsupported(absl::StrCat(given.size(), " scales for ", axes.size(), " axes"));
    for (size_t i = 0; i < axes.size(); ++i) scales[axes[i]] = given[i];
  }
  HONE_ASSIGN_OR_RETURN(const ResizePlan plan, PlanResize(shape, scales, sizes));
  return EmitResize(c, plan, c.StringAttr("mode", "nearest"),
                    c.StringAttr("coordinate_transformation_mode", "half_pixel"),
                    c.StringAttr("nearest_mode", "round_prefer_floor"), c.FloatAttr("cubic_coeff_a", -0.75));
}

std::span<const OnnxOperator> ImageOperators() { return kOperators; }

}  // namespace hone
