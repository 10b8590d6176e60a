// Whether the blocks of a launch write to one element: nothing orders blocks, so that even equal values are a race.
#pragma once

#include <optional>
#include <string>

#include "compiler/ir/stmt.h"

namespace hone {

// What two blocks of the launch `nest` write both, in words, where that is certain: "B[0, 4] is written by several
// blocks (blockIdx.x = 0 and 1)". Neighbouring blocks are looked at, the first two of each axis and two in its middle
// (those at an end may be all padding), with all that their threads do; stores with more than some thousand iterations,
// with indices or conditions that cannot be computed from loops alone, and atomic updates are passed over.
std::optional<std::string> BlockConflict(const Stmt& nest);

}  // namespace hone
