// Reading and writing at indices that are data.
#include "absl/strings/str_cat.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/onnx_operators.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

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

Outputs NonZero(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  if (!c.IsConstant(0)) return NonZeroAtRunTime(c);
  HONE_ASSIGN_OR_RETURN(const std::shared_ptr<const NdArray> x,
                        c.Constant(0, "the input, whose values decide the shape of the result,"));
  const int64_t rank = static_cast<int64_t>(x->shape.size());
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x->NumElements(); ++i) {
    if (x->Get(i) != 0) found.push_back(i);
  }
  NdArray result(kInt64, {rank, static_cast<int64_t>(found.size())});
  for (size_t f = 0; f < found.size(); ++f) {
    int64_t rest = found[f];
    for (int64_t d = rank - 1; d >= 0; --d) {
      result.As<int64_t>()[d * static_cast<int64_t>(found.size()) + static_cast<int64_t>(f)] = rest % x->shape[d];
      rest /= x->shape[d];
    }
  }
  return std::vector<int>{c.AddConstant(std::move(result))};
}

constexpr OnnxOperator kOperators[] = {
    {"Gather", 1, Gather},
    {"GatherElements", 11, GatherElements},
    {"GatherND", 11, GatherNd},
    {"NonZero", 9, NonZero},
    {"OneHot", 9, OneHot},
    {"Scatter", 9, ScatterElements},
    {"ScatterElements", 11, ScatterElements},
    {"ScatterND", 11, ScatterNd},
};

}  // namespace

std::span<const OnnxOperator> IndexOperators() { return kOperators; }

}  // namespace hone
