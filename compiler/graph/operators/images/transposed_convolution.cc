// The transpose of a convolution: each element of the image spreads over a window of the result.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/images/convolution.h"
#include "compiler/graph/operators/images/image_layout.h"
#include "compiler/graph/operators/images/image_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

// Weight [K..., IC, OC / groups].
OpInfo ConvTransposeOp() {
  OpInfo op{.name = "conv_transpose", .kind = OpKind::kAnchor};
  op.weight_has_channels = true;
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(CheckImages(in, 2));
    const TensorType &x = in[0], &w = in[1];
    if (w.rank() != x.rank()) return Refuse("an image of rank ", x.rank(), " and a weight of rank ", w.rank());
    const int64_t groups = IntAttr(attrs, "groups", 1);
    if (groups < 1 || x.shape.back() % groups != 0 || w.shape.end()[-2] != x.shape.back()) {
      return Refuse("the image has ", x.shape.back(), " channels in ", groups, " groups, the weight takes ",
                    w.shape.end()[-2]);
    }
    HONE_ASSIGN_OR_RETURN(const ImageWindow window, ReadImageWindow(attrs, {w.shape.begin(), w.shape.end() - 2}));
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
  HONE_ASSIGN_OR_RETURN(TransposedWindow t, ReadTransposedWindow(c, SpatialSizes(xs), SpatialSizes(ws)));
  HONE_ASSIGN_OR_RETURN(const WithHeight tall, AddHeight(c, c.input(0)));
  HONE_ASSIGN_OR_RETURN(const WithHeight weight, AddHeight(c, c.input(1)));
  if (tall.added) {
    AddHeight(t.window);
    t.output_padding.insert(t.output_padding.begin(), 0);
  }
  HONE_ASSIGN_OR_RETURN(const int x, ToChannelsLast(c, tall.value));
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
  HONE_ASSIGN_OR_RETURN(y, RemoveHeight(c, y, tall.added));
  return std::vector<int>{y};
}

}  // namespace

HONE_OPERATORS(transposed_convolution) {
  return {{.graph = {ConvTransposeOp()}, .onnx = {{"ConvTranspose", 1, ConvTranspose, "", true}}}};
}

}  // namespace hone
