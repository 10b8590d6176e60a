// decompose_padding: a block that pads becomes two: one fills everything with the padding's constant, the other copies
// what lies inside, without a condition.
//   for i in [0, 12): P[i] = if_then_else(2 <= i < 10, A[i - 2], 0)
//   =>  for i in [0, 12): P[i] = 0;   for i in [0, 8): P[i + 2] = A[i]
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct DecomposePaddingStep {
  BlockRef block;
  LoopRef loop;
  static constexpr StepInfo kInfo{.name = "decompose_padding", .output = OutputKind::kBlock};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &DecomposePaddingStep::block), Field("loop", &DecomposePaddingStep::loop));
  }
};
absl::Status Apply(Schedule& schedule, const DecomposePaddingStep& step);

// Gives the filling block, NAME_pad_const, which stands in front of `loop` in copies of the loops from there on. Where
// a variable is one of these loops and nothing else, the loop shrinks to the part inside; elsewhere the condition
// becomes the block's predicate. Refused: a block that does not store if_then_else(condition, value, constant), one
// whose instances share elements, a loop that is not around it or that runs other blocks which write the buffer or may
// read what was in it before, a condition that never holds or that reads memory.
absl::StatusOr<BlockRef> DecomposePadding(Schedule& schedule, BlockRef block, LoopRef loop);

}  // namespace hone
