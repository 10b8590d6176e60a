// A race with its calls: how many warm a kernel up, how many make a sample, and how many rounds it is worth.
//
// Calls of short kernels are cheap, so that samples are made of many and every one follows a call that warms up. Calls
// of long kernels are what measuring costs. For them a call is a sample; what others left in the caches weighs little
// and weighs on all alike, so that nothing is warmed up between samples; a race has fewer rounds; and whoever is
// plainly slower at the first call has three calls in all. Only runs of kernels are counted here: no clock, no process.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "worker/measure/race.h"

namespace hone {

struct TimedRaceOptions {
  RaceOptions race;
  double champion_us = 0;     // as recorded; 0: not known
  double cold_us = 0;         // to bring all operands back into the caches
  double sample_us = 300;     // a sample lasts at least so long
  double long_us = 5000;      // a call this long is a long one
  double round_us = 130'000;  // of calls of the champion: a race of long calls has so many rounds, or the least
};

// Times kernel `who` (Race's numbers; the champion is kChampionA): `warm_up` calls, then `samples` of `inner` calls
// each. Microseconds of one call, for each sample; nullopt: it failed.
using TimeCalls = std::function<std::optional<std::vector<double>>(int who, int warm_up, int samples, int inner)>;

struct TimedRace {
  Race race;
  std::vector<int> entries;  // the challenger behind each number of the race: who failed before it began is not in it
};
TimedRace RunTimedRace(int challengers, bool has_champion, uint64_t seed, TimedRaceOptions options,
                       const TimeCalls& time);

}  // namespace hone
