// Images sampled at places that are data, and the places of an affine map.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

struct How {
  std::string mode, padding;
  bool corners = false;
};

// -1 and 1 are the outer pixels' centres (corners) or their outer edges.
Value Denormalise(const Value& x, double size, bool corners) {
  return corners ? (x + 1) * ((size - 1) / 2) : ((x + 1) * size - 1) / 2;
}

// A place reflected at the image's ends until it lies between them.
Value Reflect(const Value& x, double size, bool corners) {
  const double low = corners ? 0 : -0.5, high = corners ? size - 1 : size - 0.5, range = high - low;
  if (range <= 0) return x * 0;
  const Value from = Abs(x - low), times = Floor(from / range), rest = from - times * range;
  const Value even = times - Floor(times / 2) * 2 == Number(times, 0);
  return Where(even, rest + low, high - rest);
}

// One neighbour of each place: its index along the axis, and whether there is one.
struct Neighbour {
  Value index, inside, weight;
};

std::vector<Neighbour> Neighbours(const Value& place, double size, const How& how) {
  std::vector<Neighbour> result;
  const auto add = [&](Value at, Value weight) {
    if (how.padding == "reflection") at = Reflect(at, size, how.corners);
    Value inside;
    if (how.padding == "zeros") inside = And(at >= Number(at, 0), at <= Number(at, size - 1));
    result.push_back({Cast(Clip(Round(at), 0, size - 1), kInt64), inside, weight});
  };
  if (how.mode == "nearest") {
    add(Round(place), Value());
    return result;
  }
  const Value base = Floor(place), t = place - base;
  if (how.mode == "linear") {
    add(base, 1 - t);
    add(base + 1, t);
    return result;
  }
  constexpr double kA = -0.75;  // Keys' cubic
  const auto near = [&](const Value& x) { return (x * (kA + 2) - (kA + 3)) * x * x + 1; };
  const auto far = [&](const Value& x) { return ((x - 5) * x + 8) * x * kA - 4 * kA; };
  add(base - 1, far(t + 1));
  add(base, near(t));
  add(base + 1, near(1 - t));
  add(base + 2, far(2 - t));
  return result;
}

// x [N, C, D...], grid [N, d..., places]: the last dimension of the grid counts the axes of the image from its end.
Outputs GridSample(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Value x = Input(c, 0), grid = Input(c, 1);
  How how{c.StringAttr("mode", "linear"), c.StringAttr("padding_mode", "zeros"), c.IntAttr("align_corners", 0) != 0};
  if (how.mode == "bilinear") how.mode = "linear";
  if (how.mode == "bicubic") how.mode = "cubic";
  if ((how.mode != "linear" && how.mode != "nearest" && how.mode != "cubic") ||
      (how.padding != "zeros" && how.padding != "border" && how.padding != "reflection"))
    return Unsupported(absl::StrCat("mode \"", how.mode, "\" with padding_mode \"", how.padding, "\""));
  const int axes = x.rank() - 2;
  if (axes < 1 || axes > 3 || grid.rank() != x.rank() || grid.dim(-1) != axes || grid.dim(0) != x.dim(0))
    return Unsupported(absl::StrCat("a grid ", ToText(c.type(grid.id())), " for ", ToText(c.type(x.id()))));
  std::vector<int64_t> places(grid.shape().begin(), grid.shape().end() - 1);
  int64_t count = 1, pixels = 1;
  for (size_t d = 1; d < places.size(); ++d) count *= places[d];
  std::vector<std::vector<Neighbour>> by_axis;
  for (int a = 0; a < axes; ++a) {
    const double size = static_cast<double>(x.dim(2 + a));
    pixels *= x.dim(2 + a);
    Value place = Reshape(Slice(grid, grid.rank() - 1, axes - 1 - a, 1), {x.dim(0), count});
    place = Denormalise(place, size, how.corners);
    if (how.padding == "border") place = how.mode == "cubic" ? place : Clip(place, 0, size - 1);
    if (how.padding == "reflection" && how.mode != "cubic") place = Reflect(place, size, how.corners);
    by_axis.push_back(Neighbours(place, size, how));
  }
  HONE_RETURN_IF_ERROR(c.status());
  // Pixels of all images and channels as rows: [N * pixels, C].
  std::vector<int64_t> last(static_cast<size_t>(x.rank()), 0);
  for (int d = 2; d < x.rank(); ++d) last[static_cast<size_t>(d - 1)] = d;
  last.back() = 1;
  const Value rows = Reshape(Transpose(x, last), {x.dim(0) * pixels, x.dim(1)});
  const Value image = Reshape(Iota(c, kInt64, x.dim(0), 0, static_cast<double>(pixels)), {x.dim(0), 1});
  size_t combinations = 1;
  for (const auto& neighbours : by_axis) combinations *= neighbours.size();
  Value y;
  for (size_t k = 0; k < combinations; ++k) {
    Value index, inside, weight;
    size_t rest = k;
    for (int a = 0; a < axes; ++a) {
      const std::vector<Neighbour>& list = by_axis[static_cast<size_t>(a)];
      const Neighbour& n = list[rest % list.size()];
      rest /= list.size();
      index = index ? index * Number(index, static_cast<double>(x.dim(2 + a))) + n.index : n.index;
      if (n.inside) inside = inside ? And(inside, n.inside) : n.inside;
      if (n.weight) weight = weight ? weight * n.weight : n.weight;
    }
    Value pixel = Gather(rows, index + image, 0);  // [N, places, C]
    const std::vector<int64_t> column{x.dim(0), count, 1};
    if (weight) pixel = pixel * Reshape(Cast(weight, x.dtype()), column);
    if (inside) pixel = Where(Reshape(inside, column), pixel, Number(pixel, 0));
    y = y ? y + pixel : pixel;
    HONE_RETURN_IF_ERROR(c.status());
  }
  places.insert(places.begin() + 1, x.dim(1));
  return Results({Reshape(Transpose(y, {0, 2, 1}), places)});
}

// theta [N, 2, 3] or [N, 3, 4], the size at run time or not: y[n, d..., :] = theta * (places of the pixel, 1).
Outputs AffineGrid(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Value theta = Input(c, 0);
  std::vector<int64_t> size;
  if (c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(size, c.Ints(1, "the size"));
    if (size.size() < 3) return Unsupported("the size is not one of an image");
    size.erase(size.begin(), size.begin() + 2);
  } else {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, c.ShapeInsteadOf(1, "the size"));
    if (shape.size() < 3) return Unsupported("the declared shape is not a grid's");
    size.assign(shape.begin() + 1, shape.end() - 1);
  }
  const int axes = static_cast<int>(size.size());
  if (theta.shape() != std::vector<int64_t>{theta.rank() == 3 ? theta.dim(0) : -1, axes, axes + 1})
    return Unsupported(absl::StrCat("theta is ", ToText(c.type(theta.id())), " for ", axes, " dimensions"));
  const bool corners = c.IntAttr("align_corners", 0) != 0;
  std::vector<Value> coordinates;
  std::vector<int64_t> with_last = size;
  with_last.push_back(1);
  for (int a = axes - 1; a >= 0; --a) {  // x first
    const double n = static_cast<double>(size[static_cast<size_t>(a)]);
    const double step = corners ? n > 1 ? 2 / (n - 1) : 0 : 2 / n, start = corners ? -1 : -1 + 1 / n;
    std::vector<int64_t> along(with_last.size(), 1);
    along[static_cast<size_t>(a)] = size[static_cast<size_t>(a)];
    coordinates.push_back(
        Expand(Reshape(Iota(c, theta.dtype(), size[static_cast<size_t>(a)], start, step), along), with_last));
  }
  coordinates.push_back(Expand(Constant(c, theta.dtype(), 1), with_last));
  int64_t count = 1;
  for (const int64_t n : size) count *= n;
  const Value points = Reshape(Concat(coordinates, axes), {1, count, axes + 1});
  std::vector<int64_t> result = size;
  result.insert(result.begin(), theta.dim(0));
  result.push_back(axes);
  return Results({Reshape(MatMul(points, Transpose(theta, {0, 2, 1})), result)});
}

}  // namespace

HONE_OPERATORS(grid_sample) {
  return {
      {.onnx = {{.name = "GridSample", .since = 16, .import = GridSample, .in_float32 = true}}},
      {.onnx = {{.name = "AffineGrid", .since = 20, .import = AffineGrid, .in_float32 = true}}},
  };
}

}  // namespace hone
