// Whether the lanes of a vectorised loop may run at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"

namespace hone {

// What stands around a loop: the loops, outermost first, and the conditions that hold.
struct AroundLoop {
  std::vector<For> loops;
  std::vector<Expr> conditions;
};

// Two accesses of the body that vectors would run in another order than the loop does, in words that name both and a
// lane of each; nullopt when there are none. Buffers are flat. The extent of the loop is a constant.
//
// Vectors run one access of all lanes before the next access of any. That is wrong where a lane
//   - reads an element that it has not written itself and another lane writes,
//   - adds to an element after another lane has added to it,
//   - writes an element last in the loop, and another lane does with vectors, by another store, which is not known to
//     write the same value.
// Lanes that compute an element each for itself, as those of overlapping windows do, all write the same there.
//
// An answer that is not nullopt is a proof, unless it says "may": the accesses are followed through one execution of
// the loop, a lane at a time, at most 20,000 of them. Where indices, conditions or bounds cannot be computed, strides
// alone decide.
std::optional<std::string> LaneConflict(const For& loop, const AroundLoop& around);

}  // namespace hone
