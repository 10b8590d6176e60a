#include "tests/bench/load/soak.h"

#include <signal.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "compiler/support/check.h"
#include "compiler/support/random.h"
#include "database/sqlite/sqlite_connection.h"
#include "tests/bench/load/loaded_daemon.h"
#include "tests/processes.h"

namespace hone {
namespace {

constexpr double kMostGrowth = 1;     // MiB an hour, by more than twice the standard error of the slope
constexpr double kLeastMinutes = 30;  // of a soak whose memory is judged: twenty points

void DoSomeFault(Random& random, Load& load, LoadedDaemon& daemon, bool may_kill) {
  switch (random.Below(may_kill ? 5 : 4)) {
    case 0: return load.worker(random.Below(1 << 20)).Vanish();
    case 1:
      for (const pid_t search : ChildrenOf(daemon.pid())) ::kill(search, SIGKILL);
      return;
    case 2:
      daemon.Signal(SIGSTOP);
      absl::SleepFor(absl::Seconds(1));
      return daemon.Signal(SIGCONT);
    case 3:
      daemon.FillDisk();
      absl::SleepFor(absl::Seconds(2));
      return daemon.EmptyDisk();
    default: daemon.Kill(); daemon.Start();
  }
}

struct Slope {
  double slope = 0;
  double error = 0;  // its standard error
};

// Of a straight line through the points, by least squares.
Slope SlopeOf(const std::vector<std::pair<double, double>>& points) {
  const double n = static_cast<double>(points.size());
  if (n < 3) return {};
  double x = 0, y = 0, xx = 0, xy = 0, squares = 0;
  for (const auto& [at, value] : points) x += at / n, y += value / n;
  for (const auto& [at, value] : points) {
    xx += (at - x) * (at - x);
    xy += (at - x) * (value - y);
  }
  const double slope = xy / xx;
  for (const auto& [at, value] : points) squares += std::pow(value - y - slope * (at - x), 2);
  return {slope, std::sqrt(squares / (n - 2) / xx)};
}

// The lowest of each minute: what is in use for a moment, for the calls that are open, comes and goes.
std::vector<std::pair<double, double>> LowestByMinute(const std::vector<std::pair<double, double>>& by_hours) {
  std::map<int, std::pair<double, double>> lowest;
  for (const auto& [hours, value] : by_hours) {
    const auto found = lowest.try_emplace(static_cast<int>(hours * 60), hours, value).first;
    if (value < found->second.second) found->second = {hours, value};
  }
  std::vector<std::pair<double, double>> points;
  for (const auto& [minute, point] : lowest) points.push_back(point);
  return points;
}

// Of the trials that were acknowledged, those that the database does not know as ended.
int64_t LostOf(const std::string& database, const std::vector<uint64_t>& acked) {
  auto connection = SqliteConnection::Open(database, SqliteConnection::Mode::kWrite);
  HONE_CHECK(connection.ok()) << connection.status();
  int64_t lost = 0;
  for (const uint64_t id : acked) {
    const auto query = (*connection)->Prepare("SELECT 1 FROM trial WHERE id = ? AND state = 2");
    HONE_CHECK(query.ok()) << query.status();
    (*query)->Int(static_cast<int64_t>(id));
    const absl::StatusOr<bool> row = (*query)->Next();
    HONE_CHECK(row.ok()) << row.status();
    lost += !*row;
  }
  return lost;
}

}  // namespace

int Soak(const LoadBenchOptions& options, const TempFolder& folder) {
  LoadedDaemon daemon(options, folder);
  Load load("soak", options);
  Random random(1);
  std::vector<std::pair<double, double>> memory;  // by hours
  int faults = 0;
  const absl::Time began = absl::Now(), end = began + absl::Minutes(options.soak_minutes);
  for (int rounds = 0; absl::Now() < end; ++rounds) {
    absl::SleepFor(absl::Seconds(kSecondsOfRound));
    const absl::Duration elapsed = absl::Now() - began, third = (end - began) / 3;
    const bool settled = elapsed > third;
    DoSomeFault(random, load, daemon, !settled);
    daemon.CheckRuns();
    daemon.SubmitMore();
    ++faults;
    const double hours = absl::ToDoubleHours(absl::Now() - began);
    // What open jobs know is there again a job's life after the last start.
    if (elapsed > third + absl::Seconds(kSecondsOfRound * kRoundsOfJob)) memory.emplace_back(hours, daemon.MemoryMiB());
    if (rounds % 6 == 5) {
      std::printf("soak    %5.1f minutes, %d faults: memory %.1f MiB, %d descriptors, %lld acknowledged\n", hours * 60,
                  faults, daemon.MemoryMiB(), daemon.Descriptors(), static_cast<long long>(load.counts().acked.load()));
    }
  }
  daemon.Print();
  daemon.Kill();
  std::vector<uint64_t> acked;
  {
    const std::lock_guard<std::mutex> guard(load.counts().mutex);
    acked = load.counts().acked_trials;
  }
  const int64_t lost = LostOf(daemon.database(), acked);
  const Slope growth = SlopeOf(LowestByMinute(memory));
  const bool judged = options.soak_minutes >= kLeastMinutes;
  const bool grew = judged && growth.slope - 2 * growth.error > kMostGrowth;
  std::printf(
      "soak    memory grew by %.1f MiB an hour, give or take %.1f, after the first third and a job's life%s; %zu "
      "acknowledged, %lld lost\n",
      growth.slope, 2 * growth.error, judged ? "" : " (too short to judge)", acked.size(),
      static_cast<long long>(lost));
  return lost == 0 && !grew ? 0 : 1;
}

}  // namespace hone
