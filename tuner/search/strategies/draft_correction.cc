#include "tuner/search/strategies/draft_correction.h"

#include <algorithm>

namespace hone {
namespace {

constexpr int kRounds = 6;
// Samples of no effect that each effect is drawn to.
constexpr double kSourcePrior = 1;
constexpr double kValuePrior = 3;
constexpr double kMostAway = 2.0;  // from the median: one that is slower than that by e says no more than that

}  // namespace

DraftCorrection DraftCorrection::Fit(const std::vector<Sample>& samples) {
  DraftCorrection found;
  if (samples.empty()) return found;
  std::vector<double> rest;
  for (const Sample& sample : samples) rest.push_back(sample.log_ratio);
  std::vector<double> sorted = rest;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  const double median = sorted[sorted.size() / 2];
  double sum = 0;
  for (double& r : rest) sum += r = std::clamp(r, median - kMostAway, median + kMostAway);
  found.mean_ = sum / static_cast<double>(rest.size());
  for (double& r : rest) r -= found.mean_;

  // One effect after the other takes what is left of its samples, less what the prior holds back.
  const auto refit = [&](std::vector<size_t> const& members, double prior, double* effect) {
    double left = 0;
    for (const size_t i : members) left += rest[i] + *effect;
    const double now = left / (static_cast<double>(members.size()) + prior);
    for (const size_t i : members) rest[i] += *effect - now;
    *effect = now;
  };
  std::map<size_t, std::vector<size_t>> of_source;
  std::map<std::tuple<size_t, size_t, int>, std::vector<size_t>> of_value;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Point& point = samples[i].point;
    of_source[point.source].push_back(i);
    for (size_t k = 0; k < point.choice.size(); ++k) of_value[{point.source, k, point.choice[k]}].push_back(i);
  }
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& [source, members] : of_source) refit(members, kSourcePrior, &found.by_source_[source]);
    for (const auto& [value, members] : of_value) refit(members, kValuePrior, &found.by_value_[value]);
  }
  return found;
}

double DraftCorrection::Of(const Point& point) const {
  double sum = mean_;
  if (const auto source = by_source_.find(point.source); source != by_source_.end()) sum += source->second;
  for (size_t k = 0; k < point.choice.size(); ++k) {
    const auto value = by_value_.find({point.source, k, point.choice[k]});
    if (value != by_value_.end()) sum += value->second;
  }
  return sum;
}

}  // namespace hone
