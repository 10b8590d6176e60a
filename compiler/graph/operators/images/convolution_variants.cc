// Convolutions of integers, and of places that are data.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/graph/integer_product.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/images/convolution.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// One for all, or one for each output channel (dimension 0 of the weight).
Value OfChannels(const Value& param, int rank) {
  if (!param || *NumElements(param.shape()) == 1) return param ? Reshape(param, {}) : param;
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[0] = param.dim(0);
  return Reshape(param, shape);
}

// The convolution of bytes x and w less their zero points, as int32.
absl::StatusOr<Value> IntegerConv(NodeContext& c, const Value& x, const Value& w, const Value& x_zero,
                                  const Value& w_zero) {
  const Value of_x = x_zero ? Reshape(x_zero, {}) : x_zero, of_w = OfChannels(w_zero, 1);
  HONE_RETURN_IF_ERROR(c.status());
  const auto id = [](const Value& zero) { return zero ? zero.id() : -1; };
  const auto product = [&](const std::string& op, int image, int weight, Attrs attrs) {
    return AddIntegerProduct(c.graph(), op, c.name(), {image, id(of_x)}, {weight, id(of_w)}, std::move(attrs));
  };
  HONE_ASSIGN_OR_RETURN(const int y, EmitConvolution(c, x.id(), w.id(), product));
  return Value(c, y);
}

Outputs ConvInteger(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 4));
  HONE_ASSIGN_OR_RETURN(const Value y, IntegerConv(c, Input(c, 0), Input(c, 1), Input(c, 2), Input(c, 3)));
  return Results({y});
}

// x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias (int32 of scale x_scale * w_scale)
Outputs QLinearConv(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(8, 9));
  const Value x_scale = Reshape(Input(c, 1), {}), w_scale = Input(c, 4);
  HONE_ASSIGN_OR_RETURN(Value sum, IntegerConv(c, Input(c, 0), Input(c, 3), Input(c, 2), Input(c, 5)));
  const int rank = sum.rank() - 1;  // per channel: aligned with dimension 1 of the result
  if (c.HasInput(8)) sum = sum + OfChannels(Input(c, 8), rank);
  const Value y = Cast(sum, kFloat32) * (x_scale * OfChannels(w_scale, rank));
  const Value zero = Reshape(Input(c, 7), {});
  if (!zero) return c.status();
  const DType to = zero.dtype();
  const double low = to.code == TypeCode::kUInt ? 0 : -128, high = low + 255;
  return Results({Cast(Clip(Round(y / Reshape(Input(c, 6), {})) + Cast(zero, kFloat32), low, high), to)});
}

// Pixels of an image [N, C, H, W] read between them, 0 outside.
class Sampler {
 public:
  // Read at [oh, ow] places at a time.
  Sampler(NodeContext& c, const Value& image, int64_t oh, int64_t ow)
      : c_(c),
        height_(image.dim(2)),
        width_(image.dim(3)),
        counted_({image.dim(0), oh, ow, 1}),
        rows_(Reshape(Transpose(image, {0, 2, 3, 1}), {image.dim(0) * height_ * width_, image.dim(1)})),
        first_(Reshape(Iota(c, kInt64, image.dim(0), 0, static_cast<double>(height_ * width_)), {image.dim(0), 1, 1})) {
  }

  // At rows y and columns z, each [N, OH, OW]: [N, OH, OW, C], the four pixels around weighted by how near they are.
  Value At(const Value& y, const Value& z) const {
    const Value y0 = Floor(y), z0 = Floor(z);
    Value sum;
    for (int corner = 0; corner < 4; ++corner) {
      const double down = corner / 2, right = corner % 2;
      const Value a = y0 + down, b = z0 + right;
      const Value weight = (1 - Abs(y - a)) * (1 - Abs(z - b));
      const Value inside = And(And(a >= Number(a, 0), a <= Number(a, static_cast<double>(height_ - 1))),
                               And(b >= Number(b, 0), b <= Number(b, static_cast<double>(width_ - 1))));
      const Value index = Cast(Clip(a, 0, static_cast<double>(height_ - 1)), kInt64) *
                              Constant(c_, kInt64, static_cast<double>(width_)) +
                          Cast(Clip(b, 0, static_cast<double>(width_ - 1)), kInt64) + first_;
      const Value counted = Reshape(Where(inside, weight, Number(weight, 0)), counted_);
      const Value term = Gather(rows_, index, 0) * counted;
      sum = sum ? sum + term : term;
    }
    return sum;
  }

 private:
  NodeContext& c_;
  const int64_t height_, width_;
  const std::vector<int64_t> counted_;  // [N, oh, ow, 1]
  const Value rows_;                    // a pixel each
  const Value first_;                   // the row of each image's first pixel
};

// x [N, C, H, W], w [O, C / groups, KH, KW], offset [N, sets * KH * KW * 2, OH, OW] (down, right), bias, mask [N, sets
// * KH * KW, OH, OW]: each element of a window is read at its place plus an offset, between pixels, 0 outside.
Outputs DeformConv(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 5));
  const Value x = Input(c, 0), w = Input(c, 1), offset = Input(c, 2), mask = Input(c, 4);
  if (x.rank() != 4 || w.rank() != 4 || offset.rank() != 4)
    return Unsupported("only images of two dimensions are supported");
  const std::vector<int64_t> strides = c.IntsAttr("strides", {1, 1}), dilations = c.IntsAttr("dilations", {1, 1}),
                             pads = c.IntsAttr("pads", {0, 0, 0, 0});
  const std::vector<int64_t> named = c.IntsAttr("kernel_shape", {w.dim(2), w.dim(3)});
  const int64_t groups = c.IntAttr("group", 1), sets = c.IntAttr("offset_group", 1);
  const int64_t batch = x.dim(0), channels = x.dim(1), kh = w.dim(2), kw = w.dim(3), taps = kh * kw;
  const int64_t oh = offset.dim(2), ow = offset.dim(3);
  constexpr int64_t kMostTaps = 64;
  if (strides.size() != 2 || dilations.size() != 2 || pads.size() != 4 || named != std::vector<int64_t>{kh, kw} ||
      groups < 1 || sets < 1 || channels % groups != 0 || channels % sets != 0 || w.dim(0) % groups != 0 ||
      w.dim(1) * groups != channels || offset.dim(0) != batch || offset.dim(1) != sets * taps * 2 ||
      taps * sets > kMostTaps)
    return Unsupported(absl::StrCat("a weight ", ToText(c.type(w.id())), " and offsets ", ToText(c.type(offset.id())),
                                    " for ", ToText(c.type(x.id()))));
  const Value row =
      Reshape(Iota(c, x.dtype(), oh, static_cast<double>(-pads[0]), static_cast<double>(strides[0])), {1, oh, 1});
  const Value column =
      Reshape(Iota(c, x.dtype(), ow, static_cast<double>(-pads[1]), static_cast<double>(strides[1])), {1, 1, ow});
  const int64_t per_set = channels / sets;
  std::vector<Value> of_sets;
  for (int64_t s = 0; s < sets; ++s) {
    const Sampler pixels(c, Slice(x, 1, s * per_set, per_set), oh, ow);
    std::vector<Value> columns;  // each [N, per_set, 1, OH * OW], by tap
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t at = (s * taps + t) * 2;
      const auto shift = [&](int64_t k) { return Reshape(Slice(offset, 1, at + k, 1), {batch, oh, ow}); };
      Value tap = pixels.At(row + static_cast<double>(t / kw * dilations[0]) + shift(0),
                            column + static_cast<double>(t % kw * dilations[1]) + shift(1));
      if (mask) tap = tap * Reshape(Slice(mask, 1, s * taps + t, 1), {batch, oh, ow, 1});
      HONE_RETURN_IF_ERROR(c.status());
      columns.push_back(Reshape(Transpose(tap, {0, 3, 1, 2}), {batch, per_set, 1, oh * ow}));
    }
    of_sets.push_back(Concat(columns, 2));
  }
  const Value all = Reshape(Concat(of_sets, 1), {batch, groups, channels / groups * taps, oh * ow});
  Value y = MatMul(Reshape(w, {1, groups, w.dim(0) / groups, channels / groups * taps}), all);
  y = Reshape(y, {batch, w.dim(0), oh, ow});
  if (c.HasInput(3)) y = y + Reshape(Input(c, 3), {w.dim(0), 1, 1});
  return Results({y});
}

// The middle of each axis: cut, or with zeros around it.
Outputs CenterCropPad(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  Value x = Input(c, 0);
  std::vector<int64_t> wanted = x.shape();
  std::vector<int64_t> all(wanted.size());
  for (size_t d = 0; d < all.size(); ++d) all[d] = static_cast<int64_t>(d);
  HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, c.Axes(c.IntsAttr("axes", all), x.rank()));
  if (c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, c.Ints(1, "the shape"));
    if (sizes.size() != axes.size()) return Unsupported("the shape does not fit the axes");
    for (size_t i = 0; i < axes.size(); ++i) wanted[static_cast<size_t>(axes[i])] = sizes[i];
  } else {
    HONE_ASSIGN_OR_RETURN(wanted, c.ShapeInsteadOf(1, "the shape"));
    if (wanted.size() != all.size()) return Unsupported("the declared shape has another rank");
  }
  std::vector<int64_t> before(wanted.size(), 0), after = before;
  for (size_t d = 0; d < wanted.size(); ++d) {
    const int64_t n = x.dim(static_cast<int>(d)), more = wanted[d] - n;
    before[d] = more >= 0 ? more / 2 : -(-more / 2);
    after[d] = more - before[d];
  }
  return Results(
      {Apply("pad", {x}, {{"before", before}, {"after", after}, {"mode", std::string("constant")}, {"value", 0.0}})});
}

}  // namespace

HONE_OPERATORS(convolution_variants) {
  return {{.onnx = {
               {"ConvInteger", 10, ConvInteger},
               {"QLinearConv", 10, QLinearConv},
               {"DeformConv", 19, DeformConv, "", true},
               {"CenterCropPad", 18, CenterCropPad},
           }}};
}

}  // namespace hone
