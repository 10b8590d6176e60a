// What the calls of a graph function (compiler/ir/module.h) say in place of tensors: numbers, texts, lists, arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "compiler/array/ndarray.h"
#include "compiler/graph/operators/onnx_node.h"
#include "compiler/ir/module.h"
#include "compiler/ir/symbolic_sizes.h"

namespace hone {

template <class... Parts>
absl::Status Unclear(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Integers: R.shape([1, n]), R.prim_value(3), a literal, a list of those. nullopt when it is something else.
std::optional<std::vector<int64_t>> IntegersIn(const GraphExpr& e, const SizeValues& sizes);
// A number that is no integer: R.prim_value(0.5), 0.5.
std::optional<double> NumberIn(const GraphExpr& e);

// What either of them finds, as int64 or float64: a scalar, a shape, or a list that is not empty.
std::optional<NdArray> NumbersIn(const GraphExpr& e, const SizeValues& sizes);

// A named argument as an attribute; nullopt for None, which is as if it were left out.
absl::StatusOr<std::optional<OnnxAttribute>> AttributeOf(const GraphExpr& e, const SizeValues& sizes);

// R.const([[1, 2], [3, 4]], "float32")
absl::StatusOr<NdArray> ArrayOf(const TensorConstant& constant);

}  // namespace hone
