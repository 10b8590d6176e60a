// Pools that are more than the operators "max_pool" and "avg_pool" (pool.cc), their inverses, and images put together
// from columns: a window's elements are strided slices, one for each offset inside it.
#include "compiler/graph/operators/images/pool_variants.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/images/image_layout.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kMostOffsets = 1024;

struct Windows {
  WindowAttrs w;
  Ints in, out;               // spatial sizes
  std::vector<Ints> offsets;  // in elements of the padded image
};

absl::StatusOr<Windows> ReadWindows(NodeContext& c, const Ints& image, bool ceil_mode) {
  if (image.size() < 3) return Unsupported("an image without spatial dimensions");
  Windows windows;
  windows.in.assign(image.begin() + 2, image.end());
  HONE_ASSIGN_OR_RETURN(windows.w, ReadWindow(c, windows.in, {}));
  const size_t n = windows.in.size();
  int64_t count = 1;
  for (size_t d = 0; d < n; ++d) {
    const WindowAttrs& w = windows.w;
    const int64_t reach = (w.kernel[d] - 1) * w.dilations[d] + 1,
                  room = windows.in[d] + w.pads[d] + w.pads[n + d] - reach;
    if (room < 0) return Unsupported("the window is larger than the padded image");
    int64_t size = (ceil_mode ? room + w.strides[d] - 1 : room) / w.strides[d] + 1;
    if (ceil_mode && (size - 1) * w.strides[d] >= windows.in[d] + w.pads[d])
      --size;  // none that starts in the padding behind
    windows.out.push_back(size);
    count *= w.kernel[d];
    if (count > kMostOffsets) return Unsupported("a window of more than 1024 elements");
  }
  for (int64_t k = 0; k < count; ++k) {
    Ints offset(n);
    int64_t rest = k;
    for (size_t d = n; d-- > 0; rest /= windows.w.kernel[d])
      offset[d] = rest % windows.w.kernel[d] * windows.w.dilations[d];
    windows.offsets.push_back(offset);
  }
  return windows;
}

// x with `value` around it, so that every window's elements are there.
Value Padded(const Value& x, const Windows& windows, double value) {
  Ints before(x.shape().size(), 0), after = before;
  for (size_t d = 0; d < windows.in.size(); ++d) {
    const WindowAttrs& w = windows.w;
    before[d + 2] = w.pads[d];
    const int64_t needed = (windows.out[d] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
    after[d + 2] = std::max<int64_t>(w.pads[windows.in.size() + d], needed - windows.in[d] - w.pads[d]);
  }
  return Apply("pad", {x}, {{"before", before}, {"after", after}, {"mode", std::string("constant")}, {"value", value}});
}

Value At(const Value& padded, const Windows& windows, const Ints& offset) {
  if (!padded) return {};
  Ints starts{0, 0}, sizes{padded.dim(0), padded.dim(1)}, steps{1, 1};
  for (size_t d = 0; d < offset.size(); ++d) {
    starts.push_back(offset[d]);
    sizes.push_back(windows.out[d]);
    steps.push_back(windows.w.strides[d]);
  }
  return Apply("slice", {padded}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}

Outputs LpPool(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Value x = Input(c, 0);
  const double p = static_cast<double>(c.IntAttr("p", 2));
  HONE_ASSIGN_OR_RETURN(const Windows windows, ReadWindows(c, x.shape(), c.IntAttr("ceil_mode", 0) != 0));
  const auto power = [](const Value& v, double exponent) { return Apply("pow_scalar", {v}, {{"exponent", exponent}}); };
  const Value padded = Padded(power(Abs(x), p), windows, 0);
  Value sum;
  for (const Ints& offset : windows.offsets) {
    const Value element = At(padded, windows, offset);
    sum = sum ? sum + element : element;
  }
  return Results({power(sum, 1 / p)});
}

double LeastOf(DType type) {
  if (type.is_float()) return -std::numeric_limits<double>::infinity();
  return type.code == TypeCode::kUInt ? 0 : -static_cast<double>(int64_t{1} << (std::min<int>(type.bits, 53) - 1));
}

// Puts each element in its place, zeros elsewhere.
Outputs MaxUnpool(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 3));
  const Value x = Input(c, 0);
  if (x.rank() < 3 || Input(c, 1).shape() != x.shape()) return Unsupported("places and values have different shapes");
  const size_t n = x.shape().size() - 2;
  Ints shape = x.shape();
  const Ints kernel = c.IntsAttr("kernel_shape"), strides = c.IntsAttr("strides", Ints(n, 1)),
             pads = c.IntsAttr("pads", Ints(2 * n, 0));
  if (kernel.size() != n || strides.size() != n || pads.size() != 2 * n)
    return Unsupported("kernel_shape, strides or pads do not fit the image");
  Ints dense = shape;  // the shape the places are counted in
  for (size_t d = 0; d < n; ++d) dense[d + 2] = (shape[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[n + d];
  Ints result = dense;
  if (c.HasInput(2)) { HONE_ASSIGN_OR_RETURN(result, c.ShapeFrom(2, "the shape")); }
  const int64_t count = NumElements(x.shape()).value_or(0), places = NumElements(dense).value_or(0);
  if (result.size() != shape.size() || places < count) return Unsupported("the shape does not hold the elements");
  const Value zeros = Expand(Constant(c, x.dtype(), 0), {places});
  const Value indices = Reshape(Cast(Input(c, 1), kInt64), {count});
  const Value put = Apply("scatter_elements", {zeros, indices, Reshape(x, {count})},
                          {{"axis", int64_t{0}}, {"reduction", std::string("none")}});
  Ints before(shape.size(), 0), after = before;  // to the shape that is asked for
  for (size_t d = 0; d < shape.size(); ++d) after[d] = result[d] - dense[d];
  return Results({Apply("pad", {Reshape(put, dense)},
                        {{"before", before}, {"after", after}, {"mode", std::string("constant")}, {"value", 0.0}})});
}

// Columns [N, C * block, places] added up where they lie in the image.
Outputs Col2Im(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  const Value x = Input(c, 0);
  Ints image, block;
  if (c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(image, c.Ints(1, "the image's shape"));
  } else {
    HONE_ASSIGN_OR_RETURN(const Ints shape, c.ShapeInsteadOf(1, "the image's shape"));
    if (shape.size() < 3) return Unsupported("the declared shape is not an image's");
    image.assign(shape.begin() + 2, shape.end());
  }
  const size_t n = image.size();
  Ints strides = c.IntsAttr("strides", Ints(n, 1)), dilations = c.IntsAttr("dilations", Ints(n, 1)),
       pads = c.IntsAttr("pads", Ints(2 * n, 0));
  if (x.rank() != 3 || strides.size() != n || dilations.size() != n || pads.size() != 2 * n)
    return Unsupported("strides, dilations or pads do not fit the image");
  if (!c.IsConstant(2)) return Unsupported("the block's shape is computed at run time");
  HONE_ASSIGN_OR_RETURN(block, c.Ints(2, "the block's shape"));
  if (block.size() != n) return Unsupported("the block does not fit the image");
  int64_t offsets = 1, places = 1;
  Ints counts, padded;
  for (size_t d = 0; d < n; ++d) {
    const int64_t whole = image[d] + pads[d] + pads[n + d];
    counts.push_back((whole - (block[d] - 1) * dilations[d] - 1) / strides[d] + 1);
    padded.push_back(whole);
    offsets *= block[d];
    places *= counts[d];
  }
  if (offsets < 1 || offsets > kMostOffsets || x.dim(1) % offsets != 0 || x.dim(2) != places)
    return Unsupported(absl::StrCat("columns ", ToText(c.type(x.id())), " for ", offsets, " elements a block and ",
                                    places, " places"));
  const int64_t channels = x.dim(1) / offsets;
  // Each column's element k goes to the places of offset k: as positions in the padded image, added up by scattering.
  std::vector<int64_t> at;
  for (int64_t k = 0; k < offsets; ++k) {
    for (int64_t p = 0; p < places; ++p) {
      int64_t rest_k = k, rest_p = p, place = 0, stride = 1;
      for (size_t d = n; d-- > 0;) {
        place += (rest_p % counts[d] * strides[d] + rest_k % block[d] * dilations[d]) * stride;
        rest_p /= counts[d];
        rest_k /= block[d];
        stride *= padded[d];
      }
      at.push_back(place);
    }
  }
  int64_t pixels = 1;
  for (const int64_t size : padded) pixels *= size;
  const int64_t rows = x.dim(0) * channels, columns = offsets * places;
  const Value indices =
      Expand(Reshape(Constant(c, NdArray::Of<int64_t>(kInt64, {columns}, at)), {1, columns}), {rows, columns});
  const Value zeros = Expand(Constant(c, x.dtype(), 0), {rows, pixels});
  Value y = Apply("scatter_elements", {zeros, indices, Reshape(x, {rows, columns})},
                  {{"axis", int64_t{1}}, {"reduction", std::string("add")}});
  Ints shape{x.dim(0), channels};
  shape.insert(shape.end(), padded.begin(), padded.end());
  y = Reshape(y, shape);
  for (size_t d = 0; d < n; ++d) y = Slice(y, static_cast<int64_t>(d) + 2, pads[d], image[d]);
  return Results({y});
}

}  // namespace

// With the places of the greatest elements in the flattened tensor, rows or (storage_order 1) columns first.
Outputs MaxPoolWithPlaces(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const bool columns_first = c.IntAttr("storage_order", 0) != 0;
  const Value x = Input(c, 0);
  HONE_ASSIGN_OR_RETURN(const Windows windows, ReadWindows(c, x.shape(), c.IntAttr("ceil_mode", 0) != 0));
  const Value padded = Padded(x, windows, LeastOf(x.dtype()));
  // The place of each element, as a tensor beside x.
  const size_t n = windows.in.size();
  int64_t pixels = 1;
  for (const int64_t size : windows.in) pixels *= size;
  Value place = Reshape(Iota(c, kInt64, x.dim(0) * x.dim(1), 0, static_cast<double>(pixels)), {x.dim(0), x.dim(1)});
  Ints all(n + 2, 1);
  all[0] = x.dim(0);
  all[1] = x.dim(1);
  place = Reshape(place, all);
  int64_t stride = 1;
  for (size_t i = 0; i < n; ++i) {
    const size_t d = columns_first ? i : n - 1 - i;
    Ints along(n + 2, 1);
    along[d + 2] = windows.in[d];
    place = place + Reshape(Iota(c, kInt64, windows.in[d], 0, static_cast<double>(stride)), along);
    stride *= windows.in[d];
  }
  const Value places = Padded(place, windows, 0);
  // Elements of the windows side by side: [offsets, results].
  Ints shape{x.dim(0), x.dim(1)};
  shape.insert(shape.end(), windows.out.begin(), windows.out.end());
  const int64_t count = NumElements(shape).value_or(0);
  std::vector<Value> elements, at;
  for (const Ints& offset : windows.offsets) {
    elements.push_back(Reshape(At(padded, windows, offset), {1, count}));
    at.push_back(Reshape(At(places, windows, offset), {1, count}));
  }
  HONE_RETURN_IF_ERROR(c.status());
  const Value all_elements = Concat(elements, 0);
  const Value best =
      Apply("argmax", {all_elements}, {{"axis", int64_t{0}}, {"keepdims", int64_t{1}}, {"select_last", int64_t{0}}});
  const auto pick = [&](const Value& v) {
    return Reshape(Apply("gather_elements", {v, best}, {{"axis", int64_t{0}}}), shape);
  };
  return Results({pick(all_elements), c.num_outputs() > 1 ? pick(Concat(at, 0)) : Value()});
}

HONE_OPERATORS(pool_variants) {
  return {{.onnx = {
               {"LpPool", 1, LpPool, "", true},
               {"MaxUnpool", 9, MaxUnpool},
               {"Col2Im", 18, Col2Im},
           }}};
}

}  // namespace hone
