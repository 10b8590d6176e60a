// split: one loop becomes a nest.
//   for i in [0, n): S(i)   =>   for o in [0, ceil(n/f)): for v in [0, f): S(o*f + v)      where o*f + v < n
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct SplitStep {
  LoopRef loop;
  std::vector<Value> factors;
  static constexpr StepInfo kInfo{.name = "split", .output = OutputKind::kLoop, .gives_list = true};
  static constexpr auto Fields() {
    return std::tuple(Field("loop", &SplitStep::loop), Field("factors", &SplitStep::factors));
  }
};
absl::Status Apply(Schedule& schedule, const SplitStep& step);

// Factors are the extents of the new loops, outermost first; at most one may be absent and is then the smallest that
// covers the loop. Where the product is larger than the extent every block inside gets a predicate. Refused: a factor
// below 1, a product that does not cover the loop, a loop that is not serial, a loop that does not start at 0
// (normalise it first), two absent factors.
absl::StatusOr<std::vector<LoopRef>> Split(Schedule& schedule, LoopRef loop, std::vector<Value> factors);

}  // namespace hone
