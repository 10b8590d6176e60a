#include "compiler/driver/time_runs.h"

#include <sched.h>
#include <sys/resource.h>

#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<TimedSample> TakeSample(const std::function<absl::Status()>& run, int calls) {
  rusage before{}, after{};
  const int cpu = sched_getcpu();
  getrusage(RUSAGE_SELF, &before);
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < calls; ++i) HONE_RETURN_IF_ERROR(run());
  const double us = SecondsSince(start) * 1e6 / calls;
  getrusage(RUSAGE_SELF, &after);
  return TimedSample{us, static_cast<uint32_t>(after.ru_nivcsw - before.ru_nivcsw),
                     static_cast<uint32_t>(after.ru_majflt - before.ru_majflt), sched_getcpu() != cpu ? 1U : 0U};
}

TimedRuns Summarize(std::span<const TimedSample> taken, int calls) {
  TimedRuns result;
  result.calls = calls;
  CleanSamples clean = DropDisturbed(taken);
  result.dropped = clean.dropped;
  result.noisy = clean.noisy;
  if (clean.us.empty()) {  // a busy machine: better a rough number that says so than none
    for (const TimedSample& sample : taken) clean.us.push_back(sample.us);
  }
  result.samples = static_cast<int>(clean.us.size());
  result.us = Median(clean.us);
  result.interval = ConfidenceOfMedian(clean.us);
  return result;
}

absl::StatusOr<TimedRuns> TimeRuns(const std::function<absl::Status()>& run, int samples) {
  HONE_RETURN_IF_ERROR(run());  // the first call meets cold caches and unmapped pages
  HONE_ASSIGN_OR_RETURN(const TimedSample warm, TakeSample(run, 1));
  const int calls = InnerRepeats(warm.us);
  std::vector<TimedSample> taken;
  while (static_cast<int>(taken.size()) < samples) {
    HONE_ASSIGN_OR_RETURN(const TimedSample sample, TakeSample(run, calls));
    taken.push_back(sample);
  }
  return Summarize(taken, calls);
}

}  // namespace hone
