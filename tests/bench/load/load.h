// The load that simulated workers make, and what they saw.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/bench/load/simulated_worker.h"

namespace hone {

struct LoadBenchOptions {
  int workers = 2000, jobs = 1000;
  int searches = 8;  // processes: enough that nobody waits for them
  std::string db;    // empty: a file in a folder of its own
  LoadOptions load;
  int look_ups = 0;  // a second, beside the completions
  double warm_up = 5, seconds = 20, soak_minutes = 0;
};

// Connected when it is made; what they did in a while is printed.
class Load {
 public:
  Load(const char* what, const LoadBenchOptions& options);
  ~Load();

  void Measure(absl::Duration time);
  SimulatedWorker& worker(uint64_t number) { return *workers_[number % workers_.size()]; }
  LoadCounts& counts() { return counts_; }

 private:
  const char* what_;
  LoadCounts& counts_ = *new LoadCounts;  // these outlive it: calls that are out speak of it
  Timer& timer_ = *new Timer;
  std::vector<SimulatedWorker*> workers_;
};

}  // namespace hone
