// Resize in all its modes. What an image network needs (spatial dimensions, known sizes) is the operator "resize",
// whose positions are exact (image_resize.cc). Everything else is done here axis by axis: an element is a sum of its
// neighbours' values times weights, both from its place in the input, which is computed in float64. So scales may come
// at run time.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/images/image_resize.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr DType kWide = DType::Float(64);

struct How {
  std::string mode, coordinates, rounding;
  double cubic = -0.75, outside = 0;
  bool antialias = false, exclude_outside = false;
};

absl::StatusOr<How> ReadHow(NodeContext& c) {
  How how;
  how.mode = c.StringAttr("mode", "nearest");
  how.coordinates = c.StringAttr("coordinate_transformation_mode", "half_pixel");
  how.rounding = c.StringAttr("nearest_mode", "round_prefer_floor");
  how.cubic = c.FloatAttr("cubic_coeff_a", -0.75);
  how.outside = c.FloatAttr("extrapolation_value", 0);
  how.antialias = c.IntAttr("antialias", 0) != 0;
  how.exclude_outside = c.IntAttr("exclude_outside", 0) != 0;
  if (how.mode != "nearest" && how.mode != "linear" && how.mode != "cubic")
    return Unsupported(absl::StrCat("mode \"", how.mode, "\""));
  return how;
}

// Along one axis: sizes, the scale, and the region of interest as fractions where there is one.
struct Axis {
  int64_t at, in, out;
  Value scale, roi_begin, roi_end;  // float64 scalars
};

// Where the elements of the output lie in the input.
absl::StatusOr<Value> Places(NodeContext& c, const Axis& axis, const std::string& mode) {
  const Value i = Iota(c, kWide, axis.out), length = axis.scale * static_cast<double>(axis.in);
  const double last = static_cast<double>(axis.in - 1);
  const Value one = length == Number(length, 1);
  if (mode == "align_corners") return Where(one, Number(i, 0), i * last / (length - 1));
  if (mode == "asymmetric") return i / axis.scale;
  const Value half = (i + 0.5) / axis.scale - 0.5;
  if (mode == "half_pixel") return half;
  if (mode == "pytorch_half_pixel") return axis.out == 1 ? Expand(Constant(c, kWide, -0.5), {1}) : half;
  if (mode == "half_pixel_symmetric") {
    const Value adjustment = static_cast<double>(axis.out) / length;
    return half + (1 - adjustment) * (static_cast<double>(axis.in) / 2);
  }
  if (mode == "tf_crop_and_resize" && axis.roi_begin) {
    const Value span = axis.roi_end - axis.roi_begin;
    return Where(one, span * (last / 2), i * span * last / (length - 1)) + axis.roi_begin * last;
  }
  return Unsupported(absl::StrCat("coordinate_transformation_mode \"", mode, "\""));
}

// Keys' kernel of four elements (R. Keys, Cubic convolution interpolation, 1981), or a triangle; x is not negative.
Value Kernel(const Value& x, const How& how) {
  if (how.mode == "linear") return Max(1 - x, Number(x, 0));
  const double a = how.cubic;
  const Value near = (x * (a + 2) - (a + 3)) * x * x + 1;
  const Value far = ((x - 5) * x + 8) * x * a - 4 * a;
  return Where(x <= Number(x, 1), near, Where(x < Number(x, 2), far, Number(x, 0)));
}

Value Nearest(const Value& place, const std::string& rounding) {
  if (rounding == "floor") return Floor(place);
  if (rounding == "ceil") return Apply("ceil", {place});
  if (rounding == "round_prefer_ceil") return Floor(place + 0.5);
  return Apply("ceil", {place - 0.5});
}

absl::StatusOr<Value> ResizeAxis(const Value& x, const Axis& axis, const How& how) {
  NodeContext& c = x.context();
  HONE_ASSIGN_OR_RETURN(const Value place, Places(c, axis, how.coordinates));
  const double last = static_cast<double>(axis.in - 1);
  std::vector<int64_t> along(x.shape().size(), 1);
  along[static_cast<size_t>(axis.at)] = axis.out;
  Value y;
  if (how.mode == "nearest") {
    y = Gather(x, Cast(Clip(Nearest(place, how.rounding), 0, last), kInt64), axis.at);
  } else {
    const double support = how.mode == "linear" ? 1 : 2;
    // With antialiasing the kernel is as wide as the output's elements lie apart. The scale is at least out / in.
    const Value shrink = how.antialias ? Min(axis.scale, Number(axis.scale, 1)) : Number(axis.scale, 1);
    const double least =
        how.antialias ? std::min(1.0, static_cast<double>(axis.out) / static_cast<double>(axis.in)) : 1;
    const int reach = static_cast<int>(std::ceil(support / least));
    constexpr int kMostTaps = 256;
    if (2 * reach > kMostTaps) return Unsupported(absl::StrCat("antialiasing over ", 2 * reach, " elements"));
    std::vector<Value> weights, indices;
    Value sum;
    for (int tap = 1 - reach; tap <= reach; ++tap) {
      const Value index = Floor(place) + tap;
      Value weight = Kernel(Abs(index - place) * shrink, how);
      if (how.exclude_outside)
        weight = Where(And(index >= Number(index, 0), index <= Number(index, last)), weight, Number(weight, 0));
      sum = sum ? sum + weight : weight;
      weights.push_back(weight);
      indices.push_back(Cast(Clip(index, 0, last), kInt64));
    }
    for (size_t t = 0; t < weights.size(); ++t) {
      const Value weight = how.antialias || how.exclude_outside ? weights[t] / sum : weights[t];
      const Value term = Gather(x, indices[t], axis.at) * Reshape(Cast(weight, x.dtype()), along);
      y = y ? y + term : term;
    }
  }
  if (how.coordinates == "tf_crop_and_resize") {
    const Value inside = And(place >= Number(place, 0), place <= Number(place, last));
    y = Where(Reshape(inside, along), y, Number(x, how.outside));
  }
  if (!y) return c.status();
  return y;
}

// Whether the operator "resize" may do: everything known, nothing unusual.
bool IsUsual(NodeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    if (c.HasInput(i) && !c.IsConstant(i)) return false;
  }
  const std::string coordinates = c.StringAttr("coordinate_transformation_mode", "half_pixel");
  return c.rank(c.input(0)) >= 3 && c.type(c.input(0)).dtype == kFloat32 && c.IntAttr("antialias", 0) == 0 &&
         c.IntAttr("exclude_outside", 0) == 0 && c.StringAttr("keep_aspect_ratio_policy", "stretch") == "stretch" &&
         coordinates != "tf_crop_and_resize" && coordinates != "half_pixel_symmetric";
}

absl::StatusOr<std::vector<Axis>> ReadAxes(NodeContext& c, const How& how) {
  const Value x = Input(c, 0);
  std::vector<int64_t> all(x.shape().size());
  std::iota(all.begin(), all.end(), 0);
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> named, c.Axes(c.IntsAttr("axes", all), x.rank()));
  const bool sized = c.HasInput(3);
  if (!sized && !c.HasInput(2)) return Unsupported("neither scales nor sizes are given");
  const Value list = Cast(Input(c, sized ? 3 : 2), kWide);
  const std::string policy = c.StringAttr("keep_aspect_ratio_policy", "stretch");
  if (!list || list.rank() != 1 || list.dim(0) != static_cast<int64_t>(named.size()))
    return Unsupported(absl::StrCat("sizes or scales for other than ", named.size(), " axes"));
  Value kept;  // the scale of all axes that keeps their ratio
  std::vector<Axis> axes;
  for (size_t a = 0; a < named.size(); ++a) {
    Axis axis{named[a], x.dim(static_cast<int>(named[a])), 0, {}, {}, {}};
    const Value entry = Reshape(Slice(list, 0, static_cast<int64_t>(a), 1), {});
    axis.scale = sized ? entry / static_cast<double>(axis.in) : entry;
    if (sized && policy != "stretch")
      kept = !kept ? axis.scale : policy == "not_larger" ? Min(kept, axis.scale) : Max(kept, axis.scale);
    if (how.coordinates == "tf_crop_and_resize" && c.HasInput(1)) {
      const Value roi = Cast(Input(c, 1), kWide);
      const int64_t n = static_cast<int64_t>(named.size());
      if (!roi || roi.shape() != std::vector<int64_t>{2 * n})
        return Unsupported("the region of interest does not fit the axes");
      axis.roi_begin = Reshape(Slice(roi, 0, static_cast<int64_t>(a), 1), {});
      axis.roi_end = Reshape(Slice(roi, 0, n + static_cast<int64_t>(a), 1), {});
    }
    axes.push_back(axis);
  }
  HONE_RETURN_IF_ERROR(c.status());
  for (Axis& axis : axes) {
    if (kept) axis.scale = kept;
    if (c.IsConstant(sized ? 3 : 2)) {
      const double scale = c.graph().values[static_cast<size_t>(axis.scale.id())].data->Get(0);
      const double exact = static_cast<double>(axis.in) * scale;
      axis.out = static_cast<int64_t>(sized ? std::floor(exact + 0.5)
                                            : std::floor(static_cast<float>(axis.in) * static_cast<float>(scale)));
    } else {
      HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                            c.ShapeInsteadOf(sized ? 3 : 2, sized ? "sizes" : "scales"));
      if (static_cast<int>(shape.size()) != x.rank()) return Unsupported("the declared shape has another rank");
      axis.out = shape[static_cast<size_t>(axis.at)];
      if (sized && !kept) axis.scale = Constant(c, kWide, static_cast<double>(axis.out) / static_cast<double>(axis.in));
    }
    if (axis.out < 1) return Unsupported(absl::StrCat("a resize to ", axis.out, " elements"));
  }
  return axes;
}

Outputs Resize(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 4));
  c.HasAttr("extrapolation_value");  // of tf_crop_and_resize alone
  if (IsUsual(c)) {
    Outputs image = ResizeImage(c);
    if (image.ok()) return image;
  }
  HONE_ASSIGN_OR_RETURN(const How how, ReadHow(c));
  HONE_ASSIGN_OR_RETURN(const std::vector<Axis> axes, ReadAxes(c, how));
  Value x = Input(c, 0);
  const DType dtype = x.dtype();
  if (how.mode != "nearest" && !dtype.is_float()) return Unsupported(absl::StrCat("interpolation of ", ToText(dtype)));
  for (const Axis& axis : axes) {
    const bool same = axis.in == axis.out && axis.scale.is_constant() && how.coordinates != "tf_crop_and_resize" &&
                      c.graph().values[static_cast<size_t>(axis.scale.id())].data->Get(0) == 1;
    if (same) continue;
    HONE_ASSIGN_OR_RETURN(x, ResizeAxis(x, axis, how));
    HONE_RETURN_IF_ERROR(c.status());
  }
  return Results({x});
}

}  // namespace

HONE_OPERATORS(resize) { return {{.onnx = {{.name = "Resize", .since = 11, .import = Resize, .in_float32 = true}}}}; }

}  // namespace hone
