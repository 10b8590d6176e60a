// Timing one program as a worker times a candidate: warmed up, enough calls a sample, samples dropped by cause alone.
#pragma once

#include <functional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/measure/statistics.h"

namespace hone {

struct TimedRuns {
  double us = 0;            // of one call: the median of the samples that nothing disturbed
  MedianInterval interval;  // that holds the true median
  int samples = 0;          // used
  int dropped = 0;          // another program ran on our CPU, or a page was read from a disk
  int calls = 0;            // that make one sample
  bool noisy = false;       // more was dropped than a worker would accept: it would measure again later
};

// One sample of `calls` calls, with what disturbed it.
absl::StatusOr<TimedSample> TakeSample(const std::function<absl::Status()>& run, int calls);

// What `taken`, each of `calls` calls, says.
TimedRuns Summarize(std::span<const TimedSample> taken, int calls);

// Calls `run` until there are `samples` samples, each of at least 200 us. The first failure of `run` ends it.
absl::StatusOr<TimedRuns> TimeRuns(const std::function<absl::Status()>& run, int samples = 15);

}  // namespace hone
