#include "compiler/driver/models/symbolic_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/driver/exit_code.h"
#include "compiler/frontend/import_model.h"
#include "compiler/graph/plan/generalise_plan.h"
#include "compiler/graph/plan/graph_at_sizes.h"
#include "compiler/graph/plan/plan_sizes.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/schedule/trace/trace_edit.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/schedules_by_size.h"

namespace hone {
namespace {

constexpr int64_t kReportRatio = 4;      // from one size that is reported to the next
constexpr double kMostRegret = 1.1;      // of a bucket of several points, by draft
constexpr size_t kMostTried = 8;         // schedules of a bucket that are compiled before it is made smaller
constexpr size_t kMostOfOthers = 64;     // likewise of those for other sizes, of which most soon prove to be none here
constexpr int64_t kMostPointsApart = 2;  // a point is at most so many times the one before

std::vector<int64_t> ReportedSizes(const SizeRange& range) {
  std::vector<int64_t> values;
  const int64_t least = std::max<int64_t>(range.min, 1);
  for (int64_t most = range.max; most >= least; most /= kReportRatio) values.insert(values.begin(), most);
  // One row is not like several: of a token at a time, or of a batch of one, and served the most.
  if (least == 1 && values.front() > 1) values.insert(values.begin(), least);
  return values;
}

// Where schedules of one size are looked at: powers of two, what begins another tile just after them, and between.
std::vector<int64_t> PointsOf(const SizeRange& range) {
  std::set<int64_t> values = {std::max<int64_t>(range.min, 1), range.max};
  for (const int64_t value : ReportedSizes(range)) values.insert(value);
  for (int64_t power = 1; power <= range.max; power *= kMostPointsApart) {
    for (const int64_t value : {power, power + 1, power + power / 2}) {
      if (value >= range.min && value <= range.max) values.insert(value);
    }
  }
  return {values.begin(), values.end()};
}

// Makes the buckets of one task.
class BucketMaker {
 public:
  BucketMaker(const Plan& plan, const PlanTask& task, const PrimFunc& workload,
              const std::vector<MeasuredSchedule>& measured, const SpaceOptions& options, const MakeKernel& make)
      : plan_(plan), task_(task), workload_(workload), measured_(measured), options_(options), make_(make) {}

  absl::StatusOr<BucketsOfTask> Run() {
    std::vector<std::vector<int64_t>> values;
    const bool one_size = task_.sizes.size() == 1;
    for (const int s : task_.sizes) {
      const SizeRange& range = plan_.sizes[static_cast<size_t>(s)].range;
      values.push_back(one_size ? PointsOf(range) : ReportedSizes(range));
    }
    const std::vector<std::vector<int64_t>> points = Grid(values);
    const absl::StatusOr<SchedulesBySize> made = SchedulesBySize::Make(workload_, points, measured_, options_);
    if (!made.ok()) {
      HONE_RETURN_IF_ERROR(AddPlain(points.back(), workload_));
      for (const std::vector<int64_t>& point : points) made_.costs.push_back({OfPlan(point), 0, std::nullopt});
      return std::move(made_);
    }
    const SchedulesBySize& schedules = *made;
    for (size_t first = 0, last; first < points.size(); first = last + 1) {
      last = one_size ? LastOfBucket(schedules, first) : first;
      while (last > first && !AddDrafted(schedules, values, first, last, kMostRegret))
        last = first + (last - first) / 2;
      if (last > first || AddDrafted(schedules, values, first, last, std::numeric_limits<double>::max())) continue;
      if (!AddOfAnotherSize(schedules, values, first)) {
        HONE_RETURN_IF_ERROR(AddPlain(points[first], WithRanges(workload_, RangesOf(points, values, first, first))));
      }
      AddCost(schedules, first, std::nullopt);
    }
    return std::move(made_);
  }

 private:
  // The furthest point to which a schedule serves from `first` on without losing much. None goes on where another was
  // measured.
  static size_t LastOfBucket(const SchedulesBySize& schedules, size_t first) {
    size_t last = first, end = schedules.points().size() - 1;
    for (const SchedulesBySize::Candidate& candidate : schedules.candidates()) {
      if (candidate.measured >= 0 && candidate.point >= first) end = std::min(end, candidate.point);
    }
    for (const SchedulesBySize::Candidate& candidate : schedules.candidates()) {
      size_t to = first;
      while (to < end && schedules.Regret(candidate, first, to + 1) <= kMostRegret) ++to;
      if (schedules.Regret(candidate, first, first) <= kMostRegret) last = std::max(last, to);
    }
    return last;
  }

  // A bucket from one point to another with the best of the schedules, where one of them can be compiled.
  bool AddDrafted(const SchedulesBySize& schedules, const std::vector<std::vector<int64_t>>& values, size_t first,
                  size_t last, double most_regret) {
    std::vector<const SchedulesBySize::Candidate*> fitting;
    for (const SchedulesBySize::Candidate& candidate : schedules.candidates()) {
      if (schedules.Regret(candidate, first, last) <= most_regret) fitting.push_back(&candidate);
    }
    std::ranges::stable_sort(fitting, {}, [&](const auto* c) { return schedules.Regret(*c, first, last); });
    const SchedulesBySize::Candidate* used = AddFirst(schedules, values, first, last, fitting, kMostTried);
    if (used == nullptr) return false;
    for (size_t p = first; p <= last; ++p) AddCost(schedules, p, used->us[p]);
    return true;
  }

  // A bucket of one point with a schedule for another one, of which no draft is known here: the best of the nearest by
  // ratios of sizes, and of the larger one of two as near; then the best of the next, and at last the second best.
  bool AddOfAnotherSize(const SchedulesBySize& schedules, const std::vector<std::vector<int64_t>>& values,
                        size_t point) {
    std::map<size_t, std::vector<const SchedulesBySize::Candidate*>> by_point;
    for (const SchedulesBySize::Candidate& candidate : schedules.candidates()) {
      if (candidate.point != point && std::isinf(candidate.us[point])) by_point[candidate.point].push_back(&candidate);
    }
    std::vector<std::pair<std::tuple<size_t, double, double>, const SchedulesBySize::Candidate*>> others;
    for (auto& [own, candidates] : by_point) {
      std::ranges::stable_sort(candidates, {}, [own = own](const auto* candidate) { return candidate->us[own]; });
      double far = 0, larger = 0;
      for (size_t s = 0; s < values.size(); ++s) {
        const double ratio = std::log2(static_cast<double>(schedules.points()[own][s]) /
                                       static_cast<double>(schedules.points()[point][s]));
        far += std::abs(ratio);
        larger += ratio;
      }
      for (size_t i = 0; i < candidates.size(); ++i) others.push_back({{i, far, -larger}, candidates[i]});
    }
    std::ranges::stable_sort(others, {}, [](const auto& other) { return other.first; });
    std::vector<const SchedulesBySize::Candidate*> best;
    for (const auto& [order, candidate] : others) best.push_back(candidate);
    return AddFirst(schedules, values, point, point, best, kMostOfOthers) != nullptr;
  }

  // A bucket with the first of the schedules that can be compiled for all of its sizes; nullptr: there is none among
  // the first `most`.
  const SchedulesBySize::Candidate* AddFirst(const SchedulesBySize& schedules,
                                             const std::vector<std::vector<int64_t>>& values, size_t first, size_t last,
                                             std::span<const SchedulesBySize::Candidate* const> best, size_t most) {
    const PrimFunc func = WithRanges(workload_, RangesOf(schedules.points(), values, first, last));
    for (const SchedulesBySize::Candidate* candidate : best.first(std::min(best.size(), most))) {
      const absl::StatusOr<Trace> of_point = schedules.TraceOf(*candidate);
      if (!of_point.ok()) continue;
      const absl::StatusOr<Trace> trace = ForAllSizes(*of_point, func);
      if (!trace.ok() || !make_(func, *trace, candidate->measured).ok()) continue;
      made_.buckets.push_back({OfPlan(schedules.points()[last])});
      return candidate;
    }
    return nullptr;
  }

  absl::Status AddPlain(const std::vector<int64_t>& most, const PrimFunc& func) {
    HONE_ASSIGN_OR_RETURN(const Trace plain, PlainTrace(func));
    HONE_RETURN_IF_ERROR(make_(func, plain, kPlainSchedule));
    made_.buckets.push_back({OfPlan(most)});
    return absl::OkStatus();
  }

  void AddCost(const SchedulesBySize& schedules, size_t point, std::optional<double> us) {
    made_.costs.push_back({OfPlan(schedules.points()[point]), schedules.BestUs(point), us});
  }

  // What is left for a bucket when those before it have theirs.
  std::vector<SizeRange> RangesOf(const std::vector<std::vector<int64_t>>& points,
                                  const std::vector<std::vector<int64_t>>& values, size_t first, size_t last) const {
    std::vector<SizeRange> ranges;
    for (size_t s = 0; s < values.size(); ++s) {
      const auto least = std::ranges::find(values[s], points[first][s]);
      const int64_t min = plan_.sizes[static_cast<size_t>(task_.sizes[s])].range.min;
      ranges.push_back({least == values[s].begin() ? min : *(least - 1) + 1, points[last][s]});
    }
    return ranges;
  }

  // The task's own sizes among those of the plan, the others at their greatest.
  std::vector<int64_t> OfPlan(const std::vector<int64_t>& own) const {
    std::vector<int64_t> all;
    for (const PlanSize& size : plan_.sizes) all.push_back(size.range.max);
    for (size_t s = 0; s < own.size(); ++s) all[static_cast<size_t>(task_.sizes[s])] = own[s];
    return all;
  }

  const Plan& plan_;
  const PlanTask& task_;
  const PrimFunc& workload_;
  const std::vector<MeasuredSchedule>& measured_;
  const SpaceOptions& options_;
  const MakeKernel& make_;
  BucketsOfTask made_;
};

}  // namespace

absl::StatusOr<SymbolicPlan> PlanForRanges(const std::string& path, const ImportOptions& options,
                                           const PlanOptions& how) {
  std::vector<PlanSize> sizes;
  for (const auto& [name, range] : options.ranges) sizes.push_back({name, range});
  std::vector<std::vector<int64_t>> points = SizesToPlanAt(sizes);
  const std::vector<std::vector<int64_t>> more = SizesToCheck(sizes);
  std::vector<std::map<std::string, int64_t>> dims;
  for (const auto& list : {points, more}) {
    for (const std::vector<int64_t>& point : list) {
      dims.emplace_back();
      for (size_t s = 0; s < sizes.size(); ++s) dims.back()[sizes[s].name] = point[s];
    }
  }
  SymbolicPlan result;
  std::vector<Plan> plans;
  std::vector<Graph> graphs;
  std::optional<GraphAtSizes> at_sizes;
  size_t checked = 0;
  const absl::Status planned = ImportModelAtSizes(path, options, dims, [&](Graph graph) -> absl::Status {
    if (plans.size() == points.size()) {
      if (!at_sizes.has_value()) at_sizes.emplace(sizes, points, std::exchange(graphs, {}));
      return Annotate(at_sizes->Check(more[checked++], graph), path);
    }
    graphs.push_back(graph);  // shares its constants
    result.hash = graph.file_digest;
    for (const std::string& note : plans.empty() ? graph.notes : std::vector<std::string>())
      std::fprintf(stderr, "%s: %s\n", path.c_str(), note.c_str());
    HONE_ASSIGN_OR_RETURN(Plan plan, MakePlan(std::move(graph), how));
    HONE_RETURN_IF_ERROR(Annotate(CheckGeneralises(plan), path));
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

absl::StatusOr<BucketsOfTask> MakeBuckets(const Plan& plan, const PlanTask& task, const PrimFunc& workload,
                                          const std::vector<MeasuredSchedule>& measured, const SpaceOptions& options,
                                          const MakeKernel& make) {
  return BucketMaker(plan, task, workload, measured, options, make).Run();
}

std::vector<std::vector<int64_t>> SizesToReport(const std::vector<PlanSize>& sizes) {
  std::vector<std::vector<int64_t>> values;
  for (const PlanSize& size : sizes) values.push_back(ReportedSizes(size.range));
  return Grid(values);
}

}  // namespace hone
