// How much faster one bundle is than another, so that the answer can be believed: timed in turn, many times, each time
// loaded anew, while nothing else of ours measures or builds on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace hone {

// The time before over the time after, by rounds. Each round loads both bundles (their pages lie elsewhere each time,
// which short kernels feel by some per cent) and runs them in turn; its ratio is free of what drifts over both.
struct SpeedUp {
  double before_ms = 0, after_ms = 0;  // medians of the rounds
  double ratio = 1;                    // the median
  double low = 1, high = 1;            // hold the true median with `confidence`, whatever the distribution
  double confidence = 0;
  int rounds = 0;

  // Whether all of the interval lies on one side of 1, as it is shown: a gain of a part in a thousand is none.
  bool changed() const { return low >= 1.005 || high < 0.995; }
};
// "1.09x (1.04-1.12)", "no measurable change (0.98-1.02)"
std::string ToText(const SpeedUp& speed_up);

struct CompareOptions {
  int threads = 0;
  int rounds = 12;  // two accidents to either side do not move the interval
  // Of the dimensions that a bundle leaves open, by name; a bundle that leaves none open may be compared with it.
  std::map<std::string, int64_t> sizes;
  // Told what is done now; a status that is not OK ends the comparison with it.
  std::function<absl::Status(const std::string&)> phase;
};

// Takes the turn of this machine (turn_lock.h) for as long as it times.
absl::StatusOr<SpeedUp> CompareBundles(const std::string& before, const std::string& after,
                                       const CompareOptions& options);

}  // namespace hone
