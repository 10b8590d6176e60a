#include "tuner/search/candidates/legality.h"

#include <algorithm>

namespace hone {
namespace {

// Outcomes that the rate of the whole source counts for, beside those of the value itself.
constexpr double kPrior = 2;

}  // namespace

void Legality::Learn(const Point& point, bool failed) {
  const auto count = [failed](Tally& tally) {
    ++tally.points;
    tally.failed += failed ? 1 : 0;
  };
  count(by_source_[point.source]);
  for (size_t k = 0; k < point.choice.size(); ++k) count(by_value_[{point.source, k, point.choice[k]}]);
}

double Legality::RiskOf(const Point& point) const {
  const auto source = by_source_.find(point.source);
  if (source == by_source_.end() || source->second.failed == 0) return 0;
  const double rate = static_cast<double>(source->second.failed) / (source->second.points + 1);
  double risk = rate;
  for (size_t k = 0; k < point.choice.size(); ++k) {
    const auto value = by_value_.find({point.source, k, point.choice[k]});
    if (value == by_value_.end()) continue;
    risk = std::max(risk, (value->second.failed + kPrior * rate) / (value->second.points + kPrior));
  }
  return risk;
}

}  // namespace hone
