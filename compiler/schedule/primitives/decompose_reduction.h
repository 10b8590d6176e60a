// decompose_reduction: the init of a reduction becomes a block of its own, in front of a loop.
//   for i: for k: C[i] (init 0) += A[i, k]   =>   for i: { C[i] = 0;  for k: C[i] += A[i, k] }
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct DecomposeReductionStep {
  BlockRef block;
  LoopRef loop;
  static constexpr StepInfo kInfo{"decompose_reduction", OutputKind::kBlock};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &DecomposeReductionStep::block), Field("loop", &DecomposeReductionStep::loop));
  }
};
absl::Status Apply(Schedule& schedule, const DecomposeReductionStep& step);

// Gives the init block, NAME_init, whose loops copy those of the block's spatial variables at and below `loop`, with
// their kinds (a vectorized or unrolled loop stays so). Refused: a block without init, a loop that is not around it,
// and a reduce loop outside `loop` (the init would then run again in its every iteration).
absl::StatusOr<BlockRef> DecomposeReduction(Schedule& schedule, BlockRef block, LoopRef loop);

}  // namespace hone
