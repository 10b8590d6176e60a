// blockize: a loop and what is in it become a block of their own, whose instances are tiles.
//   for i0: for i1 in [0, 16): B(vi = i0*16 + i1)
//   =>  for i0: with block B_o (vi_o = i0): { init of the tile;  for i1: B(vi = vi_o*16 + i1) }
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct BlockizeStep {
  LoopRef loop;
  static constexpr StepInfo kInfo{"blockize", OutputKind::kBlock};
  static constexpr auto Fields() { return std::tuple(Field("target", &BlockizeStep::loop)); }
};
absl::Status Apply(Schedule& schedule, const BlockizeStep& step);

// Gives the new block, NAME_o. The loops inside and the block keep their refs; an init moves to the new block, as loops
// over what a tile writes. A tile at the edge, where a split does not divide, is smaller. Refused: what DivideBlock
// refuses.
absl::StatusOr<BlockRef> Blockize(Schedule& schedule, LoopRef loop);

}  // namespace hone
