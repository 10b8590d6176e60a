#include "compiler/driver/compare_bundles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/driver/bundle_session.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/stopwatch.h"
#include "compiler/support/turn_lock.h"
#include "worker/measure/statistics.h"

namespace hone {
namespace {

// With twelve rounds this is the interval between the second and the eleventh: when nothing has changed, six
// comparisons in a thousand say that something has.
constexpr double kConfidence = 0.99;
constexpr double kSliceMs = 15;  // of one bundle without a break
constexpr int kSlices = 4;       // of each bundle in a round
constexpr int kSlicesOfLong = 2;

// Milliseconds a run, of `runs` one after the other.
absl::StatusOr<double> Slice(BundleSession& session, int runs) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < runs; ++i) HONE_RETURN_IF_ERROR(session.Run());
  return SecondsSince(start) * 1e3 / runs;
}

absl::StatusOr<BundleSession> Loaded(const std::string& path, int threads) {
  HONE_ASSIGN_OR_RETURN(BundleSession session, BundleSession::Load(path, threads));
  HONE_RETURN_IF_ERROR(session.SetRandomInputs(1));
  return session;
}

// {before, after} in milliseconds a run. Every other round goes the other way round: being the first to be loaded or to
// run is worth something.
absl::StatusOr<std::array<double, 2>> Round(const std::string& before, const std::string& after, int threads,
                                            bool swapped) {
  const std::string& first_path = swapped ? after : before;
  const std::string& second_path = swapped ? before : after;
  HONE_ASSIGN_OR_RETURN(BundleSession first, Loaded(first_path, threads));
  HONE_ASSIGN_OR_RETURN(BundleSession second, Loaded(second_path, threads));
  const std::array<BundleSession*, 2> sessions = {&first, &second};
  std::array<int, 2> runs{};
  int slices = kSlices;
  for (int i = 0; i < 2; ++i) {
    HONE_RETURN_IF_ERROR(sessions[i]->Run());  // cold caches and unmapped pages
    HONE_ASSIGN_OR_RETURN(const double ms, Slice(*sessions[i], 1));
    runs[i] = std::clamp(static_cast<int>(kSliceMs / std::max(ms, 1e-4)), 1, 100'000);
    if (ms > 2 * kSliceMs) slices = kSlicesOfLong;
  }
  std::array<std::vector<double>, 2> ms;
  for (int slice = 0; slice < slices; ++slice) {
    for (const int turn : {0, 1}) {  // A B, B A, A B, B A
      const int i = slice % 2 == 0 ? turn : 1 - turn;
      HONE_ASSIGN_OR_RETURN(const double taken, Slice(*sessions[i], runs[i]));
      ms[i].push_back(taken);
    }
  }
  const double of_first = Median(ms[0]), of_second = Median(ms[1]);
  if (swapped) return std::array<double, 2>{of_second, of_first};
  return std::array<double, 2>{of_first, of_second};
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
  const TurnLock::Turn turn(lock);
  std::vector<double> before_ms, after_ms, logs;
  for (int round = 0; round < options.rounds; ++round) {
    HONE_RETURN_IF_ERROR(
        phase(absl::StrCat("timing before and after in turn: round ", round + 1, " of ", options.rounds)));
    HONE_ASSIGN_OR_RETURN(const auto ms, Round(before, after, options.threads, round % 2 == 1));
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
