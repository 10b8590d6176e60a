// Timing a bundle through the runtime, on seeded inputs.
#pragma once

#include <cstdint>
#include <map>
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
// `sizes`: of the dimensions that the bundle leaves open, by name; the others are the greatest.
using Sizes = std::map<std::string, int64_t>;
absl::StatusOr<BenchResult> BenchBundle(const std::string& path, int threads, double seconds, const Sizes& sizes = {});

}  // namespace hone
