// Small programs that no operator library makes: lets, matched buffers, several stores in a block, conditions, loops
// and blocks inside blocks, several writers of one buffer. All are exact on small integers.
#pragma once

#include <vector>

#include "tests/compiler/schedule/workload_table.h"

namespace hone::testing {

// Made once, the same on every call.
const std::vector<SmallWorkload>& HandWrittenWorkloads();

}  // namespace hone::testing
