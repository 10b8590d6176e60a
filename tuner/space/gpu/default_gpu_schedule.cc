#include "tuner/space/gpu/default_gpu_schedule.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "compiler/schedule/primitives/inline.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/gpu/gpu_nests.h"

namespace hone {
namespace {

// What makes an operand of a product does so where that is copied to shared memory. A border is made again by every
// other reader: that costs less than another launch.
std::vector<int> ToInline(const WorkloadInfo& info) {
  const BlockFusion fusion(info);
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(info.blocks.size()); ++i) {
    const BlockInfo& block = info.blocks[static_cast<size_t>(i)];
    const std::vector<int> consumers = info.Consumers(i);
    const bool border = block.pads && block.single_store && !block.reduces && !block.writes_param &&
                        WritesAtItsOwnVariables(block) && consumers.size() == 1;
    if (!border && !fusion.IsInlined(i)) continue;
    if (std::ranges::none_of(consumers, [&](int c) { return IsGpuProduct(info, c); })) found.push_back(i);
  }
  return found;
}

absl::Status InlineAll(Schedule& schedule) {
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const WorkloadInfo info, AnalyzeWorkload(schedule.func()));
    const std::vector<int> blocks = ToInline(info);
    if (blocks.empty()) return absl::OkStatus();
    for (const int block : blocks) {
      HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, info.blocks[static_cast<size_t>(block)].name));
      HONE_RETURN_IF_ERROR(ComputeInline(schedule, ref));
    }
  }
}

// A way to schedule a block. Refused ones are passed over.
struct Attempt {
  GpuNest::Rule rule;
  std::function<absl::Status(Schedule&)> apply;
};

std::vector<Attempt> AttemptsFor(const GpuContext& context, int block) {
  std::vector<Attempt> attempts;
  if (const std::optional<ProductPlan> plan = PlanProduct(context, block)) {
    attempts.push_back({GpuNest::Rule::kProduct,
                        [&context, block, plan](Schedule& s) { return ScheduleProduct(s, context, block, *plan); }});
  }
  if (IsGpuReduction(context, block)) {
    attempts.push_back({GpuNest::Rule::kReduction,
                        [&context, block](Schedule& s) { return ScheduleGpuReduction(s, context, block); }});
  }
  attempts.push_back({GpuNest::Rule::kMap, [&context, block](Schedule& s) { return ScheduleMap(s, context, block); }});
  attempts.push_back({GpuNest::Rule::kOneThread, [](Schedule&) { return absl::OkStatus(); }});
  return attempts;
}

// Applies the first attempt that is not refused.
GpuNest Apply(const std::vector<Attempt>& attempts, const std::string& block, Schedule& schedule) {
  GpuNest nest{.block = block};
  for (const Attempt& attempt : attempts) {
    Schedule tried = schedule;
    const absl::Status status = attempt.apply(tried);
    if (status.ok()) {
      schedule = std::move(tried);
      nest.rule = attempt.rule;
      break;
    }
    nest.refused.emplace_back(status.message());
  }
  return nest;
}

// Whether a nest has taken the block in.
absl::StatusOr<bool> IsBound(Schedule& schedule, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const BlockRef block, GetBlock(schedule, name));
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> loops, GetLoops(schedule, block));
  if (loops.empty()) return false;
  HONE_ASSIGN_OR_RETURN(const For* outermost, schedule.FindLoop(loops[0]));
  return outermost->kind == ForKind::kThreadBinding;
}

}  // namespace

absl::StatusOr<GpuDefault> DefaultGpuSchedule(const PrimFunc& workload, const GpuTarget& target) {
  Schedule schedule(workload);
  HONE_RETURN_IF_ERROR(InlineAll(schedule));
  HONE_ASSIGN_OR_RETURN(const WorkloadInfo info, AnalyzeWorkload(schedule.func()));
  const BlockFusion fusion(info);
  const GpuContext context{info, fusion, target};
  GpuDefault made;
  if (const std::optional<RowsPlan> rows = PlanRows(context)) {
    Schedule tried = schedule;
    if (ScheduleRows(tried, context, *rows).ok()) {
      made.nests.push_back({.block = info.blocks.back().name, .rule = GpuNest::Rule::kRows});
      made.trace = tried.trace();
      return made;
    }
  }
  for (const bool reduces : {true, false}) {  // reductions take what makes their operands and what takes their results
    for (int i = 0; i < static_cast<int>(info.blocks.size()); ++i) {
      if (context.block(i).reduces != reduces) continue;
      HONE_ASSIGN_OR_RETURN(const bool taken, IsBound(schedule, context.block(i).name));
      if (!taken) made.nests.push_back(Apply(AttemptsFor(context, i), context.block(i).name, schedule));
    }
  }
  made.trace = schedule.trace();
  return made;
}

}  // namespace hone
