#include "compiler/driver/symbolic_model.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "compiler/driver/exit_code.h"
#include "compiler/graph/generalise_plan.h"
#include "compiler/ir/symbolic_sizes.h"
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
