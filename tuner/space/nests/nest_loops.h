// Finding and shaping the loops around a block: what the builders of nests share.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"

namespace hone {

// For every iteration variable of a block the first of `loops`, some of those around it, that it is made of; absent
// where it has none (one iteration).
absl::StatusOr<std::vector<std::optional<LoopRef>>> LoopsOfIters(const Schedule& schedule, BlockRef block,
                                                                 std::span<const LoopRef> loops);
// Of all the loops around it.
absl::StatusOr<std::vector<std::optional<LoopRef>>> LoopsOfIters(Schedule& schedule, BlockRef block);
// Vectorises the innermost loop, lanes at a time, where it is at depth `outer` or deeper; `unroll`: and unrolls those
// around it from that depth on.
absl::Status VectorizeInnermost(Schedule& schedule, BlockRef block, size_t outer, int lanes, bool unroll);
// Partial results of a reduction in vector lanes: splits `along` by `width`, which is at most its extent. Gives the
// block of the partial results, which may now be moved; FinishLanes then vectorises it below depth `outer` of its
// loops.
absl::StatusOr<BlockRef> SplitIntoLanes(Schedule& schedule, BlockRef block, LoopRef along, int64_t width);
absl::Status FinishLanes(Schedule& schedule, BlockRef block, BlockRef partial, size_t outer, int64_t vectors,
                         int lanes);
// Fuses the loops (at least one) and runs the result in parallel.
absl::Status FuseAndParallel(Schedule& schedule, std::vector<LoopRef> loops);

}  // namespace hone
