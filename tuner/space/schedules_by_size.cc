#include "tuner/space/schedules_by_size.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "compiler/ir/symbolic_sizes.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int kDescentsAtAPoint = 4;  // fewer than for one size alone: neighbours find the same
constexpr double kWorthKeeping = 2;   // times the best at the point
constexpr double kNone = std::numeric_limits<double>::infinity();

}  // namespace

absl::StatusOr<SchedulesBySize> SchedulesBySize::Make(const PrimFunc& workload,
                                                      std::vector<std::vector<int64_t>> points,
                                                      const std::vector<MeasuredSchedule>& measured,
                                                      const SpaceOptions& options) {
  SchedulesBySize made;
  made.points_ = std::move(points);
  made.measured_ = measured;
  Drafted drafted;
  for (const std::vector<int64_t>& point : made.points_) {
    HONE_ASSIGN_OR_RETURN(auto generators, Generators(WithSizes(workload, point), options));
    double best = kNone;
    drafted.emplace_back();
    for (const std::unique_ptr<Generator>& generator : generators) {
      drafted.back().push_back(BestOfLayouts(*generator, kDescentsAtAPoint));
      for (const auto& [layout, choice] : drafted.back().back()) best = std::min(best, choice.us);
    }
    if (best == kNone) return absl::NotFoundError("no schedule is legal on this target");
    made.generators_.push_back(std::move(generators));
    made.best_us_.push_back(best);
  }
  const std::optional<std::string> of_measured = made.AddMeasured(measured);
  const std::string layout = of_measured.has_value() ? *of_measured : made.ChooseLayout(drafted);
  for (size_t p = 0; p < drafted.size(); ++p) {
    const bool has_layout = std::ranges::any_of(drafted[p], [&](const auto& of) { return of.contains(layout); });
    for (size_t g = 0; g < drafted[p].size(); ++g) {
      for (const auto& [own, choice] : drafted[p][g]) {
        if (has_layout && own == layout && choice.us <= kWorthKeeping * made.best_us_[p])
          made.candidates_.push_back(made.CandidateOf(p, g, choice));
        if (!has_layout && choice.us == made.best_us_[p]) made.candidates_.push_back(made.CandidateOf(p, g, choice));
      }
    }
  }
  return made;
}

std::string SchedulesBySize::ChooseLayout(const Drafted& drafted) const {
  std::map<std::string, std::vector<double>> us;  // of each layout, at each point
  for (size_t p = 0; p < drafted.size(); ++p) {
    for (const auto& of_generator : drafted[p]) {
      for (const auto& [layout, choice] : of_generator) {
        std::vector<double>& own = us.try_emplace(layout, points_.size(), kNone).first->second;
        own[p] = std::min(own[p], choice.us);
      }
    }
  }
  std::string chosen;
  double least = kNone;
  for (const auto& [layout, own] : us) {
    double most = 0;
    for (size_t p = 0; p < own.size(); ++p) most = std::max(most, own[p] / best_us_[p]);
    if (most < least) {
      least = most;
      chosen = layout;
    }
  }
  return chosen;
}

std::optional<std::string> SchedulesBySize::AddMeasured(const std::vector<MeasuredSchedule>& measured) {
  std::map<std::string, std::vector<Candidate>> by_layout;
  for (size_t m = 0; m < measured.size(); ++m) {
    const auto point = static_cast<size_t>(std::ranges::find(points_, measured[m].sizes) - points_.begin());
    const std::optional<Origin> origin = OriginOf(measured[m].trace);
    if (point == points_.size() || !origin.has_value()) continue;
    for (size_t g = 0; g < generators_[point].size(); ++g) {
      const Generator& generator = *generators_[point][g];
      const std::optional<Choice> choice = ChoiceWithValues(generator, *origin);
      const std::optional<double> us = choice.has_value() ? generator.Draft(*choice) : std::nullopt;
      if (!us.has_value()) continue;
      Candidate candidate = CandidateOf(point, g, {*choice, *us});
      candidate.measured = static_cast<int>(m);
      const double scale = std::min(1.0, best_us_[point] / *us);
      for (double& at : candidate.us) at *= scale;
      by_layout[generator.ConstantLayout(*choice)].push_back(std::move(candidate));
      break;
    }
  }
  const auto most = std::ranges::max_element(by_layout, {}, [](const auto& of) { return of.second.size(); });
  if (most == by_layout.end()) return std::nullopt;
  candidates_ = std::move(most->second);
  return most->first;
}

SchedulesBySize::Candidate SchedulesBySize::CandidateOf(size_t point, size_t generator,
                                                        const DraftedChoice& drafted) const {
  Candidate candidate{.us = {}, .point = point, .generator = generator, .choice = drafted.choice};
  const Generator& made_by = *generators_[point][generator];
  for (const auto& of_point : generators_) {
    double least = kNone;
    for (const std::unique_ptr<Generator>& here : of_point)
      least = std::min(least, here->DraftOfOther(made_by, drafted.choice).value_or(kNone));
    candidate.us.push_back(least);
  }
  candidate.us[point] = drafted.us;
  return candidate;
}

absl::StatusOr<Trace> SchedulesBySize::TraceOf(const Candidate& candidate) const {
  if (candidate.measured >= 0) return measured_[static_cast<size_t>(candidate.measured)].trace;
  HONE_ASSIGN_OR_RETURN(const Schedule schedule,
                        BuildCandidate(*generators_[candidate.point][candidate.generator], candidate.choice));
  return schedule.trace();
}

double SchedulesBySize::Regret(const Candidate& candidate, size_t first, size_t last) const {
  double most = 0;
  for (size_t p = first; p <= last; ++p) most = std::max(most, candidate.us[p] / best_us_[p]);
  return most;
}

}  // namespace hone
