// Shape functions that many operators share, for their OpInfo.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/graph/op.h"

namespace hone {

using Types = std::vector<TensorType>;
using TypeSpan = std::span<const TensorType>;
using TensorSpan = std::span<const te::Tensor>;

// Refuses with the operator's words: Refuse("conv: ", 3, " channels").
template <class Part>
const Part& ForStrCat(const Part& part) {
  return part;
}
inline absl::string_view ForStrCat(const std::string_view& part) { return {part.data(), part.size()}; }
template <class... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(ForStrCat(parts)...));
}
// InvalidArgument unless there are so many inputs.
absl::Status ExpectInputs(TypeSpan inputs, size_t count);
// The shape both broadcast to, numpy's way.
absl::StatusOr<std::vector<int64_t>> BroadcastShapes(const std::vector<int64_t>& a, const std::vector<int64_t>& b);
// The shape after a reduction over these axes.
std::vector<int64_t> ReducedShape(const std::vector<int64_t>& shape, const std::vector<int64_t>& axes, bool keepdims);
// The type of a product's sums. Operands are of one floating type, or integers of 8 or 16 bits, whatever their signs.
absl::StatusOr<DType> SumOfProducts(const TensorType& a, const TensorType& b);
// Axes from the attribute `name`, checked against the rank: in range, no duplicates, sorted.
absl::StatusOr<std::vector<int64_t>> CheckedAxes(const Attrs& attrs, std::string_view name, int rank);
// One axis from the attribute "axis".
absl::StatusOr<int64_t> CheckedAxis(const Attrs& attrs, int rank);
// Product of extents as a double, for counting.
double Count(const std::vector<int64_t>& shape);
// Product of the extents [from, to) of one checked shape, which does not overflow.
int64_t ProductOfExtents(const std::vector<int64_t>& shape, size_t from, size_t to);

// f along the attribute "axis", of the type and shape of its input.
OpInfo AlongAxisOp(std::string_view name, OpKind kind, double flop_per_element,
                   std::function<te::Tensor(const te::Tensor&, int64_t axis, const Attrs&)> f, bool needs_float = true);

}  // namespace hone
