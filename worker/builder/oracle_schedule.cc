#include "worker/builder/oracle_schedule.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/visit.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Does `step` where it is allowed.
void Try(Schedule& schedule, const std::function<absl::Status(Schedule&)>& step) {
  Schedule attempt = schedule;
  if (step(attempt).ok()) schedule = std::move(attempt);
}

// Of the loops around a block, those over elements of its output; the others are over terms.
absl::StatusOr<std::vector<LoopRef>> SpatialLoops(const Schedule& schedule, BlockRef block,
                                                  const std::vector<LoopRef>& loops) {
  HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, schedule.FindBlock(block));
  std::vector<LoopRef> spatial;
  for (const LoopRef loop : loops) {
    HONE_ASSIGN_OR_RETURN(const For* found, schedule.FindLoop(loop));
    bool of_terms = false;
    for (size_t i = 0; i < realize->values.size(); ++i)
      of_terms |= realize->block.iters[i].kind != IterKind::kSpatial && UsesVar(realize->values[i], found->var);
    if (!of_terms) spatial.push_back(loop);
  }
  return spatial;
}

// Elements, terms, and the innermost elements.
absl::Status TermsAroundElements(Schedule& schedule, BlockRef block) {
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, GetLoops(schedule, block));
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> order, SpatialLoops(schedule, block, loops));
  if (order.empty() || order.size() == loops.size()) return absl::OkStatus();
  const LoopRef innermost = order.back();
  order.pop_back();
  LoopRef first_term;
  bool terms = false;
  for (const LoopRef loop : loops) {
    if (loop == innermost || std::ranges::find(order, loop) != order.end()) continue;
    if (!std::exchange(terms, true)) first_term = loop;
    order.push_back(loop);
  }
  order.push_back(innermost);
  HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  return DecomposeReduction(schedule, block, first_term).status();
}

absl::Status ShareOutermost(Schedule& schedule, BlockRef block) {
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, GetLoops(schedule, block));
  return loops.empty() ? absl::OkStatus() : Parallel(schedule, loops[0]);
}

}  // namespace

absl::StatusOr<PrimFunc> ScheduleOracle(const PrimFunc& oracle) {
  Schedule schedule(oracle);
  std::vector<std::string> names;
  ForEachStmt(oracle.body, [&](const Stmt& stmt) {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize != nullptr && !realize->block.iters.empty()) names.push_back(realize->block.name);
    return true;
  });
  for (const std::string& name : names) {
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, name));
    Try(schedule, [&](Schedule& s) { return TermsAroundElements(s, block); });
    Try(schedule, [&](Schedule& s) { return ShareOutermost(s, block); });
  }
  return schedule.Program().main;
}

}  // namespace hone
