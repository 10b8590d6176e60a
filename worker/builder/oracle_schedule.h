// How an oracle is run: plainly, which is what makes it one, but by all threads there are and along memory.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"

namespace hone {

// Of every block: the elements of its outermost loops are shared among threads, and a sum's terms go around the
// innermost elements, which lie beside one another. What a block refuses of that is left out. Errors as of GetLoops.
absl::StatusOr<PrimFunc> ScheduleOracle(const PrimFunc& oracle);

}  // namespace hone
