#include "tuner/search/replay/replay.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/status_macros.h"
#include "tuner/search/strategies/task_search.h"

namespace hone {
namespace {

constexpr int kLeastBatch = 4;  // the daemon asks for no less at first (dispatch/rules/search_rules.cc)

}  // namespace

absl::StatusOr<std::vector<double>> ReplaySearch(const std::shared_ptr<const RecordedSpace>& space,
                                                 v1::SearchStrategy strategy, uint64_t seed,
                                                 const ReplayOptions& options) {
  TaskSearch search(space, MakeStrategy(strategy, seed), seed, options.tuning);
  std::vector<double> quality;
  double best_us = 0;
  while (static_cast<int>(quality.size()) < options.trials) {
    const int left = options.trials - static_cast<int>(quality.size());
    const int batch = quality.empty()
                          ? std::clamp(options.trials / 2, std::min(kLeastBatch, options.batch), options.batch)
                          : options.batch;
    const bool polish = left * 4 <= options.trials;  // as the daemon says near the end of a budget
    HONE_ASSIGN_OR_RETURN(const std::vector<v1::Candidate> candidates, search.Propose(std::min(left, batch), polish));
    if (candidates.empty()) break;
    for (const v1::Candidate& candidate : candidates) {
      v1::Observation observation;
      observation.set_trace(candidate.trace());
      observation.set_kind(v1::OUTCOME_OK);
      observation.set_median_us(space->TimeOf(candidate.trace()));
      search.Observe(observation);
      if (best_us == 0 || observation.median_us() < best_us) best_us = observation.median_us();
      quality.push_back(space->best_us() / best_us);
    }
  }
  return quality;
}

Mean MeanOf(const std::vector<double>& values) {
  // Of Student's t at 97.5 %, by degrees of freedom from 1; beyond, the normal distribution's.
  static constexpr double kStudent[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23,
                                        2.20,  2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09};
  Mean result;
  if (values.empty()) return result;
  const double n = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / n;
  if (values.size() == 1) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const size_t freedom = values.size() - 1;
  const double t = freedom <= std::size(kStudent) ? kStudent[freedom - 1] : 1.96;
  result.half = t * std::sqrt(squares / (n - 1) / n);
  return result;
}

}  // namespace hone
