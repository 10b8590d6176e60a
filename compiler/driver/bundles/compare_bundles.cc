#include "compiler/driver/bundles/compare_bundles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/driver/bundles/bundle_session.h"
#include "compiler/driver/time_runs.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/turn_lock.h"
#include "worker/measure/statistics.h"

namespace hone {
namespace {

// With twelve rounds this is the interval between the second and the eleventh: when nothing has changed, six
// comparisons in a thousand say that something has.
constexpr double kConfidence = 0.99;
constexpr double kSampleMs = 1;  // long against the clock, short against the time slice of a busy machine
constexpr double kSliceMs = 15;  // of one bundle without a break
constexpr int kSlices = 4;       // of each bundle in a round
constexpr int kSlicesOfLong = 2;

// One bundle in a round.
struct Contender {
  BundleSession session;
  int runs = 1;  // in a sample
  std::vector<TimedSample> samples;

  absl::StatusOr<double> Sample() {  // in milliseconds a run
    HONE_ASSIGN_OR_RETURN(const TimedSample sample, TakeSample([this] { return session.Run(); }, runs));
    samples.push_back(sample);
    return sample.us / 1e3;
  }
  // Of the samples that nothing disturbed; of all where everything was.
  double Ms() const {
    CleanSamples clean = DropDisturbed(samples);
    if (clean.us.empty()) {
      for (const TimedSample& sample : samples) clean.us.push_back(sample.us);
    }
    return Median(clean.us) / 1e3;
  }
};

absl::StatusOr<Contender> Loaded(const std::string& path, const CompareOptions& options) {
  HONE_ASSIGN_OR_RETURN(BundleSession session, BundleSession::Load(path, options.threads));
  if (!session.SizeNames().empty()) { HONE_RETURN_IF_ERROR(session.ChooseSizes(options.sizes)); }
  HONE_RETURN_IF_ERROR(session.SetRandomInputs(1));
  HONE_RETURN_IF_ERROR(session.Run());  // cold caches and unmapped pages
  return Contender{.session = std::move(session)};
}

// {before, after} in milliseconds a run. Every other round goes the other way round: being the first to be loaded or to
// run is worth something.
absl::StatusOr<std::array<double, 2>> Round(const std::string& before, const std::string& after,
                                            const CompareOptions& options, bool swapped) {
  const std::string& first_path = swapped ? after : before;
  const std::string& second_path = swapped ? before : after;
  HONE_ASSIGN_OR_RETURN(Contender first, Loaded(first_path, options));
  HONE_ASSIGN_OR_RETURN(Contender second, Loaded(second_path, options));
  const std::array<Contender*, 2> contenders = {&first, &second};
  int slices = kSlices, samples = 1;
  for (Contender* contender : contenders) {
    HONE_ASSIGN_OR_RETURN(const double ms, contender->Sample());
    contender->samples.clear();
    contender->runs = std::clamp(static_cast<int>(kSampleMs / std::max(ms, 1e-4)), 1, 100'000);
    samples = std::max(samples, static_cast<int>(kSliceMs / std::max(ms, kSampleMs)));
    if (ms > 2 * kSliceMs) slices = kSlicesOfLong;
  }
  for (int slice = 0; slice < slices; ++slice) {
    for (const int turn : {0, 1}) {  // A B, B A, A B, B A
      Contender& contender = *contenders[slice % 2 == 0 ? turn : 1 - turn];
      for (int i = 0; i < samples; ++i) HONE_RETURN_IF_ERROR(contender.Sample().status());
    }
  }
  if (swapped) return std::array<double, 2>{second.Ms(), first.Ms()};
  return std::array<double, 2>{first.Ms(), second.Ms()};
}

}  // namespace

std::string ToText(const SpeedUp& speed_up) {
  if (!speed_up.changed()) return absl::StrFormat("no measurable change (%.2f-%.2f)", speed_up.low, speed_up.high);
  return absl::StrFormat("%.2fx (%.2f-%.2f)", speed_up.ratio, speed_up.low, speed_up.high);
}

absl::StatusOr<SpeedUp> CompareBundles(const std::string& before, const std::string& after,
                                       const CompareOptions& options) {
  const auto phase = [&](const std::string& text) { return options.phase ? options.phase(text) : absl::OkStatus(); };
  HONE_ASSIGN_OR_RETURN(TurnLock lock, TurnLock::Open());
  const std::string holder = lock.Holder();
  HONE_RETURN_IF_ERROR(phase(absl::StrCat("waiting for the turn of this machine",
                                          holder.empty() ? "" : ", which " + holder + " has", " (before and after)")));
  const TurnLock::Turn turn(lock, TurnLock::Use::kAlone);
  std::vector<double> before_ms, after_ms, logs;
  for (int round = 0; round < options.rounds; ++round) {
    HONE_RETURN_IF_ERROR(
        phase(absl::StrCat("timing before and after in turn: round ", round + 1, " of ", options.rounds)));
    HONE_ASSIGN_OR_RETURN(const auto ms, Round(before, after, options, round % 2 == 1));
    before_ms.push_back(ms[0]);
    after_ms.push_back(ms[1]);
    logs.push_back(std::log(ms[0] / ms[1]));
  }
  const MedianInterval interval = ConfidenceOfMedian(logs, kConfidence);
  SpeedUp speed_up;
  speed_up.before_ms = Median(before_ms);
  speed_up.after_ms = Median(after_ms);
  speed_up.ratio = std::exp(Median(logs));
  speed_up.low = std::exp(interval.low);
  speed_up.high = std::exp(interval.high);
  speed_up.confidence = interval.confidence;
  speed_up.rounds = options.rounds;
  return speed_up;
}

}  // namespace hone
