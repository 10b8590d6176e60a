#include "worker/measure/timed_race.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

// Calls of a kernel shorter than a sample, to see how many make one.
constexpr int kShortCalls = 8;
// This much slower than the champion, and samples need not be long.
constexpr double kHopeless = 2.0;
// A first call, which nothing has warmed up, is a sample where it is slower than the champion by more than that
// explains.
constexpr double kPlainlySlower = 1.25;
// Warming up is left out where the operands come back in less than this share of a call.
constexpr double kColdShare = 0.1;

// One kernel of the race.
struct Runner {
  double first_us = 0;            // its first call, of a long kernel
  std::optional<double> waiting;  // that call, when it counts as the first sample
  int warm_up = 1, inner = 1;     // of every sample
};

class Starter {
 public:
  Starter(const TimedRaceOptions& options, const TimeCalls& time) : options_(options), time_(time) {}

  // What a kernel takes, by its first calls; nullopt: it failed.
  std::optional<Runner> Start(int who, double rival_us) const {
    std::optional<std::vector<double>> calls = time_(who, 0, 1, 1);
    if (!calls.has_value() || calls->empty()) return std::nullopt;
    Runner runner;
    runner.first_us = calls->front();
    if (runner.first_us >= options_.long_us) {
      runner.warm_up = options_.cold_us <= kColdShare * runner.first_us ? 0 : 1;
      return runner;
    }
    // A short call is mostly what wakes its threads up: the best of some tells more.
    calls = time_(who, 0, runner.first_us < options_.sample_us ? kShortCalls : 1, 1);
    if (!calls.has_value() || calls->empty()) return std::nullopt;
    runner.inner = InnerRepeatsOf(*calls, options_.sample_us, kHopeless * rival_us);
    runner.first_us = *std::min_element(calls->begin(), calls->end());
    return runner;
  }

 private:
  const TimedRaceOptions& options_;
  const TimeCalls& time_;
};

}  // namespace

TimedRace RunTimedRace(int challengers, bool has_champion, uint64_t seed, TimedRaceOptions options,
                       const TimeCalls& time) {
  const Starter starter(options, time);
  // The champion is what others are compared with: its samples are whole ones whatever it seems to take now.
  std::optional<Runner> champion;
  if (has_champion) champion = starter.Start(Race::kChampionA, 0);
  std::vector<int> entries;
  std::vector<Runner> runners;
  double rival_us = champion.has_value() ? champion->first_us : 0;
  for (int i = 0; i < challengers; ++i) {
    std::optional<Runner> runner = starter.Start(i, options.champion_us);
    if (!runner.has_value()) continue;
    entries.push_back(i);
    runners.push_back(*runner);
  }
  if (rival_us == 0) {
    for (const Runner& runner : runners)
      rival_us = rival_us == 0 ? runner.first_us : std::min(rival_us, runner.first_us);
  }
  for (Runner& runner : runners) {
    if (runner.first_us >= options.long_us && runner.first_us > kPlainlySlower * rival_us)
      runner.waiting = runner.first_us;
  }
  if (rival_us >= options.long_us) {
    const int rounds = static_cast<int>(options.round_us / rival_us);
    options.race.max_rounds = std::clamp(rounds, options.race.min_rounds, options.race.max_rounds);
  }
  TimedRace timed{Race(static_cast<int>(entries.size()), champion.has_value(), seed, options.race), entries};
  Race& race = timed.race;
  while (const std::optional<int> next = race.Next()) {
    Runner& runner = *next < 0 ? *champion : runners[static_cast<size_t>(*next)];
    if (runner.waiting.has_value()) {
      race.Add(*runner.waiting);
      runner.waiting.reset();
      continue;
    }
    const int who = *next < 0 ? Race::kChampionA : entries[static_cast<size_t>(*next)];
    const std::optional<std::vector<double>> sample = time(who, runner.warm_up, 1, runner.inner);
    if (sample.has_value() && !sample->empty()) {
      race.Add(sample->front());
    } else {
      race.Fail();
    }
  }
  return timed;
}

}  // namespace hone
