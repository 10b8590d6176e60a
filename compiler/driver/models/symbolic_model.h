// Models whose sizes the caller chooses in each run (--dim batch=1..64): their plan, and kernels that are right at
// every size.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/driver/models/model.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/plan/planner.h"
#include "tuner/space/schedules_by_size.h"

namespace hone {

// A plan, and SHA-256 of the file that it is of.
struct SymbolicPlan {
  Plan plan;
  std::string hash;
};
// The plan with options.ranges as its sizes. Says on standard error what was assumed at import. Carries exit code 3.
absl::StatusOr<SymbolicPlan> PlanForRanges(const std::string& path, const ImportOptions& options,
                                           const PlanOptions& how);

// At which a schedule of the plan is used.
struct Bucket {
  // Of every size of the plan the greatest. Buckets are asked in order: the first that the sizes of a run do not exceed
  // is theirs, and the last is for all that are left.
  std::vector<int64_t> most;
};

// What a task takes at some sizes.
struct SizeCost {
  std::vector<int64_t> sizes;  // of the plan; those that the task does not have are at their greatest
  double best_us = 0;          // by draft, of the best schedule for these sizes alone
  std::optional<double> us;    // of the one that is used; absent where the draft knows nothing of it
};

struct BucketsOfTask {
  std::vector<Bucket> buckets;
  std::vector<SizeCost> costs;
};
// Compiles the function, which is the workload within a bucket, by that schedule, and keeps it as the next bucket's
// where it can. `from`: which of what was measured the schedule comes from, kNotMeasured or kPlainSchedule.
using MakeKernel = std::function<absl::Status(const PrimFunc& func, const Trace& trace, int from)>;
inline constexpr int kPlainSchedule = kNotMeasured - 1;
// Cuts the range of the task's sizes into as few buckets as lose little by draft (tuner/space/schedules_by_size.h),
// each with a schedule that `make` takes; what was measured goes first, and ends at its own sizes. Where it takes none
// of the fast ones, a plain one is used. FailedPrecondition where it does not take that either.
absl::StatusOr<BucketsOfTask> MakeBuckets(const Plan& plan, const PlanTask& task, const PrimFunc& workload,
                                          const std::vector<MeasuredSchedule>& measured, const SpaceOptions& options,
                                          const MakeKernel& make);

// The sizes at which costs are added up for people, and for which tasks are tuned: a few of each, the greatest among
// them, ascending.
std::vector<std::vector<int64_t>> SizesToReport(const std::vector<PlanSize>& sizes);

}  // namespace hone
