// From the plan of a nest to the steps of a schedule.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"
#include "tuner/space/nests/nest_context.h"
#include "tuner/space/nests/nest_plan.h"

namespace hone {

// Packs the operands, cuts the reduction, tiles the block and moves its epilogue to the tile. `plan` is one that
// NestModel takes for legal. Gives the loops over pieces, outermost first, for producers to move into and for the pool
// to share out; they are serial still. With NestShape::pieces_of they are `pieces`, the outer loops of that block, and
// the nest goes inside them.
absl::StatusOr<std::vector<LoopRef>> BuildNest(Schedule& schedule, const NestContext& context, int block,
                                               const NestShape& shape, const NestPlan& plan,
                                               std::vector<LoopRef> pieces);

}  // namespace hone
