// rfactor: a reduction in two: partial results along one of its loops, then the reduction of those.
//   for k0: for k1: C[i] += A[i, k0, k1]   =>   for k0: for k1: C_rf[k0, i] += A[i, k0, k1]
//                                               for k0: C[i] += C_rf[k0, i]
// A reduction to a tuple, such as argmax's value and index, gets a buffer of partial results for each of its parts.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct RfactorStep {
  LoopRef loop;
  int64_t factor_axis = 0;
  static constexpr StepInfo kInfo{"rfactor", OutputKind::kBlock};
  static constexpr auto Fields() {
    return std::tuple(Field("loop", &RfactorStep::loop), Field("factor_axis", &RfactorStep::factor_axis));
  }
};
absl::Status Apply(Schedule& schedule, const RfactorStep& step);

// Gives the block of the partial results, NAME_rf, in which the loop's variable is spatial and is dimension
// `factor_axis` of the new buffers (negative counts from the end). Refused: a loop that is not a reduce loop of exactly
// one block, an update that MatchReduction (../analysis/reduction.h) does not know, a block without init.
absl::StatusOr<BlockRef> Rfactor(Schedule& schedule, LoopRef loop, int factor_axis);

}  // namespace hone
