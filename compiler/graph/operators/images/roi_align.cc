// Regions of an image, each averaged (or its greatest taken) over a grid of places between pixels.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Samples along one axis of every region: the pixels on both sides, their weights; both weights are 0 outside.
struct Samples {
  Value low, high, low_weight, high_weight;  // [regions, samples]
};

Samples Sample(const Value& place, int64_t extent) {
  const double last = static_cast<double>(extent - 1);
  const Value inside = And(place >= Number(place, -1), place <= Number(place, static_cast<double>(extent)));
  const Value at = Clip(place, 0, last), low = Floor(at), rest = at - low, zero = Number(place, 0);
  return {Cast(low, kInt64), Cast(Clip(low + 1, 0, last), kInt64), Where(inside, 1 - rest, zero),
          Where(inside, rest, zero)};
}

// x [N, C, H, W], rois [R, 4] (left, top, right, bottom), batch_indices [R] -> [R, C, output_height, output_width]
Outputs RoiAlign(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  const Value x = Input(c, 0), rois = Input(c, 1);
  const int64_t height = c.IntAttr("output_height", 1), width = c.IntAttr("output_width", 1),
                grid = c.IntAttr("sampling_ratio", 0);
  const std::string mode = c.StringAttr("mode", "avg");
  const std::string usual = c.opset() >= 16 ? "half_pixel" : "output_half_pixel";
  const std::string coordinates = c.StringAttr("coordinate_transformation_mode", usual);
  const bool half = coordinates == "half_pixel";
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 4)
    return Unsupported(absl::StrCat("regions ", ToText(c.type(rois.id())), " of ", ToText(c.type(x.id()))));
  if (grid < 1) return Unsupported("sampling_ratio 0: the number of samples would depend on the regions");
  if ((mode != "avg" && mode != "max") || (!half && coordinates != "output_half_pixel"))
    return Unsupported(absl::StrCat("mode \"", mode, "\" with \"", coordinates, "\""));
  const double scale = c.FloatAttr("spatial_scale", 1);
  const int64_t regions = rois.dim(0), channels = x.dim(1);
  const auto edge = [&](int64_t k) { return Slice(rois, 1, k, 1) * scale - (half ? 0.5 : 0); };  // [R, 1]
  const auto samples = [&](int64_t begin, int64_t count, int64_t extent) {
    const Value start = edge(begin);
    Value size = edge(begin + 2) - start;
    if (!half) size = Max(size, Number(size, 1));
    const Value step = size / static_cast<double>(count * grid);
    return Sample(start + Iota(c, x.dtype(), count * grid, 0.5) * step, extent);
  };
  const Samples across = samples(0, width, x.dim(3)), down = samples(1, height, x.dim(2));
  HONE_RETURN_IF_ERROR(c.status());
  const int64_t rows = height * grid, columns = width * grid;
  const Value pixels = Reshape(Transpose(x, {0, 2, 3, 1}), {x.dim(0) * x.dim(2) * x.dim(3), channels});
  const Value image = Reshape(Cast(Input(c, 2), kInt64), {regions, 1, 1}) *
                      Constant(c, kInt64, static_cast<double>(x.dim(2) * x.dim(3)));
  const Value row_length = Constant(c, kInt64, static_cast<double>(x.dim(3)));
  Value sample;
  for (int corner = 0; corner < 4; ++corner) {
    const Value y = Reshape(corner < 2 ? down.low : down.high, {regions, rows, 1}),
                z = Reshape(corner % 2 == 0 ? across.low : across.high, {regions, 1, columns});
    const Value weight = Reshape(corner < 2 ? down.low_weight : down.high_weight, {regions, rows, 1}) *
                         Reshape(corner % 2 == 0 ? across.low_weight : across.high_weight, {regions, 1, columns});
    const Value part = Gather(pixels, image + y * row_length + z, 0) * Reshape(weight, {regions, rows, columns, 1});
    sample = !sample         ? part
             : mode == "avg" ? sample + part
                             : Max(sample, part);  // the standard takes the greatest of the parts
    HONE_RETURN_IF_ERROR(c.status());
  }
  const Value cells = Reshape(sample, {regions, height, grid, width, grid, channels});
  return Results({Transpose(Reduce(mode == "avg" ? "reduce_mean" : "reduce_max", cells, {2, 4}, false), {0, 3, 1, 2})});
}

}  // namespace

HONE_OPERATORS(roi_align) {
  return {{.onnx = {{.name = "RoiAlign", .since = 10, .import = RoiAlign, .in_float32 = true}}}};
}

}  // namespace hone
