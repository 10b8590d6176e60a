// The list of rules, how they are asked, and what they share.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/decompose_reduction.h"
#include "compiler/schedule/locate.h"
#include "compiler/schedule/loop_kind.h"
#include "compiler/schedule/reorder.h"
#include "compiler/schedule/rfactor.h"
#include "compiler/schedule/set_scope.h"
#include "compiler/schedule/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/sketch.h"

namespace hone {

bool SketchStep::Plan(std::span<const int64_t>, SketchPlan&) const { return true; }
std::optional<double> SketchStep::Cost(std::span<const int64_t>, const SketchPlan&) const { return 0; }

const std::vector<std::unique_ptr<SketchRule>>& SketchRules() {
  static const auto* rules = [] {
    auto* list = new std::vector<std::unique_ptr<SketchRule>>;
    list->push_back(MakePackRule());
    list->push_back(MakePartialRule());
    list->push_back(MakeFuseConsumerRule());
    list->push_back(MakeCacheWriteRule());
    list->push_back(MakeTileRule());
    list->push_back(MakeRowsRule());
    list->push_back(MakePiecesRule());
    list->push_back(MakeLocateRule());
    list->push_back(MakeOwnNestRule());
    list->push_back(MakeParallelRule());
    return list;
  }();
  return *rules;
}

std::vector<Sketch> DeriveSketches(const SketchContext& context) {
  Sketch start;
  start.blocks.resize(context.info->blocks.size());
  std::vector<Sketch> sketches{std::move(start)};
  for (const auto& rule : SketchRules()) {
    for (int block = static_cast<int>(context.info->blocks.size()) - 1; block >= 0; --block) {
      std::vector<Sketch> next;
      for (Sketch& sketch : sketches) {
        std::vector<Sketch> offers = rule->Offer(context, sketch, block);
        if (offers.empty()) offers.push_back(std::move(sketch));
        next.insert(next.end(), std::make_move_iterator(offers.begin()), std::make_move_iterator(offers.end()));
      }
      // Forks of the block come before those of the ones before it, so that what is cut off has most in common with
      // what stays.
      if (next.size() > kMostSketches) next.resize(kMostSketches);
      sketches = std::move(next);
    }
  }
  return sketches;
}

bool WillBeTiled(const SketchContext& context, const Sketch& sketch, int block) {
  return sketch.at(block).fate == SketchBlock::Fate::kOpen && IsTileable(context.block(block)) &&
         context.block(block).iters.size() <= kMostIters;
}

int LanesFor(const Target& target, const BlockInfo& block, int iter) {
  const int native = target.lanes(std::max(32, static_cast<int>(block.output.type().bits)));
  int lanes = 1;
  while (iter >= 0 && lanes < native && lanes < block.extents[static_cast<size_t>(iter)]) lanes *= 2;
  return lanes;
}

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

Choice ChoiceOf(const std::vector<Knob>& knobs, std::span<const int64_t> values) {
  Choice choice;
  for (size_t k = 0; k < values.size(); ++k) {
    const std::vector<int64_t>& candidates = knobs[k].candidates;
    choice.push_back(static_cast<int>(std::find(candidates.begin(), candidates.end(), values[k]) - candidates.begin()));
  }
  return choice;
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
  if (order.size() > 1) HONE_RETURN_IF_ERROR(DecomposeReduction(schedule, partial, order[0]).status());
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> gather, GetLoops(schedule, block));
  HONE_RETURN_IF_ERROR(DecomposeReduction(schedule, block, gather.back()).status());
  return Unroll(schedule, gather.back());
}

}  // namespace hone
