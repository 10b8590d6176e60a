// Reading and writing at indices that are data.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/op_shapes.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/index_ops.h"

namespace hone {
namespace {

// ---- In a graph.
absl::Status CheckIndices(const TensorType& indices) {
  if (indices.dtype == kInt32 || indices.dtype == kInt64) return absl::OkStatus();
  return Refuse("indices of type ", ToText(indices.dtype), " instead of int32 or int64");
}

// x, indices: "axis".
OpInfo GatherOp() {
  OpInfo op{.name = "gather", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    HONE_RETURN_IF_ERROR(CheckIndices(in[1]));
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    std::vector<int64_t> shape(in[0].shape.begin(), in[0].shape.begin() + axis);
    shape.insert(shape.end(), in[1].shape.begin(), in[1].shape.end());
    shape.insert(shape.end(), in[0].shape.begin() + axis + 1, in[0].shape.end());
    return Types{{in[0].dtype, std::move(shape)}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::Gather(in[0], in[1], IntAttr(attrs, "axis"), "gather")};
  };
  return op;
}

OpInfo GatherElementsOp() {
  OpInfo op{.name = "gather_elements", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    HONE_RETURN_IF_ERROR(CheckIndices(in[1]));
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    if (in[1].rank() != in[0].rank())
      return Refuse("indices ", ToText(in[1]), " into ", ToText(in[0]), ": the ranks differ");
    for (int d = 0; d < in[0].rank(); ++d) {
      if (d != axis && in[1].shape[d] > in[0].shape[d])
        return Refuse("indices ", ToText(in[1]), " into ", ToText(in[0]));
    }
    return Types{{in[0].dtype, in[1].shape}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::GatherElements(in[0], in[1], IntAttr(attrs, "axis"), "gather_elements")};
  };
  return op;
}

// "batch_dims".
OpInfo GatherNdOp() {
  OpInfo op{.name = "gather_nd", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    HONE_RETURN_IF_ERROR(CheckIndices(in[1]));
    const int64_t batch = IntAttr(attrs, "batch_dims");
    if (batch < 0 || in[1].rank() < 1 || batch >= in[1].rank() || batch > in[0].rank())
      return Refuse(batch, " batch dimensions of indices ", ToText(in[1]));
    const int64_t depth = in[1].shape.back();
    if (depth < 1 || batch + depth > in[0].rank() ||
        !std::equal(in[1].shape.begin(), in[1].shape.begin() + batch, in[0].shape.begin())) {
      return Refuse("indices ", ToText(in[1]), " into ", ToText(in[0]), " with ", batch, " batch dimensions");
    }
    std::vector<int64_t> shape(in[1].shape.begin(), in[1].shape.end() - 1);
    shape.insert(shape.end(), in[0].shape.begin() + batch + depth, in[0].shape.end());
    return Types{{in[0].dtype, std::move(shape)}};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::GatherNd(in[0], in[1], IntAttr(attrs, "batch_dims"), "gather_nd")};
  };
  return op;
}

topi::ScatterMode ScatterModeOf(const std::string& mode) {
  return mode == "add"   ? topi::ScatterMode::kAdd
         : mode == "mul" ? topi::ScatterMode::kMul
         : mode == "min" ? topi::ScatterMode::kMin
         : mode == "max" ? topi::ScatterMode::kMax
                         : topi::ScatterMode::kReplace;
}

absl::Status CheckScatter(TypeSpan in, const Attrs& attrs) {
  HONE_RETURN_IF_ERROR(ExpectInputs(in, 3));
  HONE_RETURN_IF_ERROR(CheckIndices(in[1]));
  if (in[2].dtype != in[0].dtype) return Refuse("updates ", ToText(in[2]), " into ", ToText(in[0]));
  const std::string mode = StringAttr(attrs, "reduction", "none");
  if (mode != "none" && mode != "add" && mode != "mul" && mode != "min" && mode != "max")
    return Refuse("unknown reduction \"", mode, "\"");
  if (in[0].dtype.is_bool() && mode != "none") return Refuse("reduction ", mode, " of bools");
  return absl::OkStatus();
}

// x, indices, updates: "reduction".
OpInfo ScatterNdOp() {
  OpInfo op{.name = "scatter_nd", .kind = OpKind::kOpaque};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(CheckScatter(in, attrs));
    if (in[1].rank() < 1 || in[1].shape.back() < 1 || in[1].shape.back() > in[0].rank())
      return Refuse("indices ", ToText(in[1]), " into ", ToText(in[0]));
    std::vector<int64_t> expected(in[1].shape.begin(), in[1].shape.end() - 1);
    expected.insert(expected.end(), in[0].shape.begin() + in[1].shape.back(), in[0].shape.end());
    if (in[2].shape != expected)
      return Refuse("updates ", ToText(in[2]), " at indices ", ToText(in[1]), " into ", ToText(in[0]));
    return Types{in[0]};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{
        topi::ScatterNd(in[0], in[1], in[2], ScatterModeOf(StringAttr(attrs, "reduction")), "scatter_nd")};
  };
  return op;
}

// x, indices, updates: "axis", "reduction".
OpInfo ScatterElementsOp() {
  OpInfo op{.name = "scatter_elements", .kind = OpKind::kOpaque};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(CheckScatter(in, attrs));
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank()));
    if (in[1].shape != in[2].shape || in[1].rank() != in[0].rank())
      return Refuse("updates ", ToText(in[2]), " at indices ", ToText(in[1]), " into ", ToText(in[0]));
    for (int d = 0; d < in[0].rank(); ++d) {
      if (d != axis && in[1].shape[d] > in[0].shape[d])
        return Refuse("indices ", ToText(in[1]), " into ", ToText(in[0]));
    }
    return Types{in[0]};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::ScatterElements(in[0], in[1], in[2], IntAttr(attrs, "axis"),
                                             ScatterModeOf(StringAttr(attrs, "reduction")), "scatter_elements")};
  };
  return op;
}

// indices, values {off, on}: "depth", "axis".
OpInfo OneHotOp() {
  OpInfo op{.name = "one_hot", .kind = OpKind::kInjective};
  op.infer = [](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 2));
    HONE_RETURN_IF_ERROR(CheckIndices(in[0]));
    HONE_ASSIGN_OR_RETURN(const int64_t axis, CheckedAxis(attrs, in[0].rank() + 1));
    const int64_t depth = IntAttr(attrs, "depth");
    if (depth < 1) return Refuse("a one-hot of depth ", depth);
    if (in[1].shape != std::vector<int64_t>{2})
      return Refuse("the values of a one-hot are ", ToText(in[1]), " instead of 2");
    TensorType out{in[1].dtype, in[0].shape};
    out.shape.insert(out.shape.begin() + axis, depth);
    return Types{std::move(out)};
  };
  op.lower = [](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{topi::OneHot(in[0], IntAttr(attrs, "depth"), in[1], IntAttr(attrs, "axis"), "one_hot")};
  };
  return op;
}

// ---- Of ONNX.
// Indices that are known must be in range: a kernel does not check them.
absl::Status CheckRange(NodeContext& c, int indices, int64_t extent) {
  const GraphValue& value = c.graph().values[indices];
  if (!value.is_constant() || !value.type.dtype.is_int()) return absl::OkStatus();
  for (int64_t i = 0; i < value.data->NumElements(); ++i) {
    const int64_t at = value.data->GetInt(i);
    if (at < -extent || at >= extent) return Unsupported(absl::StrCat("index ", at, " into ", extent, " elements"));
  }
  return absl::OkStatus();
}

Outputs Gather(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), c.rank(c.input(0))));
  const std::vector<int64_t> shape = c.shape(c.input(0));
  HONE_RETURN_IF_ERROR(CheckRange(c, c.input(1), shape[axis]));
  const GraphValue& index = c.graph().values[c.input(1)];
  if (index.is_constant() && index.data->NumElements() == 1) {  // one known index: a slice
    int64_t at = index.data->GetInt(0);
    if (at < 0) at += shape[axis];
    std::vector<int64_t> starts(shape.size(), 0), sizes = shape, result(shape.begin(), shape.begin() + axis);
    starts[axis] = at;
    sizes[axis] = 1;
    result.insert(result.end(), index.type.shape.begin(), index.type.shape.end());
    result.insert(result.end(), shape.begin() + axis + 1, shape.end());
    HONE_ASSIGN_OR_RETURN(
        const int part,
        c.Emit("slice", {c.input(0)},
               {{"starts", starts}, {"sizes", sizes}, {"steps", std::vector<int64_t>(shape.size(), 1)}}));
    return One(c.Reshape(part, result));
  }
  return One(c.Emit("gather", {c.input(0), c.input(1)}, {{"axis", axis}}));
}

Outputs GatherElements(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), c.rank(c.input(0))));
  HONE_RETURN_IF_ERROR(CheckRange(c, c.input(1), c.shape(c.input(0))[axis]));
  return One(c.Emit("gather_elements", {c.input(0), c.input(1)}, {{"axis", axis}}));
}

// Index tuples that are known must be in range, each part in its dimension's.
absl::Status CheckTuples(NodeContext& c, int indices, const std::vector<int64_t>& shape, int64_t first) {
  const GraphValue& value = c.graph().values[indices];
  if (!value.is_constant() || value.type.rank() < 1 || !value.type.dtype.is_int()) return absl::OkStatus();
  const int64_t depth = value.type.shape.back();
  if (first < 0 || depth < 1 || first + depth > static_cast<int64_t>(shape.size()))
    return absl::OkStatus();  // inference says it
  for (int64_t i = 0; i < value.data->NumElements(); ++i) {
    const int64_t at = value.data->GetInt(i), extent = shape[first + i % depth];
    if (at < -extent || at >= extent) return Unsupported(absl::StrCat("index ", at, " into ", extent, " elements"));
  }
  return absl::OkStatus();
}

Outputs GatherNd(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const int64_t batch = c.IntAttr("batch_dims", 0);
  HONE_RETURN_IF_ERROR(CheckTuples(c, c.input(1), c.shape(c.input(0)), batch));
  return One(c.Emit("gather_nd", {c.input(0), c.input(1)}, {{"batch_dims", batch}}));
}

Outputs ScatterNd(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  HONE_RETURN_IF_ERROR(CheckTuples(c, c.input(1), c.shape(c.input(0)), 0));
  return One(
      c.Emit("scatter_nd", {c.input(0), c.input(1), c.input(2)}, {{"reduction", c.StringAttr("reduction", "none")}}));
}

Outputs ScatterElements(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), c.rank(c.input(0))));
  HONE_RETURN_IF_ERROR(CheckRange(c, c.input(1), c.shape(c.input(0))[axis]));
  return One(c.Emit("scatter_elements", {c.input(0), c.input(1), c.input(2)},
                    {{"axis", axis}, {"reduction", c.StringAttr("reduction", "none")}}));
}

Outputs OneHot(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", -1), c.rank(c.input(0)) + 1));
  double depth = 0;
  if (c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(depth, c.Number(1, "the depth"));
  } else {
    HONE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, c.ShapeInsteadOf(1, "the depth"));
    if (static_cast<int>(shape.size()) != c.rank(c.input(0)) + 1)
      return Unsupported("the declared shape has another rank");
    depth = static_cast<double>(shape[axis]);
  }
  if (!(depth >= 1 && depth < 0x1p31)) return Unsupported(absl::StrCat("a depth of ", depth));
  int indices = c.input(0);
  if (!c.type(indices).dtype.is_int() || c.type(indices).dtype.bits < 32) {
    HONE_ASSIGN_OR_RETURN(indices, c.Emit("cast", {indices}, {{"to", std::string("int64")}}));
  }
  return One(c.Emit("one_hot", {indices, c.input(2)}, {{"depth", static_cast<int64_t>(depth)}, {"axis", axis}}));
}

}  // namespace

HONE_OPERATORS(indexing) {
  return {{.graph = {GatherOp()}, .onnx = {{"Gather", 1, Gather}}},
          {.graph = {GatherElementsOp()}, .onnx = {{"GatherElements", 11, GatherElements}}},
          {.graph = {GatherNdOp()}, .onnx = {{"GatherND", 11, GatherNd}}},
          {.graph = {ScatterElementsOp()},
           .onnx = {{"Scatter", 9, ScatterElements}, {"ScatterElements", 11, ScatterElements}}},
          {.graph = {ScatterNdOp()}, .onnx = {{"ScatterND", 11, ScatterNd}}},
          {.graph = {OneHotOp()}, .onnx = {{"OneHot", 9, OneHot}}}};
}

}  // namespace hone
