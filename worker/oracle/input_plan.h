// Which values a task is verified on: kinds that show what the operations of its program are prone to get wrong.
//
//   every program          uniform values and small integers; of a sum of products these show nearly every wrong
//                          element. Large values, peaks, patterns, and values that rise and that fall come after them
//   functions, quotients   large values and peaks in any case: an exponential that runs over, a variance lost to
//                          cancellation, a wrong rounding of large numbers
//   a choice of one of     likewise: a maximum over too few elements is right unless the largest is missing
//   many (max, argmax)
#pragma once

#include <vector>

#include "compiler/interp/random_input.h"
#include "compiler/ir/stmt.h"

namespace hone {

inline constexpr int kMostInputSets = 48;

struct InputPlan {
  std::vector<InputKind> kinds;  // of each set, the most telling first
  int least = 2;                 // so many sets in any case, the others where the task's oracle is fast
};

// At most kMostInputSets. Small tensors say little, but sets of them cost next to nothing: there are many, and all of
// them count.
InputPlan PlanInputs(const PrimFunc& workload);

}  // namespace hone
