// Moving elements, shapes as data, constants.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/onnx_operators.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

Outputs Identity(NodeContext& c) {
  if (c.num_inputs() != 1) HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));  // it may be a sequence
  return std::vector<int>{c.input(0)};
}

// ---- Constants.
template <class T>
int List(NodeContext& c, DType dtype, const std::vector<T>& values, bool scalar) {
  NdArray array(dtype, scalar ? Ints{} : Ints{static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_integral_v<T>) array.SetInt(static_cast<int64_t>(i), values[i]);
    else array.Set(static_cast<int64_t>(i), values[i]);
  }
  return c.AddConstant(std::move(array));
}

Outputs Constant(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(0, 0));
  if (c.HasAttr("value")) {
    const std::shared_ptr<const NdArray> array = c.TensorAttr("value");
    if (array == nullptr) return Unsupported("its value is malformed");
    return std::vector<int>{c.graph().AddConstant(c.name(), array)};
  }
  if (c.HasAttr("value_float"))
    return std::vector<int>{List<double>(c, kFloat32, {c.FloatAttr("value_float", 0)}, true)};
  if (c.HasAttr("value_floats"))
    return std::vector<int>{List<double>(c, kFloat32, c.FloatsAttr("value_floats"), false)};
  if (c.HasAttr("value_int")) return std::vector<int>{List<int64_t>(c, kInt64, {c.IntAttr("value_int", 0)}, true)};
  if (c.HasAttr("value_ints")) return std::vector<int>{List<int64_t>(c, kInt64, c.IntsAttr("value_ints"), false)};
  return Unsupported("it has no value of a supported kind (sparse tensors and strings are not)");
}

// A checked size for a constant that is made here.
absl::Status CheckConstantSize(const Ints& shape) {
  const std::optional<int64_t> elements = NumElements(shape);
  if (elements.has_value() && *elements <= (int64_t{1} << 28)) return absl::OkStatus();
  return Unsupported(absl::StrCat("a constant of shape [", absl::StrJoin(shape, ", "), "]"));
}

Outputs ConstantOfShape(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  HONE_ASSIGN_OR_RETURN(const Ints shape, c.ShapeFrom(0, "the shape"));
  HONE_RETURN_IF_ERROR(CheckConstantSize(shape));
  const std::shared_ptr<const NdArray> value = c.TensorAttr("value");
  if (value != nullptr && value->NumElements() != 1) return Unsupported("its value has more than one element");
  NdArray array(value == nullptr ? kFloat32 : value->dtype, shape);
  if (value != nullptr) {
    const size_t bytes = value->data.size();
    for (size_t at = 0; at < array.data.size(); at += bytes)
      std::copy(value->data.begin(), value->data.end(), array.data.begin() + static_cast<int64_t>(at));
  }
  return std::vector<int>{c.AddConstant(std::move(array))};
}

Outputs EyeLike(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  if (c.rank(c.input(0)) != 2) return Unsupported(absl::StrCat("the identity like ", ToText(c.type(c.input(0)))));
  DType dtype = c.type(c.input(0)).dtype;
  if (c.HasAttr("dtype")) {
    const std::optional<DType> named = OnnxDType(c.IntAttr("dtype", 0));
    if (!named.has_value()) return Unsupported("the element type is not supported");
    dtype = *named;
  }
  HONE_RETURN_IF_ERROR(CheckConstantSize(c.shape(c.input(0))));
  NdArray array(dtype, c.shape(c.input(0)));
  const int64_t k = std::clamp(c.IntAttr("k", 0), -kMostElements, kMostElements), columns = array.shape[1];
  for (int64_t i = 0; i < array.shape[0]; ++i) {
    if (i + k >= 0 && i + k < columns) array.Set(i * columns + i + k, 1);
  }
  return std::vector<int>{c.AddConstant(std::move(array))};
}

// ---- Shapes as data.
Outputs Shape(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Ints& shape = c.shape(c.input(0));
  const int64_t rank = c.rank(c.input(0));
  const auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = bound(c.IntAttr("start", 0)), end = bound(c.IntAttr("end", rank));
  const Ints part(shape.begin() + start, shape.begin() + std::max(start, end));
  const int value = c.IntVector(part);
  c.graph().values[value].follows_sizes = c.graph().sizes_are_open && !c.IsConstant(0);
  return std::vector<int>{value};
}

Outputs Size(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  return std::vector<int>{List<int64_t>(c, kInt64, {*NumElements(c.shape(c.input(0)))}, true)};
}

Outputs Reshape(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Ints from = c.shape(c.input(0));
  const bool allow_zero = c.IntAttr("allowzero", 0) != 0;
  if (!c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(const Ints shape, c.ShapeInsteadOf(1, "the shape"));
    return One(c.Reshape(c.input(0), shape));
  }
  HONE_ASSIGN_OR_RETURN(Ints shape, c.Ints(1, "the shape"));
  int unknown = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !allow_zero) {
      if (d >= from.size())
        return Unsupported(absl::StrCat("dimension ", d, " of the shape copies one that ", ToText(c.type(c.input(0))),
                                        " does not have"));
      shape[d] = from[d];
    }
    if (shape[d] == -1) {
      if (unknown >= 0) return Unsupported("two dimensions of the shape are -1");
      unknown = static_cast<int>(d);
    }
  }
  if (unknown >= 0) {
    shape[unknown] = 1;
    const std::optional<int64_t> rest = NumElements(shape), all = NumElements(from);
    if (!rest.has_value() || *rest == 0 || *all % *rest != 0) {
      return Unsupported(absl::StrCat("a reshape of ", ToText(c.type(c.input(0))), " to [", absl::StrJoin(shape, ", "),
                                      "] with dimension ", unknown, " unknown"));
    }
    shape[unknown] = *all / *rest;
  }
  return One(c.Reshape(c.input(0), shape));
}

Outputs Flatten(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  const Ints shape = c.shape(c.input(0));
  const int64_t rank = c.rank(c.input(0)), given = c.IntAttr("axis", 1), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) return Unsupported(absl::StrCat("axis ", given, " is outside the rank ", rank));
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d < rank; ++d) (d < axis ? rows : columns) *= shape[d];
  return One(c.Reshape(c.input(0), {rows, columns}));
}

// Axes are an attribute, an input since operator set 13.
absl::StatusOr<Ints> AxesOf(NodeContext& c) {
  if (c.opset() < 13) return c.IntsAttr("axes");
  if (!c.HasInput(1)) return Ints{};
  return c.Ints(1, "axes");
}

Outputs Squeeze(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, c.opset() < 13 ? 1 : 2));
  if (c.HasInput(1) && !c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(const Ints declared, c.ShapeInsteadOf(1, "axes"));
    return One(c.Reshape(c.input(0), declared));
  }
  const Ints shape = c.shape(c.input(0));
  HONE_ASSIGN_OR_RETURN(Ints axes, AxesOf(c));
  HONE_ASSIGN_OR_RETURN(axes, c.Axes(axes, c.rank(c.input(0))));
  Ints left;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool named = std::count(axes.begin(), axes.end(), static_cast<int64_t>(d)) > 0;
    if (named && shape[d] != 1)
      return Unsupported(absl::StrCat("dimension ", d, " of ", ToText(c.type(c.input(0))), " is not 1"));
    if (named || (axes.empty() && shape[d] == 1)) continue;
    left.push_back(shape[d]);
  }
  return One(c.Reshape(c.input(0), left));
}

Outputs Unsqueeze(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, c.opset() < 13 ? 1 : 2));
  if (c.HasInput(1) && !c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(const Ints declared, c.ShapeInsteadOf(1, "axes"));
    return One(c.Reshape(c.input(0), declared));
  }
  HONE_ASSIGN_OR_RETURN(Ints axes, AxesOf(c));
  HONE_ASSIGN_OR_RETURN(axes, c.Axes(axes, c.rank(c.input(0)) + static_cast<int>(std::min<size_t>(axes.size(), 64))));
  std::sort(axes.begin(), axes.end());
  Ints shape = c.shape(c.input(0));
  for (const int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return One(c.Reshape(c.input(0), shape));
}

// ---- Moving.
Outputs Transpose(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  Ints reversed(c.rank(c.input(0)));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return One(c.Transpose(c.input(0), c.IntsAttr("perm", reversed)));
}

Outputs Concat(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1 << 16));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), c.rank(c.input(0))));
  std::vector<int> parts;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.HasInput(i)) return Unsupported(absl::StrCat("input ", i, " is left out"));
    const Ints& shape = c.shape(c.input(i));
    if (static_cast<int>(shape.size()) == c.rank(c.input(0)) && shape[axis] == 0 && c.num_inputs() > 1)
      continue;  // adds nothing
    parts.push_back(c.input(i));
  }
  if (parts.empty()) parts.push_back(c.input(0));
  if (parts.size() == 1) return std::vector<int>{parts[0]};
  return One(c.Emit("concat", parts, {{"axis", axis}}));
}

absl::StatusOr<int> SliceAxis(NodeContext& c, int value, int64_t axis, int64_t start, int64_t size) {
  const Ints shape = c.shape(value);
  Ints starts(shape.size(), 0), sizes = shape, steps(shape.size(), 1);
  starts[axis] = start;
  sizes[axis] = size;
  return c.Emit("slice", {value}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
}

Outputs Split(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, c.opset() >= 13 ? 2 : 1));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), c.rank(c.input(0))));
  const int64_t extent = c.shape(c.input(0))[axis];
  Ints sizes = c.IntsAttr("split");
  if (c.HasInput(1) && c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(sizes, c.Ints(1, "the sizes"));
  } else if (c.HasInput(1)) {
    for (int i = 0; i < c.num_outputs(); ++i) {
      HONE_ASSIGN_OR_RETURN(const Ints part, c.ShapeInsteadOf(1, "the sizes", i));
      if (static_cast<int>(part.size()) != c.rank(c.input(0)))
        return Unsupported("the declared shape of a part has another rank");
      sizes.push_back(part[axis]);
    }
  }
  if (sizes.empty()) {  // equal parts, the last one smaller where they do not divide
    const int64_t parts = c.IntAttr("num_outputs", c.num_outputs());
    if (parts < 1 || parts > (1 << 16)) return Unsupported(absl::StrCat(parts, " parts"));
    const int64_t part = (extent + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::max<int64_t>(0, std::min(part, extent - i * part)));
  }
  int64_t at = 0;
  std::vector<int> outputs;
  for (const int64_t size : sizes) {
    if (size < 0 || size > extent - at)
      return Unsupported(absl::StrCat("parts of ", absl::StrJoin(sizes, ", "), " of ", extent, " elements"));
    HONE_ASSIGN_OR_RETURN(const int part, SliceAxis(c, c.input(0), axis, at, size));
    outputs.push_back(part);
    at += size;
  }
  if (at != extent)
    return Unsupported(absl::StrCat("parts of ", absl::StrJoin(sizes, ", "), " of ", extent, " elements"));
  return outputs;
}

Outputs Expand(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  HONE_ASSIGN_OR_RETURN(const Ints wanted, c.ShapeFrom(1, "the shape"));
  Ints shape = c.shape(c.input(0));  // both broadcast: the result may be larger than what is asked for
  if (shape.size() < wanted.size()) shape.insert(shape.begin(), wanted.size() - shape.size(), 1);
  for (size_t i = 0; i < wanted.size(); ++i) {
    int64_t& extent = shape[shape.size() - 1 - i];
    const int64_t other = wanted[wanted.size() - 1 - i];
    if (other < 0) return Unsupported(absl::StrCat("the shape [", absl::StrJoin(wanted, ", "), "]"));
    if (extent == 1) extent = other;
  }
  if (shape == c.shape(c.input(0))) return std::vector<int>{c.input(0)};
  return One(c.Emit("expand", {c.input(0)}, {{"shape", shape}}));
}

Outputs Tile(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  Ints repeats;
  if (c.IsConstant(1)) {
    HONE_ASSIGN_OR_RETURN(repeats, c.Ints(1, "repeats"));
  } else {
    HONE_ASSIGN_OR_RETURN(repeats, c.ShapeInsteadOf(1, "repeats"));
    const Ints& shape = c.shape(c.input(0));
    if (repeats.size() != shape.size()) return Unsupported("the declared shape has another rank");
    for (size_t d = 0; d < shape.size(); ++d) repeats[d] = shape[d] == 0 ? 0 : repeats[d] / shape[d];
  }
  if (std::all_of(repeats.begin(), repeats.end(), [](int64_t r) { return r == 1; }))
    return std::vector<int>{c.input(0)};
  return One(c.Emit("tile", {c.input(0)}, {{"repeats", repeats}}));
}

constexpr OnnxOperator kOperators[] = {
    {"Concat", 4, Concat, "", false, NarrowElements::kMoves},
    {"Constant", 1, Constant},
    {"ConstantOfShape", 9, ConstantOfShape},
    {"Expand", 8, Expand, "", false, NarrowElements::kMoves},
    {"EyeLike", 9, EyeLike},
    {"Flatten", 1, Flatten, "", false, NarrowElements::kMoves},
    {.name = "Identity", .since = 1, .import = Identity, .narrow = NarrowElements::kMoves, .takes_sequences = true},
    {"Reshape", 5, Reshape, "", false, NarrowElements::kMoves},
    {"Shape", 1, Shape, "", false, NarrowElements::kConverts},
    {"Size", 1, Size, "", false, NarrowElements::kConverts},
    {"Split", 2, Split, "", false, NarrowElements::kMoves},
    {"Squeeze", 1, Squeeze, "", false, NarrowElements::kMoves},
    {"Tile", 6, Tile, "", false, NarrowElements::kMoves},
    {"Transpose", 1, Transpose, "", false, NarrowElements::kMoves},
    {"Unsqueeze", 1, Unsqueeze, "", false, NarrowElements::kMoves},
};

}  // namespace

std::span<const OnnxOperator> ShapeOperators() { return kOperators; }

}  // namespace hone
