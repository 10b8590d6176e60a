#include "compiler/driver/bundles/kernel_times.h"

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/driver/bundles/bundle_session.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "compiler/support/turn_lock.h"
#include "worker/measure/statistics.h"

namespace hone {
namespace {

constexpr int kSlices = 4;               // of each bundle in a round
constexpr double kSliceSeconds = 0.015;  // at least one run
constexpr int kRunsOfShort = 100;        // enough for a median

// Microseconds a run by symbol, of every run.
using Samples = std::map<std::string, std::vector<double>>;

absl::Status RunSlice(BundleSession& session, Samples* samples) {
  const Clock::time_point start = Clock::now();
  int runs = 0;
  do {
    HONE_ASSIGN_OR_RETURN(const std::vector<BundleSession::Step> steps, session.RunProfiled());
    std::map<std::string, double> us;
    for (const BundleSession::Step& step : steps) us[step.symbol] += step.us;
    for (const auto& [symbol, time] : us) (*samples)[symbol].push_back(time);
  } while (++runs < kRunsOfShort && SecondsSince(start) < kSliceSeconds);
  return absl::OkStatus();
}

absl::StatusOr<std::array<Samples, 2>> Round(const std::array<std::string, 2>& paths, int threads, int first) {
  std::array<Samples, 2> samples;
  std::array<std::optional<BundleSession>, 2> sessions;
  for (const int i : {first, 1 - first}) {
    HONE_ASSIGN_OR_RETURN(sessions[static_cast<size_t>(i)],
                          BundleSession::Load(paths[static_cast<size_t>(i)], threads));
    HONE_RETURN_IF_ERROR(sessions[static_cast<size_t>(i)]->SetRandomInputs(1));
    HONE_RETURN_IF_ERROR(sessions[static_cast<size_t>(i)]->Run());  // cold caches and unmapped pages
  }
  for (int slice = 0; slice < kSlices; ++slice) {
    for (const int turn : {0, 1}) {  // A B, B A, A B, B A
      const auto i = static_cast<size_t>((first + slice + turn) % 2);
      HONE_RETURN_IF_ERROR(RunSlice(*sessions[i], &samples[i]));
    }
  }
  return samples;
}

}  // namespace

absl::StatusOr<std::map<std::string, double>> KernelSpeedUps(const std::string& before, const std::string& after,
                                                             const CompareOptions& options) {
  const auto phase = [&](const std::string& text) { return options.phase ? options.phase(text) : absl::OkStatus(); };
  HONE_ASSIGN_OR_RETURN(TurnLock lock, TurnLock::Open());
  HONE_RETURN_IF_ERROR(phase("waiting for the turn of this machine (kernels in the model)"));
  const TurnLock::Turn turn(lock, TurnLock::Use::kAlone);
  std::map<std::string, std::vector<double>> logs;  // one for each round
  for (int round = 0; round < options.rounds; ++round) {
    HONE_RETURN_IF_ERROR(
        phase(absl::StrCat("timing the kernels inside the model: round ", round + 1, " of ", options.rounds)));
    HONE_ASSIGN_OR_RETURN(const auto samples, Round({before, after}, options.threads, round % 2));
    for (const auto& [symbol, us] : samples[0]) {
      const auto other = samples[1].find(symbol);
      if (other == samples[1].end()) continue;
      logs[symbol].push_back(std::log(Median(us) / Median(other->second)));
    }
  }
  std::map<std::string, double> speed_ups;
  for (const auto& [symbol, of_rounds] : logs) speed_ups[symbol] = std::exp(Median(of_rounds));
  return speed_ups;
}

}  // namespace hone
