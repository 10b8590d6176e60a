// Constants, and what is one as soon as shapes are known.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/graph/operators/node_context.h"
#include "compiler/graph/operators/operator.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

using Ints = std::vector<int64_t>;

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

}  // namespace

HONE_OPERATORS(constants) {
  return {{.onnx = {
               {"Constant", 1, Constant},
               {"ConstantOfShape", 9, ConstantOfShape},
               {"EyeLike", 9, EyeLike},
           }}};
}

}  // namespace hone
