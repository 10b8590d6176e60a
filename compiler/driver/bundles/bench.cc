#include "compiler/driver/bundles/bench.h"

#include <algorithm>

#include "compiler/driver/bundles/bundle_session.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "worker/measure/statistics.h"

namespace hone {
namespace {

// Nearest-rank percentile of sorted values.
double Percentile(const std::vector<double>& sorted, double fraction) {
  return sorted[static_cast<size_t>(fraction * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

absl::StatusOr<BenchResult> BenchBundle(const std::string& path, int threads, double seconds, const Sizes& sizes) {
  HONE_ASSIGN_OR_RETURN(BundleSession session, BundleSession::Load(path, threads));
  HONE_RETURN_IF_ERROR(session.ChooseSizes(sizes));
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
  std::vector<std::vector<double>> us;
  for (int run = 0; run < kProfiledRuns; ++run) {
    HONE_ASSIGN_OR_RETURN(const std::vector<BundleSession::Step> steps, session.RunProfiled());
    us.resize(steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
      us[i].push_back(steps[i].us);
      if (run == 0) result.kernels.push_back({steps[i].name, 0, steps[i].record});
    }
  }
  for (size_t i = 0; i < us.size(); ++i) result.kernels[i].us = Median(us[i]);
  return result;
}

}  // namespace hone
