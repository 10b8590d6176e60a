#include "compiler/graph/operators/op_shapes.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/support/status_macros.h"
#include "compiler/topi/product.h"

namespace hone {

absl::Status ExpectInputs(TypeSpan inputs, size_t count) {
  if (inputs.size() == count) return absl::OkStatus();
  return Refuse(inputs.size(), " inputs instead of ", count);
}

absl::StatusOr<std::vector<int64_t>> BroadcastShapes(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> shape(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < shape.size(); ++i) {  // from the last dimension
    const int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t db = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (da != db && da != 1 && db != 1) {
      return Refuse("the shapes [", absl::StrJoin(a, ", "), "] and [", absl::StrJoin(b, ", "), "] do not broadcast");
    }
    shape[shape.size() - 1 - i] = da == 1 ? db : da;
  }
  return shape;
}

std::vector<int64_t> ReducedShape(const std::vector<int64_t>& shape, const std::vector<int64_t>& axes, bool keepdims) {
  std::vector<int64_t> reduced;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool gone = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (!gone) reduced.push_back(shape[d]);
    if (gone && keepdims) reduced.push_back(1);
  }
  return reduced;
}

absl::StatusOr<DType> SumOfProducts(const TensorType& a, const TensorType& b) {
  const auto is_narrow = [](DType type) { return type.is_int() && type.bits <= 16; };
  if (is_narrow(a.dtype) && is_narrow(b.dtype)) return topi::SumType(a.dtype);
  if (a.dtype.is_float() && a.dtype == b.dtype) return topi::SumType(a.dtype);
  return Refuse("product of ", ToText(a), " and ", ToText(b),
                ": both must be of one floating type, or integers of 8 or 16 bits");
}

absl::StatusOr<std::vector<int64_t>> CheckedAxes(const Attrs& attrs, std::string_view name, int rank) {
  std::vector<int64_t> axes = IntsAttr(attrs, name);
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= rank) return Refuse("axis ", axes[i], " is outside the rank ", rank);
    if (i > 0 && axes[i] == axes[i - 1]) return Refuse("axis ", axes[i], " is named twice");
  }
  return axes;
}

absl::StatusOr<int64_t> CheckedAxis(const Attrs& attrs, int rank) {
  const int64_t axis = IntAttr(attrs, "axis");
  if (axis < 0 || axis >= rank) return Refuse("axis ", axis, " is outside the rank ", rank);
  return axis;
}

double Count(const std::vector<int64_t>& shape) {
  double product = 1;
  for (const int64_t extent : shape) product *= static_cast<double>(extent);
  return product;
}

int64_t ProductOfExtents(const std::vector<int64_t>& shape, size_t from, size_t to) {
  int64_t product = 1;
  for (size_t d = from; d < to; ++d) product *= shape[d];
  return product;
}

OpInfo AlongAxisOp(std::string_view name, OpKind kind, double flop_per_element,
                   std::function<te::Tensor(const te::Tensor&, int64_t, const Attrs&)> f, bool needs_float) {
  OpInfo op{.name = name, .kind = kind};
  op.infer = [name, needs_float](TypeSpan in, const Attrs& attrs) -> absl::StatusOr<Types> {
    HONE_RETURN_IF_ERROR(ExpectInputs(in, 1));
    if (in[0].dtype.is_bool() || (needs_float && !in[0].dtype.is_float()))
      return Refuse(name, " of elements of type ", ToText(in[0].dtype));
    HONE_RETURN_IF_ERROR(CheckedAxis(attrs, in[0].rank()).status());
    return Types{in[0]};
  };
  op.lower = [f](TensorSpan in, const Attrs& attrs, TypeSpan) {
    return std::vector{f(in[0], IntAttr(attrs, "axis"), attrs)};
  };
  op.flop = [flop_per_element](TypeSpan in, const Attrs&, TypeSpan) { return flop_per_element * Count(in[0].shape); };
  return op;
}

}  // namespace hone
