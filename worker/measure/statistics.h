// Statistics of timings. Times are positive, in any one unit; nothing here reads a clock. Medians and ranks, because
// the noise of a machine is one-sided and heavy-tailed: means and standard deviations follow the accidents.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hone {

// Of an even number of samples the mean of the middle two. At least one sample.
double Median(std::span<const double> samples);

// The median distance to the median: a width no single accident moves. Times 1.4826 it estimates the standard deviation
// of normally distributed samples.
double MedianAbsoluteDeviation(std::span<const double> samples);
inline constexpr double kMadToSigma = 1.4826;

// The interval between two order statistics that contains the true median with at least the probability asked for,
// whatever the distribution: the k-th smallest and k-th largest sample with P(Binomial(n, 1/2) < k) <= (1 - confidence)
// / 2 (Conover, Practical Nonparametric Statistics, section 3.2). With too few samples it is the whole range, and
// `confidence` says how much that gives.
struct MedianInterval {
  double low = 0, high = 0;
  double confidence = 0;
  // Half its width relative to its middle.
  double RelativeHalfWidth() const { return low + high > 0 ? (high - low) / (high + low) : 0; }
};
MedianInterval ConfidenceOfMedian(std::span<const double> samples, double confidence = 0.95);

// How many calls make one sample: enough that it lasts `min_sample_us`, and at most `limit`. A clock read costs about
// 0.05 us and jitters by as much, so that 200 us make it one part in some thousands.
int InnerRepeats(double call_us, double min_sample_us = 200, int limit = 100000);
// The same from calls timed one by one, of which disturbances only lengthen some: by the shortest. 1 where even that
// takes longer than `hopeless_us` (0: no time is): samples of what has lost anyway need not be long.
int InnerRepeatsOf(std::span<const double> calls_us, double min_sample_us, double hopeless_us);

// Pairs of interleaved timings, as the median of log(a / b): what drifts over both cancels.
struct PairedRatio {
  double ratio = 1;      // a / b
  double log_sigma = 0;  // standard deviation of one pair's log ratio, from the MAD
  double log_error = 0;  // of the median: 1.2533 * log_sigma / sqrt(pairs)
  int pairs = 0;
};
PairedRatio CompareInterleaved(std::span<const double> a, std::span<const double> b);

// A kernel's time from samples interleaved with those of an anchor kernel, whose time on a quiet machine is known: the
// ratio times that time. What slows the machine down slows both.
double ScaledByAnchor(std::span<const double> samples, std::span<const double> anchor, double anchor_quiet_us);

// One timed sample with what disturbed it.
struct TimedSample {
  double us = 0;                      // of one call
  uint32_t involuntary_switches = 0;  // another program ran on our CPU
  uint32_t major_faults = 0;          // a page was read from a disk
  uint32_t thread_moves = 0;          // the calling thread changed its CPU
};
// The times of the samples nothing disturbed: samples are dropped by cause, never by value. When more than
// `max_dropped` of them were disturbed the machine is `noisy` and the measurement is to be repeated later.
struct CleanSamples {
  std::vector<double> us;
  int dropped = 0;
  bool noisy = false;
};
CleanSamples DropDisturbed(std::span<const TimedSample> samples, double max_dropped = 0.3);

}  // namespace hone
