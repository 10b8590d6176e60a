// Resize of the spatial dimensions of an image to sizes that are known: the operator "resize", whose positions are
// exact. resize.cc does the rest.
#include "compiler/graph/operators/images/image_resize.h"

#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/images/image_layout.h"
#include "compiler/graph/operators/images/image_shapes.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/resize.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

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

}  // namespace

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

HONE_OPERATORS(image_resize) {
  return {{.graph = {ResizeOp()},
           .onnx = {
               {"Resize", 10, Upsample, "", true},
               {"Upsample", 7, Upsample},
           }}};
}

}  // namespace hone
