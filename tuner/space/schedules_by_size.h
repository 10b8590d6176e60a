// Schedules of a workload with symbolic sizes, by drafts: what each of the best at one size takes at others, where its
// tiles stay as they are and their number follows the size.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace/trace.h"
#include "tuner/space/generator.h"

namespace hone {

// A schedule that was found by measuring, for the workload at these sizes.
struct MeasuredSchedule {
  std::vector<int64_t> sizes;
  Trace trace;
};
inline constexpr int kNotMeasured = -1;  // in the place of the number of one

class SchedulesBySize {
 public:
  // `points`: the sizes that are looked at, a value for each of workload.dims; the sizes of what was measured are among
  // them. Fails where AnalyzeWorkload does, or where there is a point without a legal schedule.
  static absl::StatusOr<SchedulesBySize> Make(const PrimFunc& workload, std::vector<std::vector<int64_t>> points,
                                              const std::vector<MeasuredSchedule>& measured,
                                              const SpaceOptions& options);

  // Some schedules: first those that were measured, which count as no slower at their own sizes than the best by draft,
  // then others, each the best of a generator at one of the points. They read the constants in one layout, so that a
  // bundle holds these once: the one of most that were measured, or that with which the most that any point loses is
  // least. Where a point has none of that layout, its best stands for it.
  struct Candidate {
    std::vector<double> us;  // at each point, by draft; infinite where it is not known
    size_t point = 0;        // for which it was made
    size_t generator = 0;    // of that point
    Choice choice;
    int measured = kNotMeasured;  // which of those
  };
  const std::vector<Candidate>& candidates() const { return candidates_; }
  absl::StatusOr<Trace> TraceOf(const Candidate& candidate) const;  // for the workload at its point

  const std::vector<std::vector<int64_t>>& points() const { return points_; }
  double BestUs(size_t point) const { return best_us_[point]; }  // of any schedule there, whatever its layout
  // The most that the candidate takes beyond the best at any of the points `first` to `last`: 1.1 is a tenth more.
  double Regret(const Candidate& candidate, size_t first, size_t last) const;

 private:
  using Drafted = std::vector<std::vector<std::map<std::string, DraftedChoice>>>;         // by point and generator
  std::optional<std::string> AddMeasured(const std::vector<MeasuredSchedule>& measured);  // the layout of most
  std::string ChooseLayout(const Drafted& drafted) const;
  Candidate CandidateOf(size_t point, size_t generator, const DraftedChoice& drafted) const;

  std::vector<std::vector<int64_t>> points_;
  std::vector<std::vector<std::unique_ptr<Generator>>> generators_;  // of each point
  std::vector<double> best_us_;
  std::vector<MeasuredSchedule> measured_;
  std::vector<Candidate> candidates_;
};

}  // namespace hone
