#include "tests/bench/load/load.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace hone {

Load::Load(const char* what, const LoadBenchOptions& options) : what_(what) {
  const absl::Time began = absl::Now();
  for (int i = 0; i < options.workers; ++i) {
    workers_.push_back(new SimulatedWorker(absl::StrCat(what, " ", i), options.load, timer_, counts_));
    workers_.back()->Start();
  }
  while (counts_.connected < options.workers && absl::Now() - began < absl::Minutes(2)) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  std::printf("%-7s %8lld workers connected in %.1f s\n", what, static_cast<long long>(counts_.connected.load()),
              absl::ToDoubleSeconds(absl::Now() - began));
}

Load::~Load() {
  for (SimulatedWorker* worker : workers_) worker->Stop();
}

void Load::Measure(absl::Duration time) {
  counts_.lease.Clear();
  const int64_t acked = counts_.acked, calls = counts_.calls, failed = counts_.failed;
  const absl::Time start = absl::Now();
  absl::SleepFor(time);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const auto rate = [&](int64_t now, int64_t before) { return static_cast<double>(now - before) / seconds; };
  std::printf("%-7s %8.0f completions a second acknowledged, %.0f calls, %lld failed; lease: %s\n", what_,
              rate(counts_.acked, acked), rate(counts_.calls, calls), static_cast<long long>(counts_.failed - failed),
              counts_.lease.Text().c_str());
}

}  // namespace hone
