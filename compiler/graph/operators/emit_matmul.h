// numpy's matmul in terms of dense and batch_matmul: shared by the operators that are products.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/graph/operators/node_context.h"

namespace hone {

// Left operands of many dimensions times a matrix become one product of matrices; batch dimensions become one where
// they can.
absl::StatusOr<int> EmitMatmul(NodeContext& context, int a, int b);

}  // namespace hone
