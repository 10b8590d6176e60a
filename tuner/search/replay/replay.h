// Searches on recorded spaces: how good the best candidate is after so many trials, without a device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hone/v1/common.pb.h"
#include "tuner/search/replay/recorded_space.h"
#include "tuner/search/strategies/strategy.h"

namespace hone {

struct ReplayOptions {
  int trials = 64;
  int batch = 16;  // of the first one, half the trials at most: the daemon asks so where a budget is small
  SearchTuning tuning;
};

// The time of the recorded best over that of the best one found, after every trial: in (0, 1], never falling. Ends
// early where the strategy does. What a search is told is what was recorded; each batch is proposed when the one before
// it is known.
absl::StatusOr<std::vector<double>> ReplaySearch(const std::shared_ptr<const RecordedSpace>& space,
                                                 v1::SearchStrategy strategy, uint64_t seed,
                                                 const ReplayOptions& options);

// A mean and half the width of its interval at 95 % (Student's t; half is 0 for one value).
struct Mean {
  double mean = 0, half = 0;
};
Mean MeanOf(const std::vector<double>& values);

// `hone-search replay ...` and `hone-search record ...`: what main returns.
int ReplayMain(int argc, const char* const* argv);
int RecordMain(int argc, const char* const* argv);

}  // namespace hone
