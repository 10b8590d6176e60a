// Moving elements, shapes as data, constants.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/frontend/operators.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Outputs = absl::StatusOr<std::vector<int>>;
using Ints = std::vector<int64_t>;

Outputs One(absl::StatusOr<int> value) {
  if (!value.ok()) return value.status();
  return std::vector<int>{*value};
}

Outputs Identity(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  return std::vector<int>{c.input(0)};
}

Outputs Dropout(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 3));
  if (c.HasInput(2)) {
    HONE_ASSIGN_OR_RETURN(const double training, c.Number(2, "training_mode"));
    if (training != 0) return Unsupported("training_mode is not supported; export the model in evaluation mode");
  }
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
  HONE_ASSIGN_OR_RETURN(const Ints shape, c.Ints(0, "the shape"));
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

absl::StatusOr<int> IntRange(NodeContext& c, DType dtype) {
  HONE_ASSIGN_OR_RETURN(const int64_t start, c.Int(0, "the start"));
  HONE_ASSIGN_OR_RETURN(const int64_t limit, c.Int(1, "the limit"));
  HONE_ASSIGN_OR_RETURN(const int64_t step, c.Int(2, "the step"));
  int64_t length = 0;
  if (step == 0 || step == INT64_MIN || __builtin_sub_overflow(limit, start, &length)) {
    return Unsupported(absl::StrCat("a range from ", start, " to ", limit, " in steps of ", step));
  }
  const bool empty = step > 0 ? length <= 0 : length >= 0;
  const int64_t count = empty ? 0 : (length - (step > 0 ? 1 : -1)) / step + 1;
  HONE_RETURN_IF_ERROR(CheckConstantSize({count}));
  NdArray array(dtype, {count});
  for (int64_t i = 0; i < count; ++i) array.SetInt(i, start + i * step);
  return c.AddConstant(std::move(array));
}

absl::StatusOr<int> FloatRange(NodeContext& c, DType dtype) {
  HONE_ASSIGN_OR_RETURN(const double start, c.Number(0, "the start"));
  HONE_ASSIGN_OR_RETURN(const double limit, c.Number(1, "the limit"));
  HONE_ASSIGN_OR_RETURN(const double step, c.Number(2, "the step"));
  const double count = std::max(0.0, std::ceil((limit - start) / step));
  if (!(count <= 0x1p28))
    return Unsupported(absl::StrCat("a range from ", start, " to ", limit, " in steps of ", step));
  NdArray array(dtype, {static_cast<int64_t>(count)});
  for (int64_t i = 0; i < array.NumElements(); ++i) array.Set(i, start + static_cast<double>(i) * step);
  return c.AddConstant(std::move(array));
}

Outputs Range(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(3, 3));
  const DType dtype = c.type(c.input(0)).dtype;
  if (dtype.is_bool()) return Unsupported("a range of bools");
  return One(dtype.is_int() ? IntRange(c, dtype) : FloatRange(c, dtype));
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
  return std::vector<int>{c.IntVector(part)};
}

Outputs Size(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 1));
  return std::vector<int>{List<int64_t>(c, kInt64, {*NumElements(c.shape(c.input(0)))}, true)};
}

Outputs Reshape(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(2, 2));
  const Ints from = c.shape(c.input(0));
  HONE_ASSIGN_OR_RETURN(Ints shape, c.Ints(1, "the shape"));
  const bool allow_zero = c.IntAttr("allowzero", 0) != 0;
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

Outputs Slice(NodeContext& c) {
  const bool as_inputs = c.opset() >= 10;
  HONE_RETURN_IF_ERROR(c.NeedInputs(as_inputs ? 3 : 1, as_inputs ? 5 : 1));
  const Ints shape = c.shape(c.input(0));
  Ints begins = c.IntsAttr("starts"), ends = c.IntsAttr("ends"), axes = c.IntsAttr("axes"), strides;
  if (as_inputs) {
    HONE_ASSIGN_OR_RETURN(begins, c.Ints(1, "starts"));
    HONE_ASSIGN_OR_RETURN(ends, c.Ints(2, "ends"));
    if (c.HasInput(3)) { HONE_ASSIGN_OR_RETURN(axes, c.Ints(3, "axes")); }
    if (c.HasInput(4)) { HONE_ASSIGN_OR_RETURN(strides, c.Ints(4, "steps")); }
  }
  if (axes.empty()) {
    axes.resize(begins.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (strides.empty()) strides.assign(begins.size(), 1);
  HONE_ASSIGN_OR_RETURN(axes, c.Axes(axes, c.rank(c.input(0))));
  if (ends.size() != begins.size() || axes.size() != begins.size() || strides.size() != begins.size()) {
    return Unsupported("starts, ends, axes and steps differ in length");
  }
  Ints starts(shape.size(), 0), sizes = shape, steps(shape.size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t n = shape[axes[i]], step = strides[i];
    if (step == 0 || step == INT64_MIN) return Unsupported(absl::StrCat("a step of ", step));
    const auto bound = [&](int64_t at, int64_t least, int64_t most) {
      return std::clamp(at < 0 ? at + n : at, least, most);
    };
    int64_t begin = 0, size = 0;
    if (step > 0) {
      begin = bound(begins[i], 0, n);
      const int64_t end = bound(ends[i], 0, n);
      size = end > begin ? (end - begin - 1) / step + 1 : 0;
    } else {
      begin = bound(begins[i], -1, n - 1);
      const int64_t end = bound(ends[i], -1, n - 1);
      size = begin > end ? (begin - end - 1) / -step + 1 : 0;
    }
    starts[axes[i]] = size == 0 ? 0 : begin;
    sizes[axes[i]] = size;
    steps[axes[i]] = size <= 1 ? 1 : step;
  }
  if (sizes == shape && std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 1; }))
    return std::vector<int>{c.input(0)};
  return One(c.Emit("slice", {c.input(0)}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}}));
}

Outputs Split(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, c.opset() >= 13 ? 2 : 1));
  HONE_ASSIGN_OR_RETURN(const int64_t axis, c.Axis(c.IntAttr("axis", 0), c.rank(c.input(0))));
  const int64_t extent = c.shape(c.input(0))[axis];
  Ints sizes = c.IntsAttr("split");
  if (c.HasInput(1)) { HONE_ASSIGN_OR_RETURN(sizes, c.Ints(1, "the sizes")); }
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
  HONE_ASSIGN_OR_RETURN(const Ints wanted, c.Ints(1, "the shape"));
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
  HONE_ASSIGN_OR_RETURN(const Ints repeats, c.Ints(1, "repeats"));
  if (std::all_of(repeats.begin(), repeats.end(), [](int64_t r) { return r == 1; }))
    return std::vector<int>{c.input(0)};
  return One(c.Emit("tile", {c.input(0)}, {{"repeats", repeats}}));
}

Outputs Pad(NodeContext& c) {
  const bool as_inputs = c.opset() >= 11;
  HONE_RETURN_IF_ERROR(c.NeedInputs(as_inputs ? 2 : 1, as_inputs ? 4 : 1));
  const int rank = c.rank(c.input(0));
  Ints pads = c.IntsAttr("pads"), axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  double value = c.FloatAttr("value", 0);
  if (as_inputs) {
    HONE_ASSIGN_OR_RETURN(pads, c.Ints(1, "the pads"));
    if (c.HasInput(2)) { HONE_ASSIGN_OR_RETURN(value, c.Number(2, "the padding value")); }
    if (c.HasInput(3)) {
      HONE_ASSIGN_OR_RETURN(axes, c.Ints(3, "axes"));
      HONE_ASSIGN_OR_RETURN(axes, c.Axes(axes, rank));
    }
  }
  if (pads.size() != 2 * axes.size())
    return Unsupported(absl::StrCat(pads.size(), " pads for ", axes.size(), " dimensions"));
  Ints before(rank, 0), after(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    before[axes[i]] = pads[i];
    after[axes[i]] = pads[axes.size() + i];
  }
  return One(
      c.Emit("pad", {c.input(0)},
             {{"before", before}, {"after", after}, {"mode", c.StringAttr("mode", "constant")}, {"value", value}}));
}

Outputs Trilu(NodeContext& c) {
  HONE_RETURN_IF_ERROR(c.NeedInputs(1, 2));
  int64_t k = 0;
  if (c.HasInput(1)) { HONE_ASSIGN_OR_RETURN(k, c.Int(1, "k")); }
  return One(c.Emit("trilu", {c.input(0)},
                    {{"upper", c.IntAttr("upper", 1)}, {"k", std::clamp<int64_t>(k, -(1 << 30), 1 << 30)}}));
}

constexpr OnnxOperator kOperators[] = {
    {"Concat", 4, Concat},   {"Constant", 1, Constant},   {"ConstantOfShape", 9, ConstantOfShape},
    {"Dropout", 7, Dropout}, {"Expand", 8, Expand},       {"EyeLike", 9, EyeLike},
    {"Flatten", 1, Flatten}, {"Identity", 1, Identity},   {"Pad", 2, Pad},
    {"Range", 11, Range},    {"Reshape", 5, Reshape},     {"Shape", 1, Shape},
    {"Size", 1, Size},       {"Slice", 1, Slice},         {"Split", 2, Split},
    {"Squeeze", 1, Squeeze}, {"Tile", 6, Tile},           {"Transpose", 1, Transpose},
    {"Trilu", 14, Trilu},    {"Unsqueeze", 1, Unsqueeze},
};

}  // namespace

std::span<const OnnxOperator> ShapeOperators() { return kOperators; }

}  // namespace hone
