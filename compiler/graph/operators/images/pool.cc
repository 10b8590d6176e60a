// Pools: the greatest element or the mean of each window of an image, or of all of it.
#include "compiler/topi/pool.h"

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/images/image_layout.h"
#include "compiler/graph/operators/images/image_shapes.h"
#include "compiler/graph/operators/images/pool_variants.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// "kernel", "ceil_mode", "count_include_pad" (average), "channels_first".
OpInfo PoolOp(std::string_view name, te::Tensor (*f)(const te::Tensor&, const topi::PoolAttrs&, const std::string&)) {
  OpInfo op{.name = name, .kind = OpKind::kAnchor};
  op.takes_channels_first = true;
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(CheckImages(in, 1));
    const TensorType x = ChannelsLast(in[0], attrs);
    const std::vector<int64_t> kernel = IntsAttr(attrs, "kernel");
    if (static_cast<int>(kernel.size()) != x.rank() - 2) {
      return Refuse("a kernel of ", kernel.size(), " dimensions on an image of ", x.rank() - 2);
    }
    HONE_ASSIGN_OR_RETURN(const ImageWindow window, ReadImageWindow(attrs, kernel));
    for (size_t i = 0; i < kernel.size(); ++i) {
      const int64_t reach = (kernel[i] - 1) * window.dilations[i] + 1;
      if (window.before[i] >= reach || window.after[i] >= reach) {
        return Refuse("a padding of ", window.before[i], " and ", window.after[i],
                      " makes windows that see no element: the window has ", reach);
      }
    }
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                          WindowOutput(x, window, x.shape.back(), IntAttr(attrs, "ceil_mode") != 0));
    return Types{ResultInLayout(x.dtype, std::move(shape), attrs)};
  };
  op.lower = [f, name](TensorSpan in, const Attrs& attrs, TypeSpan) {
    const ImageWindow w = *ReadImageWindow(attrs, IntsAttr(attrs, "kernel"));
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

Outputs Pool(NodeContext& c, std::string_view op) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_RETURN_IF_ERROR(CheckImage(c, c.input(0)));
  if (c.IntAttr("storage_order", 0) != 0) return Unsupported("storage_order is not supported");
  HONE_ASSIGN_OR_RETURN(WindowAttrs w, ReadWindow(c, SpatialSizes(c.shape(c.input(0))), {}));
  HONE_ASSIGN_OR_RETURN(const WithHeight tall, AddHeight(c, c.input(0)));
  if (tall.added) AddHeight(w);
  HONE_ASSIGN_OR_RETURN(const int x, ToChannelsLast(c, tall.value));
  HONE_ASSIGN_OR_RETURN(int y, c.Emit(op, {x},
                                      {{"kernel", w.kernel},
                                       {"strides", w.strides},
                                       {"dilations", w.dilations},
                                       {"pads", w.pads},
                                       {"ceil_mode", c.IntAttr("ceil_mode", 0)},
                                       {"count_include_pad", c.IntAttr("count_include_pad", 0)}}));
  HONE_ASSIGN_OR_RETURN(y, ToChannelsFirst(c, y));
  HONE_ASSIGN_OR_RETURN(y, RemoveHeight(c, y, tall.added));
  return std::vector<int>{y};
}

Outputs MaxPool(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const TensorType& x = c.type(c.input(0));
  const bool is_usual = c.num_outputs() < 2 && x.dtype.is_float() && x.rank() <= 5;
  return is_usual ? Pool(c, "max_pool") : MaxPoolWithPlaces(c);
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

}  // namespace

HONE_OPERATORS(pool) {
  return {{.graph = {PoolOp("max_pool", topi::MaxPool), PoolOp("avg_pool", topi::AveragePool)},
           .onnx = {
               {"MaxPool", 1, MaxPool, "", true},
               {"AveragePool", 1, [](NodeContext& c) { return Pool(c, "avg_pool"); }, "", true},
               {"GlobalAveragePool", 1, [](NodeContext& c) { return GlobalPool(c, "reduce_mean"); }, "", true},
               {"GlobalMaxPool", 1, [](NodeContext& c) { return GlobalPool(c, "reduce_max"); }, "", true},
           }}};
}

}  // namespace hone
