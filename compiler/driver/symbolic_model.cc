#include "compiler/driver/symbolic_model.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/driver/exit_code.h"
#include "compiler/graph/generalise_plan.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/trace_edit.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/default_schedule.h"

namespace hone {
namespace {

constexpr int64_t kBucketRatio = 4;  // from one bucket to the next

std::vector<int64_t> BucketsOf(const SizeRange& range) {
  std::vector<int64_t> values;
  for (int64_t most = range.max; most >= range.min; most /= kBucketRatio) values.insert(values.begin(), most);
  return values;
}

// The values of a task's own sizes among those of the plan.
std::vector<int64_t> OwnSizes(const PlanTask& task, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> own;
  for (const int s : task.sizes) own.push_back(sizes[static_cast<size_t>(s)]);
  return own;
}

// Does `step` where it is allowed, and says whether it was.
bool Try(Schedule& schedule, const std::function<absl::Status(Schedule&)>& step) {
  Schedule attempt = schedule;
  if (!step(attempt).ok()) return false;
  schedule = std::move(attempt);
  return true;
}

// Every block by itself: its innermost loop in vectors where it can be, its outermost in parallel. Right at all sizes,
// for workloads of which the fast schedules of one size are not.
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

absl::StatusOr<Trace> TraceForBucket(const PrimFunc& workload, std::span<const int64_t> sizes,
                                     const SpaceOptions& options,
                                     const std::function<absl::Status(const Trace&)>& compiles) {
  HONE_ASSIGN_OR_RETURN(const std::vector<DraftedTrace> drafted, DefaultTraces(WithSizes(workload, sizes), options));
  absl::Status failure;
  for (const DraftedTrace& candidate : drafted) {
    absl::StatusOr<Trace> trace = ForAllSizes(candidate.trace, workload);
    if (trace.ok()) failure = compiles(*trace);
    else failure = trace.status();
    if (failure.ok()) return trace;
  }
  HONE_ASSIGN_OR_RETURN(Trace plain, PlainTrace(workload));
  if (compiles(plain).ok()) return plain;
  return failure;
}

}  // namespace

absl::StatusOr<SymbolicPlan> PlanForRanges(const std::string& path, const ImportOptions& options,
                                           const PlanOptions& how) {
  std::vector<PlanSize> sizes;
  for (const auto& [name, range] : options.ranges) sizes.push_back({name, range});
  std::vector<std::vector<int64_t>> points = SizesToPlanAt(sizes);
  std::vector<std::map<std::string, int64_t>> dims;
  for (const std::vector<int64_t>& point : points) {
    dims.emplace_back();
    for (size_t s = 0; s < sizes.size(); ++s) dims.back()[sizes[s].name] = point[s];
  }
  SymbolicPlan result;
  std::vector<Plan> plans;
  const absl::Status planned = ImportOnnxAtSizes(path, options, dims, [&](Graph graph) -> absl::Status {
    result.hash = graph.file_digest;
    for (const std::string& note : plans.empty() ? graph.notes : std::vector<std::string>())
      std::fprintf(stderr, "%s: %s\n", path.c_str(), note.c_str());
    HONE_ASSIGN_OR_RETURN(Plan plan, MakePlan(std::move(graph), how));
    if (!plans.empty()) ShareConstants(plans[0], plan);
    plans.push_back(std::move(plan));
    return absl::OkStatus();
  });
  if (!planned.ok()) return WithExitCode(ExitCode::kImport, planned);
  absl::StatusOr<Plan> plan = GeneralisePlan(std::move(sizes), std::move(points), std::move(plans));
  if (!plan.ok()) return WithExitCode(ExitCode::kImport, Annotate(plan.status(), path));
  result.plan = *std::move(plan);
  return result;
}

std::vector<std::vector<int64_t>> BucketsOf(const std::vector<PlanSize>& sizes) {
  std::vector<std::vector<int64_t>> buckets = {{}};
  for (const PlanSize& size : sizes) {
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& bucket : buckets) {
      for (const int64_t most : BucketsOf(size.range)) {
        longer.push_back(bucket);
        longer.back().push_back(most);
      }
    }
    buckets = std::move(longer);
  }
  return buckets;
}

absl::StatusOr<std::vector<BucketTrace>> BucketTraces(const PlanTask& task, const PrimFunc& workload,
                                                      const std::vector<std::vector<int64_t>>& buckets,
                                                      const SpaceOptions& options,
                                                      const std::function<absl::Status(const Trace&)>& compiles) {
  std::vector<BucketTrace> traces;
  std::map<std::vector<int64_t>, Trace> by_own;
  for (const std::vector<int64_t>& bucket : buckets) {
    const std::vector<int64_t> own = OwnSizes(task, bucket);
    auto found = by_own.find(own);
    if (found == by_own.end()) {
      HONE_ASSIGN_OR_RETURN(Trace trace, TraceForBucket(workload, own, options, compiles));
      found = by_own.emplace(own, std::move(trace)).first;
    }
    const auto covers = [&](const std::vector<int64_t>& other) {
      return std::equal(other.begin(), other.end(), bucket.begin(), std::less_equal<>());
    };
    if (!traces.empty() && covers(traces.back().most) && traces.back().trace == found->second) traces.pop_back();
    traces.push_back({bucket, found->second});
  }
  return traces;
}

}  // namespace hone
