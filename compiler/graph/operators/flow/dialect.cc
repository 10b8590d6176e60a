// Operators of the text dialect's graph functions (compiler/text/README.md) in the terms of ONNX's: another name, other
// names of attributes, numbers by place. Element-wise ones that the graph has under their names need no row
// (graph_operator.h). Images are NCHW and weights OIHW.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/expressions.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;
using Attributes = std::map<std::string, OnnxAttribute>;

// "void" and "" leave the type as it is.
absl::Status KeepsType(NodeContext& c) {
  const std::string type = c.StringAttr("out_dtype", "");
  if (type.empty() || type == "void" || type == ToText(c.type(c.input(0)).dtype)) return absl::OkStatus();
  return Unsupported(absl::StrCat("out_dtype ", type, " of operands of type ", ToText(c.type(c.input(0)).dtype)));
}

Outputs MatmulOfDialect(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  HONE_RETURN_IF_ERROR(KeepsType(c));
  return c.As("MatMul", c.inputs(), {});
}

Outputs PermuteDims(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  Ints axes(static_cast<size_t>(c.rank(c.input(0))));
  std::iota(axes.rbegin(), axes.rend(), 0);
  HONE_ASSIGN_OR_RETURN(axes, c.Axes(c.IntsAttr("axes", axes), c.rank(c.input(0))));
  return c.As("Transpose", c.inputs(), {{"perm", axes}});
}

Outputs FlattenAll(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  return One(c.Reshape(c.input(0), {*NumElements(c.shape(c.input(0)))}));
}

// "axis": one, several, or absent.
Ints AxesAttr(NodeContext& c) {
  const OnnxAttribute* axis = c.Attribute("axis");
  if (axis == nullptr) return {};
  return std::holds_alternative<int64_t>(*axis) ? Ints{c.IntAttr("axis", 0)} : c.IntsAttr("axis");
}

// Axes are input 1 of the ONNX operator.
Outputs WithAxes(NodeContext& c, std::string_view op, Attributes attributes = {}) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Ints axes = AxesAttr(c);
  std::vector<int> inputs = {c.input(0)};
  if (!axes.empty()) inputs.push_back(c.IntVector(axes));
  return c.As(op, inputs, std::move(attributes));
}
Outputs ReduceOfDialect(NodeContext& c, std::string_view op) {
  return WithAxes(c, op, {{"keepdims", c.IntAttr("keepdims", 0)}});
}

Outputs TakeRows(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  c.StringAttr("mode", "");  // indices are within range
  if (c.HasAttr("axis")) return c.As("Gather", c.inputs(), {{"axis", c.IntAttr("axis", 0)}});
  HONE_ASSIGN_OR_RETURN(const int flat, c.Reshape(c.input(0), {*NumElements(c.shape(c.input(0)))}));
  return c.As("Gather", {flat, c.input(1)}, {{"axis", int64_t{0}}});
}

// (x, axes, begin, end, strides)
Outputs StridedSlice(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(4, 5));
  c.IntAttr("assume_inbound", 0);
  std::vector<int> inputs = {c.input(0), c.input(2), c.input(3), c.input(1)};
  if (c.HasInput(4)) inputs.push_back(c.input(4));
  return c.As("Slice", inputs, {});
}

// Into so many parts, or before each of these indices.
Outputs SplitOfDialect(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), c.rank(c.input(0))));
  const int64_t extent = c.shape(c.input(0))[static_cast<size_t>(axis)];
  const OnnxAttribute* parts = c.Attribute("indices_or_sections");
  if (parts == nullptr) return Unsupported("it does not say into what it splits");
  Ints ends;
  if (const auto* sections = std::get_if<int64_t>(parts)) {
    if (*sections < 1 || extent % *sections != 0)
      return Unsupported(absl::StrCat(*sections, " equal parts of ", extent, " elements"));
    for (int64_t part = 1; part < *sections; ++part) ends.push_back(extent / *sections * part);
  } else {
    ends = c.IntsAttr("indices_or_sections");
  }
  ends.push_back(extent);
  Ints sizes;
  std::adjacent_difference(ends.begin(), ends.end(), std::back_inserter(sizes));
  return c.As("Split", {c.input(0), c.IntVector(sizes)}, {{"axis", axis}});
}

Outputs CastOfDialect(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const std::string type = c.StringAttr("dtype", "");
  if (!ParseDType(type).has_value()) return Unsupported(absl::StrCat("the type \"", type, "\""));
  return One(c.Emit("cast", {c.input(0)}, {{"to", type}}));
}

Outputs ClipOfDialect(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  HONE_ASSIGN_OR_RETURN(const double low, c.Number(1, "min"));
  HONE_ASSIGN_OR_RETURN(const double high, c.Number(2, "max"));
  return One(c.Emit("clip", {c.input(0)}, {{"min", low}, {"max", high}}));
}

// Pads of one number, one a dimension, or one a side.
absl::StatusOr<Ints> PadsOf(NodeContext& c) {
  const Ints pads = c.IntsAttr("padding", {0});
  switch (pads.size()) {
    case 1: return Ints(4, pads[0]);
    case 2: return Ints{pads[0], pads[1], pads[0], pads[1]};
    case 4: return pads;
    default: return Unsupported(absl::StrCat("padding of ", pads.size(), " numbers"));
  }
}

absl::Status HasLayout(NodeContext& c, std::string_view attr, std::string_view layout) {
  const std::string given = c.StringAttr(attr, layout);
  if (given.empty() || given == layout) return absl::OkStatus();
  return Unsupported(absl::StrCat(std::string(attr), " ", given, "; it may be ", std::string(layout)));
}

absl::Status IsImage(NodeContext& c) {
  for (const std::string_view attr : {"layout", "data_layout", "out_layout"})
    HONE_RETURN_IF_ERROR(HasLayout(c, attr, "NCHW"));
  if (c.rank(c.input(0)) != 4) return Unsupported(absl::StrCat("an image of ", ToText(c.type(c.input(0)))));
  return KeepsType(c);
}

Outputs Conv2d(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  HONE_RETURN_IF_ERROR(IsImage(c));
  HONE_RETURN_IF_ERROR(HasLayout(c, "kernel_layout", "OIHW"));
  HONE_ASSIGN_OR_RETURN(const Ints pads, PadsOf(c));
  return c.As("Conv", c.inputs(),
              {{"pads", pads},
               {"strides", c.IntsAttr("strides", {1, 1})},
               {"dilations", c.IntsAttr("dilation", {1, 1})},
               {"group", c.IntAttr("groups", 1)}});
}

Outputs Pool2d(NodeContext& c, std::string_view op) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_RETURN_IF_ERROR(IsImage(c));
  HONE_ASSIGN_OR_RETURN(const Ints pads, PadsOf(c));
  Attributes attributes = {{"kernel_shape", c.IntsAttr("pool_size", {1, 1})},
                           {"pads", pads},
                           {"strides", c.IntsAttr("strides", {1, 1})},
                           {"dilations", c.IntsAttr("dilation", {1, 1})},
                           {"ceil_mode", c.IntAttr("ceil_mode", 0)}};
  const int64_t counts_pads = c.IntAttr("count_include_pad", 0);
  if (op == "AveragePool") attributes["count_include_pad"] = counts_pads;
  return c.As(op, c.inputs(), std::move(attributes));
}

Outputs AdaptiveAvgPool2d(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_RETURN_IF_ERROR(IsImage(c));
  if (c.IntsAttr("output_size") != Ints{1, 1}) return Unsupported("output_size other than [1, 1]");
  return c.As("GlobalAveragePool", c.inputs(), {});
}

// (x, gamma, beta, moving_mean, moving_var) -> (y, moving_mean, moving_var)
Outputs BatchNormOfDialect(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(5, 5));
  if (c.IntAttr("axis", 1) != 1 || c.IntAttr("center", 1) != 1 || c.IntAttr("scale", 1) != 1 ||
      c.IntAttr("training", 0) != 0)
    return Unsupported("axis other than 1, center, scale or training");
  c.FloatAttr("momentum", 0);
  HONE_ASSIGN_OR_RETURN(const std::vector<int> y,
                        c.As("BatchNormalization", c.inputs(), {{"epsilon", c.FloatAttr("epsilon", 1e-5)}}));
  return std::vector<int>{y[0], c.input(3), c.input(4)};
}

// Over the last dimensions.
Outputs LayerNormOfDialect(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  const int rank = c.rank(c.input(0));
  HONE_ASSIGN_OR_RETURN(Ints axes, c.Axes(c.IntsAttr("axes", {-1}), rank));
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[axes.size() - 1 - i] != rank - 1 - static_cast<int64_t>(i))
      return Unsupported("axes that are not the last");
  }
  if (axes.empty() || c.IntAttr("center", 1) != 1 || c.IntAttr("scale", 1) != 1)
    return Unsupported("no axes, center or scale");
  return c.As("LayerNormalization", c.inputs(), {{"axis", axes[0]}, {"epsilon", c.FloatAttr("epsilon", 1e-5)}});
}

OnnxOperator Row(std::string_view name, ImportFn import) {
  return {.name = name, .since = 1, .import = import, .domain = kModuleDomain, .in_float32 = true};
}
// A value's elements moved, not computed with.
OnnxOperator Moves(std::string_view name, ImportFn import) {
  return {.name = name, .since = 1, .import = import, .domain = kModuleDomain};
}

}  // namespace

HONE_OPERATORS(dialect) {
  return {{.onnx = {
               Row("matmul", MatmulOfDialect),
               Row("nn.conv2d", Conv2d),
               Row("nn.max_pool2d", [](NodeContext& c) { return Pool2d(c, "MaxPool"); }),
               Row("nn.avg_pool2d", [](NodeContext& c) { return Pool2d(c, "AveragePool"); }),
               Row("nn.adaptive_avg_pool2d", AdaptiveAvgPool2d),
               Row("nn.batch_norm", BatchNormOfDialect),
               Row("nn.layer_norm", LayerNormOfDialect),
               Row("nn.softmax", [](NodeContext& c) { return c.As("Softmax", c.inputs()); }),
               Row("nn.log_softmax", [](NodeContext& c) { return c.As("LogSoftmax", c.inputs()); }),
               Row("nn.leakyrelu", [](NodeContext& c) { return c.As("LeakyRelu", c.inputs()); }),
               Row("sum", [](NodeContext& c) { return ReduceOfDialect(c, "ReduceSum"); }),
               Row("mean", [](NodeContext& c) { return ReduceOfDialect(c, "ReduceMean"); }),
               Row("prod", [](NodeContext& c) { return ReduceOfDialect(c, "ReduceProd"); }),
               Moves("logical_and", [](NodeContext& c) { return c.As("And", c.inputs()); }),
               Moves("logical_or", [](NodeContext& c) { return c.As("Or", c.inputs()); }),
               Moves("logical_not", [](NodeContext& c) { return c.As("Not", c.inputs()); }),
               Moves("max", [](NodeContext& c) { return ReduceOfDialect(c, "ReduceMax"); }),
               Moves("min", [](NodeContext& c) { return ReduceOfDialect(c, "ReduceMin"); }),
               Moves("astype", CastOfDialect),
               Moves("clip", ClipOfDialect),
               Moves("permute_dims", PermuteDims),
               Moves("reshape", [](NodeContext& c) { return c.As("Reshape", c.inputs()); }),
               Moves("flatten", FlattenAll),
               Moves("squeeze", [](NodeContext& c) { return WithAxes(c, "Squeeze"); }),
               Moves("expand_dims", [](NodeContext& c) { return WithAxes(c, "Unsqueeze"); }),
               Moves("broadcast_to", [](NodeContext& c) { return c.As("Expand", c.inputs()); }),
               Moves("concat", [](NodeContext& c) { return c.As("Concat", c.inputs()); }),
               Moves("split", SplitOfDialect),
               Moves("strided_slice", StridedSlice),
               Moves("take", TakeRows),
           }}};
}

}  // namespace hone
