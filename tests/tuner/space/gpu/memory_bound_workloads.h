// Kernels that memory bounds: transposes, rows, reductions along and across memory, chains; at sizes that no tile,
// vector or number of threads divides, and of narrow types.
#pragma once

#include <vector>

#include "tests/compiler/schedule/workload_table.h"

namespace hone::testing {

PrimFunc Transposed(const std::vector<int64_t>& shape, const std::vector<int64_t>& order, DType type = kFloat32);

std::vector<SmallWorkload> MemoryBoundWorkloads();

}  // namespace hone::testing
