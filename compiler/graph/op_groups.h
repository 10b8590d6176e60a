// The groups op.cc makes its table of, one op_*.cc each, and what their inference functions share.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/graph/op.h"

namespace hone {

std::vector<OpInfo> ElementwiseOps();
std::vector<OpInfo> MatrixOps();
std::vector<OpInfo> ImageOps();
std::vector<OpInfo> ReduceOps();  // also softmax, normalisations, running sums, top k
std::vector<OpInfo> MoveOps();

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
// The type of a product's sums. Operands are of one floating type, or integers of 8 or 16 bits, whatever their signs.
absl::StatusOr<DType> SumOfProducts(const TensorType& a, const TensorType& b);
// Axes from the attribute `name`, checked against the rank: in range, no duplicates, sorted.
absl::StatusOr<std::vector<int64_t>> CheckedAxes(const Attrs& attrs, std::string_view name, int rank);
// One axis from the attribute "axis".
absl::StatusOr<int64_t> CheckedAxis(const Attrs& attrs, int rank);
// Product of extents as a double, for counting.
double Count(const std::vector<int64_t>& shape);

}  // namespace hone
