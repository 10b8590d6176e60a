// Models whose sizes the caller chooses in each run (--dim batch=1..64): their plan, and kernels that are right at
// every size.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/driver/model.h"
#include "compiler/frontend/onnx_import.h"
#include "compiler/graph/planner.h"

namespace hone {

// A plan, and SHA-256 of the file that it is of.
struct SymbolicPlan {
  Plan plan;
  std::string hash;
};
// The plan with options.ranges as its sizes. Says on standard error what was assumed at import. Carries exit code 3.
absl::StatusOr<SymbolicPlan> PlanForRanges(const std::string& path, const ImportOptions& options,
                                           const PlanOptions& how);

// The sizes for which schedules are made: each a value for every size of the plan, ascending, the greatest last. Where
// the sizes of a run exceed none of one of them, its schedules are used, of the first such.
std::vector<std::vector<int64_t>> BucketsOf(const std::vector<PlanSize>& sizes);

// Schedules of one task at all sizes.
struct BucketTrace {
  std::vector<int64_t> most;  // as in BucketsOf; a bucket within the next that has the same schedule is left out
  Trace trace;
};
// The best by draft for each bucket that the compiler takes at all sizes, the last for the greatest sizes. `compiles`
// says whether it does. FailedPrecondition where none is taken.
absl::StatusOr<std::vector<BucketTrace>> BucketTraces(const PlanTask& task, const PrimFunc& workload,
                                                      const std::vector<std::vector<int64_t>>& buckets,
                                                      const SpaceOptions& options,
                                                      const std::function<absl::Status(const Trace&)>& compiles);

}  // namespace hone
