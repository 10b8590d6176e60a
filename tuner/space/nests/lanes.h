// How many lanes the vectors along a variable have.
#pragma once

#include "compiler/target/target.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {

// A power of two that suits the variable's extent, at most what the target has; and where a read moves by groups of the
// variable, what fits into one, as long as that is still a long vector: all its lanes read one element then. -1: 1.
int LanesFor(const Target& target, const BlockInfo& block, int iter);

}  // namespace hone
