// Convolutions of images, each channel by itself (depthwise) or all of them.
#include "compiler/graph/operators/images/convolution.h"

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/images/image_layout.h"
#include "compiler/graph/operators/images/image_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {

topi::ConvAttrs ConvAttrsOf(const Attrs& attrs, size_t spatial) {
  const ImageWindow w = *ReadImageWindow(attrs, std::vector<int64_t>(spatial, 1));
  return {w.strides,
          w.dilations,
          w.before,
          w.after,
          IntAttr(attrs, "groups", 1),
          static_cast<double>(IntAttr(attrs, "pad_value", 0)),
          IntAttr(attrs, "channels_first", 0) != 0};
}

absl::StatusOr<int> EmitConvolution(NodeContext& c, int image, int weight, const AddProduct& product) {
  HONE_RETURN_IF_ERROR(CheckImage(c, image));
  if (c.rank(weight) != c.rank(image))
    return Unsupported(absl::StrCat("the weight is ", ToText(c.type(weight)), " for ", ToText(c.type(image))));
  HONE_ASSIGN_OR_RETURN(WindowAttrs w, ReadWindow(c, SpatialSizes(c.shape(image)), SpatialSizes(c.shape(weight))));
  HONE_ASSIGN_OR_RETURN(const WithHeight tall, AddHeight(c, image));
  HONE_ASSIGN_OR_RETURN(const WithHeight kernel, AddHeight(c, weight));
  if (tall.added) AddHeight(w);
  const int64_t groups = c.IntAttr("group", 1), channels = c.shape(tall.value)[1];
  const std::vector<int64_t> ws = c.shape(kernel.value);  // [OC, IC / groups, K...]
  if (groups < 1 || groups > channels || ws[1] * groups != channels || ws[0] % groups != 0) {
    return Unsupported(absl::StrCat("the image has ", channels, " channels in ", groups, " groups, the weight is ",
                                    ToText(c.type(weight))));
  }
  HONE_ASSIGN_OR_RETURN(const int x, ToChannelsLast(c, tall.value));
  Attrs attrs{{"strides", w.strides}, {"dilations", w.dilations}, {"pads", w.pads}};
  int y = -1;
  if (ws.size() == 4 && groups == channels && groups > 1 && ws[0] == groups) {
    HONE_ASSIGN_OR_RETURN(int k, c.Transpose(kernel.value, {2, 3, 0, 1}));
    HONE_ASSIGN_OR_RETURN(k, c.Reshape(k, {ws[2], ws[3], ws[0]}));
    HONE_ASSIGN_OR_RETURN(y, product("depthwise_conv2d", x, k, std::move(attrs)));
  } else {
    std::vector<int64_t> perm;
    for (int64_t d = 2; d < static_cast<int64_t>(ws.size()); ++d) perm.push_back(d);
    perm.insert(perm.end(), {1, 0});
    HONE_ASSIGN_OR_RETURN(const int k, c.Transpose(kernel.value, perm));
    attrs["groups"] = groups;
    HONE_ASSIGN_OR_RETURN(y, product("conv", x, k, std::move(attrs)));
  }
  HONE_ASSIGN_OR_RETURN(y, ToChannelsFirst(c, y));
  return RemoveHeight(c, y, tall.added);
}

absl::StatusOr<int> AddBias(NodeContext& c, int image, int bias) {
  if (bias < 0) return image;
  if (c.shape(bias) != std::vector<int64_t>{c.shape(image).back()})
    return Unsupported(absl::StrCat("the bias is ", ToText(c.type(bias)), " for ", c.shape(image).back(), " channels"));
  return c.Emit("add", {image, bias});
}

namespace {

OpInfo ConvOp() {
  OpInfo op{.name = "conv", .kind = OpKind::kAnchor};
  op.takes_channels_first = op.is_matrix_product = op.multiplies_integers = op.weight_has_channels = op.slides_weight =
      true;
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    const TensorType x = ChannelsLast(in[0], attrs), &w = in[1];
    HONE_RETURN_IF_ERROR(CheckImageRank(x));
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
    HONE_ASSIGN_OR_RETURN(const ImageWindow window, ReadImageWindow(attrs, {w.shape.begin(), w.shape.end() - 2}));
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, WindowOutput(x, window, out_channels, false));
    return Types{ResultInLayout(sum, std::move(shape), attrs)};
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
  op.takes_channels_first = op.multiplies_integers = op.weight_has_channels = op.slides_weight = true;
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    const TensorType x = ChannelsLast(in[0], attrs), &w = in[1];
    HONE_ASSIGN_OR_RETURN(const DType sum, SumOfProducts(x, w));
    if (x.rank() != 4 || w.rank() != 3 || x.shape[3] != w.shape[2]) {
      return Refuse("a depthwise convolution of ", ToText(x), " with ", ToText(w));
    }
    HONE_ASSIGN_OR_RETURN(const ImageWindow window, ReadImageWindow(attrs, {w.shape[0], w.shape[1]}));
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, WindowOutput(x, window, w.shape[2], false));
    return Types{ResultInLayout(sum, std::move(shape), attrs)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::DepthwiseConv2d(in[0], in[1], ConvAttrsOf(attrs, 2), "depthwise_conv2d")};
  };
  op.flop = [](TypeSpan in, const Attrs&, TypeSpan out) {
    return 2 * Count(out[0].shape) * static_cast<double>(in[1].shape[0] * in[1].shape[1]);
  };
  return op;
}

Outputs Conv(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 3));
  const auto product = [&](const std::string& op, int x, int k, Attrs attrs) -> absl::StatusOr<int> {
    HONE_ASSIGN_OR_RETURN(const int y, c.Emit(op, {x, k}, std::move(attrs)));
    return AddBias(c, y, c.input(2));
  };
  HONE_ASSIGN_OR_RETURN(const int y, EmitConvolution(c, c.input(0), c.input(1), product));
  return std::vector<int>{y};
}

}  // namespace

HONE_OPERATORS(convolution) {
  return {{.graph = {ConvOp(), DepthwiseConv2dOp()}, .onnx = {{"Conv", 1, Conv, "", true}}}};
}

}  // namespace hone
