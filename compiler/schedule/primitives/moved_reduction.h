// What reverse_compute_at asks of a block that reduces, besides what it asks of every block.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/primitives/moved_block.h"

namespace hone {

// OK when `nest`, the block in its new place over `parts` of its domains, gives every element the sum that it had:
// - one iteration of the loop covers all of the reduction, or
// - it covers a part of it, every term is in the part of exactly one iteration, and the parts come in rising order, so
//   that the init, which goes with the first instance of the reduction, comes before all others.
// Iterations that may run at the same time must not reduce to one element. Refused says which loop or variable it is.
absl::Status CheckMovedReduction(const ProgramIndex& index, const Move& move, const std::vector<Part>& parts,
                                 const std::vector<Range>& ranges, const Stmt& nest);

}  // namespace hone
