#include "tuner/space/nests/nest_loops.h"

#include "compiler/ir/visit.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/rfactor.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<std::vector<std::optional<LoopRef>>> LoopsOfIters(const Schedule& schedule, BlockRef block,
                                                                 std::span<const LoopRef> loops) {
  HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, schedule.FindBlock(block));
  std::vector<std::optional<LoopRef>> found(realize->values.size());
  for (const LoopRef ref : loops) {
    HONE_ASSIGN_OR_RETURN(const For* loop, schedule.FindLoop(ref));
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i].has_value() && UsesVar(realize->values[i], loop->var)) found[i] = ref;
    }
  }
  return found;
}

absl::StatusOr<std::vector<std::optional<LoopRef>>> LoopsOfIters(Schedule& schedule, BlockRef block) {
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, GetLoops(schedule, block));
  return LoopsOfIters(schedule, block, loops);
}

absl::Status VectorizeInnermost(Schedule& schedule, BlockRef block, size_t outer, int lanes, bool unroll) {
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, GetLoops(schedule, block));
  if (loops.size() <= outer) return absl::OkStatus();
  loops.erase(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(outer));
  if (lanes > 1) {
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, loops.back(), {-1, lanes}));
    HONE_RETURN_IF_ERROR(Vectorize(schedule, parts[1]));
    loops.back() = parts[0];
  }
  if (!unroll) return absl::OkStatus();
  for (const LoopRef loop : loops) HONE_RETURN_IF_ERROR(Unroll(schedule, loop));
  return absl::OkStatus();
}

absl::StatusOr<BlockRef> SplitIntoLanes(Schedule& schedule, BlockRef block, LoopRef along, int64_t width) {
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, along, {-1, width}));
  HONE_ASSIGN_OR_RETURN(const BlockRef partial, Rfactor(schedule, parts[1], -1));
  HONE_RETURN_IF_ERROR(SetScope(schedule, partial, 0, Scope::kRegister));
  return partial;
}

absl::Status FinishLanes(Schedule& schedule, BlockRef block, BlockRef partial, size_t outer, int64_t vectors,
                         int lanes) {
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> order, GetLoops(schedule, partial));
  order.erase(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(outer));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<LoopRef>> by_iter, LoopsOfIters(schedule, partial, order));
  if (!by_iter[0].has_value()) return absl::InternalError("the partial results have no loop over their lanes");
  const LoopRef lane = *by_iter[0];  // rfactor's own variable comes first
  std::erase(order, lane);
  order.push_back(lane);
  if (order.size() > 1) HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> tile, Split(schedule, lane, {vectors, lanes}));
  HONE_RETURN_IF_ERROR(Unroll(schedule, tile[0]));
  HONE_RETURN_IF_ERROR(Vectorize(schedule, tile[1]));
  HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, schedule.FindBlock(partial));
  const bool adds_up = static_cast<bool>(realize->block.init);  // else each partial result is one term
  if (adds_up) HONE_RETURN_IF_ERROR(DecomposeReduction(schedule, partial, order[0]).status());
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> gather, GetLoops(schedule, block));
  HONE_RETURN_IF_ERROR(DecomposeReduction(schedule, block, gather.back()).status());
  return Unroll(schedule, gather.back());
}

absl::Status FuseAndParallel(Schedule& schedule, std::vector<LoopRef> loops) {
  LoopRef loop = loops.front();
  if (loops.size() > 1) { HONE_ASSIGN_OR_RETURN(loop, Fuse(schedule, std::move(loops))); }
  return Parallel(schedule, loop);
}

}  // namespace hone
