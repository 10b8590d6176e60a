// Look-ups of the best records beside the load.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "tests/bench/load/load.h"

namespace hone {

// At a fixed rate, a call for the kernels of a model, from when it is made until its end, where they are printed. A
// latency counts from the time its call was due, whether or not the one before was answered.
class LookUps {
 public:
  explicit LookUps(const LoadBenchOptions& options);
  ~LookUps();

 private:
  void Call(int caller);

  const LoadBenchOptions& options_;
  std::vector<std::string> workloads_;  // their digests
  absl::Time began_;
  Sample calls_;
  std::atomic<int64_t> answered_{0}, found_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> callers_;
};

}  // namespace hone
