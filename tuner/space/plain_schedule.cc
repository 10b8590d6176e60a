// The schedule that is right at all sizes, for workloads of which the fast ones of one size are not.
#include <functional>
#include <string>
#include <utility>

#include "compiler/ir/visit.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/default_schedule.h"

namespace hone {
namespace {

// Does `step` where it is allowed, and says whether it was.
bool Try(Schedule& schedule, const std::function<absl::Status(Schedule&)>& step) {
  Schedule attempt = schedule;
  if (!step(attempt).ok()) return false;
  schedule = std::move(attempt);
  return true;
}

}  // namespace

absl::StatusOr<Trace> PlainTrace(const PrimFunc& workload) {
  constexpr int kLanes = 16;
  Schedule schedule(workload);
  std::vector<std::string> names;
  ForEachStmt(workload.body, [&](const Stmt& stmt) {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize != nullptr && !realize->block.iters.empty()) names.push_back(realize->block.name);
    return true;
  });
  for (const std::string& name : names) {
    HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, name));
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, GetLoops(schedule, block));
    if (loops.empty()) continue;
    Try(schedule, [&](Schedule& s) -> absl::Status {
      HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(s, loops.back(), {-1, kLanes}));
      if (loops.size() == 1) { HONE_RETURN_IF_ERROR(Parallel(s, parts[0])); }
      return Vectorize(s, parts[1]);
    });
    for (size_t outer = loops.size() - 1; outer > 0; --outer) {  // as many as can be one loop
      const bool done = Try(schedule, [&](Schedule& s) -> absl::Status {
        HONE_ASSIGN_OR_RETURN(const LoopRef all, Fuse(s, {loops.begin(), loops.begin() + static_cast<int64_t>(outer)}));
        return Parallel(s, all);
      });
      if (done) break;
    }
  }
  return schedule.trace();
}

}  // namespace hone
