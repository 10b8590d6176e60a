// Workloads large enough for rules that the table of small ones is too small for: long reductions, rows of several
// vectors.
#pragma once

#include <vector>

#include "tests/compiler/schedule/workload_table.h"

namespace hone::testing {

std::vector<SmallWorkload> LargerWorkloads();

}  // namespace hone::testing
