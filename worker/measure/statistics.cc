#include "worker/measure/statistics.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/check.h"

namespace hone {

double Median(std::span<const double> samples) {
  HONE_CHECK(!samples.empty()) << "the median of nothing";
  std::vector<double> sorted(samples.begin(), samples.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  return (*std::max_element(sorted.begin(), middle) + *middle) / 2;
}

double MedianAbsoluteDeviation(std::span<const double> samples) {
  const double median = Median(samples);
  std::vector<double> distances;
  for (const double sample : samples) distances.push_back(std::abs(sample - median));
  return Median(distances);
}

MedianInterval ConfidenceOfMedian(std::span<const double> samples, double confidence) {
  HONE_CHECK(!samples.empty()) << "the median of nothing";
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const int n = static_cast<int>(sorted.size());
  // Below k = 1 lies P(Binomial(n, 1/2) < 1) = 2^-n. k grows while the tail stays small enough.
  const auto log_choose = [n](int j) { return std::lgamma(n + 1.0) - std::lgamma(j + 1.0) - std::lgamma(n - j + 1.0); };
  double tail = std::exp(-n * std::log(2.0));
  int k = 1;
  while (2 * (k + 1) <= n) {
    const double next = tail + std::exp(log_choose(k) - n * std::log(2.0));
    if (2 * next > 1 - confidence) break;
    tail = next;
    ++k;
  }
  return {sorted[static_cast<size_t>(k - 1)], sorted[static_cast<size_t>(n - k)], std::max(0.0, 1 - 2 * tail)};
}

int InnerRepeats(double call_us, double min_sample_us, int limit) {
  if (!(call_us > 0)) return limit;
  return static_cast<int>(std::clamp(std::ceil(min_sample_us / call_us), 1.0, static_cast<double>(limit)));
}

int InnerRepeatsOf(std::span<const double> calls_us, double min_sample_us, double hopeless_us) {
  HONE_CHECK(!calls_us.empty()) << "no call was timed";
  const double shortest = *std::min_element(calls_us.begin(), calls_us.end());
  return hopeless_us > 0 && shortest > hopeless_us ? 1 : InnerRepeats(shortest, min_sample_us);
}

PairedRatio CompareInterleaved(std::span<const double> a, std::span<const double> b) {
  HONE_CHECK(a.size() == b.size() && !a.empty()) << "pairs of samples: " << a.size() << " and " << b.size();
  std::vector<double> logs;
  for (size_t i = 0; i < a.size(); ++i) logs.push_back(std::log(a[i] / b[i]));
  PairedRatio result;
  result.pairs = static_cast<int>(logs.size());
  result.ratio = std::exp(Median(logs));
  result.log_sigma = kMadToSigma * MedianAbsoluteDeviation(logs);
  result.log_error = 1.2533 * result.log_sigma / std::sqrt(static_cast<double>(logs.size()));
  return result;
}

double ScaledByAnchor(std::span<const double> samples, std::span<const double> anchor, double anchor_quiet_us) {
  return Median(samples) / Median(anchor) * anchor_quiet_us;
}

CleanSamples DropDisturbed(std::span<const TimedSample> samples, double max_dropped) {
  CleanSamples clean;
  for (const TimedSample& sample : samples) {
    if (sample.involuntary_switches == 0 && sample.major_faults == 0 && sample.thread_moves == 0) {
      clean.us.push_back(sample.us);
    } else {
      ++clean.dropped;
    }
  }
  clean.noisy = clean.dropped > max_dropped * static_cast<double>(samples.size());
  return clean;
}

}  // namespace hone
