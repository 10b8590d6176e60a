// Timing a bundle through the runtime, on seeded inputs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone {

struct BenchResult {
  struct Kernel {
    std::string name;
    double us = 0;       // median over the profiled runs
    std::string record;  // "" when it was built from a default schedule
  };
  double p10_ms = 0, p50_ms = 0, p90_ms = 0;
  int runs = 0;
  int threads = 0;
  std::vector<Kernel> kernels;  // in the order they run
};

// Warms up, then times whole runs for `seconds` (at least 10 runs), then profiles kernels in runs of their own, so that
// noting their times does not slow the ones that count.
absl::StatusOr<BenchResult> BenchBundle(const std::string& path, int threads, double seconds);

}  // namespace hone
