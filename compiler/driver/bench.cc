#include "compiler/driver/bench.h"

#include <algorithm>

#include "compiler/driver/bundle_session.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/stopwatch.h"

namespace hone {
namespace {

// Nearest-rank percentile of sorted values.
double Percentile(const std::vector<double>& sorted, double fraction) {
  return sorted[static_cast<size_t>(fraction * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

absl::StatusOr<BenchResult> BenchBundle(const std::string& path, int threads, double seconds) {
  HONE_ASSIGN_OR_RETURN(BundleSession session, BundleSession::Load(path, threads));
  HONE_RETURN_IF_ERROR(session.SetRandomInputs(1));
  const Clock::time_point warm_up = Clock::now();
  for (int i = 0; i < 3 || SecondsSince(warm_up) < seconds * 0.1; ++i) HONE_RETURN_IF_ERROR(session.Run());

  std::vector<double> samples_ms;
  const Clock::time_point start = Clock::now();
  while (samples_ms.size() < 10 || SecondsSince(start) < seconds) {
    const Clock::time_point begin = Clock::now();
    HONE_RETURN_IF_ERROR(session.Run());
    samples_ms.push_back(SecondsSince(begin) * 1e3);
  }
  std::sort(samples_ms.begin(), samples_ms.end());

  BenchResult result;
  result.p10_ms = Percentile(samples_ms, 0.1);
  result.p50_ms = Percentile(samples_ms, 0.5);
  result.p90_ms = Percentile(samples_ms, 0.9);
  result.runs = static_cast<int>(samples_ms.size());
  result.threads = session.threads();

  constexpr int kProfiledRuns = 11;
  const int steps = hone_instance_num_steps(session.instance());
  std::vector<std::vector<double>> us(static_cast<size_t>(steps));
  hone_instance_set_profiling(session.instance(), 1);
  for (int run = 0; run < kProfiledRuns; ++run) {
    HONE_RETURN_IF_ERROR(session.Run());
    for (int i = 0; i < steps; ++i) {
      HoneStepProfile profile{};
      if (hone_instance_step_profile(session.instance(), i, &profile) != HONE_OK) {
        return absl::InternalError(hone_last_error());
      }
      us[static_cast<size_t>(i)].push_back(profile.us);
      if (run == 0) result.kernels.push_back({profile.name, 0, profile.record});
    }
  }
  for (int i = 0; i < steps; ++i) {
    std::vector<double>& times = us[static_cast<size_t>(i)];
    std::nth_element(times.begin(), times.begin() + kProfiledRuns / 2, times.end());
    result.kernels[static_cast<size_t>(i)].us = times[kProfiledRuns / 2];
  }
  return result;
}

}  // namespace hone
