#include "tuner/dispatch/rules/outcome_check.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/support/printable.h"
#include "compiler/support/sha256.h"

namespace hone {
namespace {

constexpr double kLongestUs = 3600e6;  // an hour: no candidate runs that long
constexpr size_t kMostDetailBytes = 4096;

constexpr double kMostDrift = 20;    // of a machine between two sessions
constexpr double kOffSamples = 1.5;  // a ratio of paired samples is not the ratio of their medians

bool IsTime(double us) { return std::isfinite(us) && us > 0 && us < kLongestUs; }
bool IsDuration(double seconds) { return std::isfinite(seconds) && seconds >= 0 && seconds < 86400; }

std::string TimingFault(const v1::Outcome& outcome, double implausible_below_us) {
  const v1::Timing& timing = outcome.timing();
  if (!IsTime(timing.median_us())) return absl::StrCat("median is ", timing.median_us(), " us");
  if (timing.samples_us_size() < kLeastSamples) return absl::StrCat("only ", timing.samples_us_size(), " samples");
  for (const float sample : timing.samples_us()) {
    if (!IsTime(sample)) return absl::StrCat("a sample is ", sample, " us");
  }
  if (!IsTime(timing.low_us()) || !IsTime(timing.high_us()) || timing.low_us() > timing.median_us() ||
      timing.high_us() < timing.median_us()) {
    return absl::StrCat("interval ", timing.low_us(), "..", timing.high_us(), " us does not hold the median ",
                        timing.median_us(), " us");
  }
  // In units of the champion's recorded time the median may lie off the samples by the machine's drift since then.
  const double drift = timing.anchor_ratio() > 0 ? timing.anchor_ratio() : 1;
  if (!(drift > 1 / kMostDrift && drift < kMostDrift)) return absl::StrCat("the machine's drift is ", drift);
  const auto [least, most] = std::minmax_element(timing.samples_us().begin(), timing.samples_us().end());
  if (timing.median_us() * drift < *least / kOffSamples || timing.median_us() * drift > *most * kOffSamples) {
    return absl::StrCat("median ", timing.median_us(), " us is not that of samples between ", *least, " and ", *most,
                        " us");
  }
  if (outcome.duel_ratio_high() > 0 &&
      !(outcome.duel_ratio_high() >= outcome.duel_ratio() && outcome.duel_ratio_low() <= outcome.duel_ratio())) {
    return absl::StrCat("interval ", outcome.duel_ratio_low(), "..", outcome.duel_ratio_high(),
                        " does not hold the duel's ratio ", outcome.duel_ratio());
  }
  if (timing.median_us() < implausible_below_us) {
    return absl::StrCat("median ", timing.median_us(), " us is below what the device can do (", implausible_below_us,
                        " us)");
  }
  return "";
}

}  // namespace

void DropOtherObject(v1::Outcome& outcome) {
  if (outcome.object().empty() || Sha256(outcome.object()) == outcome.object_digest()) return;
  outcome.clear_object();
  outcome.clear_kernel_set();
}

v1::Outcome CheckedOutcome(v1::Outcome outcome, double implausible_below_us) {
  if (outcome.kind() < v1::OUTCOME_OK || outcome.kind() > v1::OUTCOME_CANCELLED) {
    outcome.set_kind(v1::OUTCOME_INFRA);
    outcome.set_detail("an outcome of a kind this daemon does not know");
  }
  outcome.set_detail(std::string(Utf8Prefix(outcome.detail(), kMostDetailBytes)));
  for (double seconds : {outcome.build_seconds(), outcome.verify_seconds(), outcome.measure_seconds()}) {
    if (IsDuration(seconds)) continue;
    outcome.set_build_seconds(0);
    outcome.set_verify_seconds(0);
    outcome.set_measure_seconds(0);
  }
  if (outcome.kind() != v1::OUTCOME_OK) {
    outcome.clear_timing();
    return outcome;
  }
  // An interval is a courtesy: absent means the median alone.
  v1::Timing& timing = *outcome.mutable_timing();
  if (timing.low_us() == 0 && timing.high_us() == 0) {
    timing.set_low_us(timing.median_us());
    timing.set_high_us(timing.median_us());
  }
  if (timing.samples_us_size() > kMostSamples) timing.mutable_samples_us()->Truncate(kMostSamples);
  if (!std::isfinite(outcome.duel_ratio()) || outcome.duel_ratio() < 0) outcome.set_duel_ratio(0);
  const std::string fault = TimingFault(outcome, implausible_below_us);
  if (!fault.empty()) {
    outcome.set_kind(v1::OUTCOME_INVALID_TIMING);
    outcome.set_detail(fault);
    outcome.clear_timing();
  }
  return outcome;
}

}  // namespace hone
