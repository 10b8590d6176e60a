#include "worker/measure/statistics.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/measure/race.h"

namespace hone {
namespace {

using ::testing::DoubleNear;

// Normal by Box and Muller.
double Normal(Random& random) {
  return std::sqrt(-2 * std::log(1 - random.Uniform())) * std::cos(6.283185307179586 * random.Uniform());
}

TEST(Statistics, MedianAndMad) {
  EXPECT_EQ(Median(std::vector<double>{3}), 3);
  EXPECT_EQ(Median(std::vector<double>{5, 1, 9}), 5);
  EXPECT_EQ(Median(std::vector<double>{4, 1, 9, 2}), 3);
  EXPECT_EQ(MedianAbsoluteDeviation(std::vector<double>{1, 2, 3, 4, 1000}), 1);
}

TEST(Statistics, IntervalOfMedianUsesTheRightRanks) {
  // From tables of the sign test: n = 10 at 95 %: 2nd and 9th; n = 20: 6th and 15th.
  std::vector<double> samples;
  for (int i = 1; i <= 10; ++i) samples.push_back(i);
  MedianInterval interval = ConfidenceOfMedian(samples);
  EXPECT_EQ(interval.low, 2);
  EXPECT_EQ(interval.high, 9);
  EXPECT_THAT(interval.confidence, DoubleNear(0.9785, 1e-3));
  for (int i = 11; i <= 20; ++i) samples.push_back(i);
  interval = ConfidenceOfMedian(samples);
  EXPECT_EQ(interval.low, 6);
  EXPECT_EQ(interval.high, 15);
  const MedianInterval few = ConfidenceOfMedian(std::vector<double>{1, 2, 3});
  EXPECT_EQ(few.low, 1);
  EXPECT_EQ(few.high, 3);
  EXPECT_THAT(few.confidence, DoubleNear(0.75, 1e-9));
  EXPECT_EQ(ConfidenceOfMedian(std::vector<double>{7}).confidence, 0);
}

TEST(Statistics, IntervalCoversTheTrueMedianAsOftenAsItSays) {
  Random random(1);
  int covered = 0;
  constexpr int kTrials = 2000;
  for (int t = 0; t < kTrials; ++t) {
    std::vector<double> samples;
    for (int i = 0; i < 15; ++i) samples.push_back(std::exp(0.5 * Normal(random)));  // skewed; its median is 1
    const MedianInterval interval = ConfidenceOfMedian(samples);
    covered += interval.low <= 1 && 1 <= interval.high;
  }
  EXPECT_GT(covered, 0.945 * kTrials);
}

TEST(Statistics, InnerRepeats) {
  EXPECT_EQ(InnerRepeats(1000), 1);
  EXPECT_EQ(InnerRepeats(200), 1);
  EXPECT_EQ(InnerRepeats(7), 29);
  EXPECT_EQ(InnerRepeats(0), 100000);
  EXPECT_EQ(InnerRepeats(std::nan("")), 100000);
}

TEST(Statistics, InnerRepeatsOfDisturbedCalls) {
  EXPECT_EQ(InnerRepeatsOf(std::vector{50.0, 4.0, 5.0}, 300, 8), 75);  // the first call woke the threads up
  EXPECT_EQ(InnerRepeatsOf(std::vector{50.0, 9.0}, 300, 8), 1);        // it has lost
  EXPECT_EQ(InnerRepeatsOf(std::vector{50.0}, 300, 0), 6);             // the champion, disturbed: a whole sample still
}

TEST(Statistics, DriftCancelsInPairs) {
  std::vector<double> a, b;
  for (int i = 0; i < 9; ++i) {
    const double drift = 1 + 0.1 * i;
    a.push_back(10 * drift);
    b.push_back(8 * drift);
  }
  EXPECT_THAT(CompareInterleaved(a, b).ratio, DoubleNear(1.25, 1e-9));
  EXPECT_THAT(CompareInterleaved(a, b).log_error, DoubleNear(0, 1e-9));
  EXPECT_THAT(ScaledByAnchor(a, b, 8), DoubleNear(10, 1e-9));
  a[4] *= 1.05;  // in the middle of its series, and one pair of nine
  EXPECT_THAT(CompareInterleaved(a, b).ratio, DoubleNear(1.25, 1e-9));
}

TEST(Statistics, SamplesAreDroppedByCause) {
  std::vector<TimedSample> samples(10, TimedSample{.us = 5});
  samples[3].us = 500;  // by value never
  samples[4].involuntary_switches = 1;
  samples[5].major_faults = 1;
  CleanSamples clean = DropDisturbed(samples);
  EXPECT_EQ(clean.us.size(), 8u);
  EXPECT_EQ(clean.dropped, 2);
  EXPECT_FALSE(clean.noisy);
  samples[6].thread_moves = 1;
  samples[7].thread_moves = 1;
  EXPECT_TRUE(DropDisturbed(samples).noisy);
}

// ---- races ----

struct Field {
  std::vector<double> challengers;  // true times
  double champion = 100;
  double sigma = 0.003;
  double spike_chance = 0;  // one sample takes 1.5 times as long
};

Race RunRace(const Field& field, bool has_champion, uint64_t seed, int* timings = nullptr,
             const RaceOptions& options = {}) {
  Race race(static_cast<int>(field.challengers.size()), has_champion, seed, options);
  Random noise(seed, 77);
  int count = 0;
  while (const std::optional<int> who = race.Next()) {
    const double truth = *who >= 0 ? field.challengers[*who] : field.champion;
    race.Add(truth * std::exp(field.sigma * Normal(noise)) * (noise.Chance(field.spike_chance) ? 1.5 : 1));
    if (++count > 10000) ADD_FAILURE() << "the race does not end";
    if (count > 10000) break;
  }
  if (timings != nullptr) *timings = count;
  return race;
}

TEST(Race, PlainLosersLeaveEarlyAndTheRestIsMeasured) {
  int timings = 0;
  const Race race = RunRace({.challengers = {300, 150, 101.0, 90}}, true, 5, &timings);
  EXPECT_EQ(race.state(0), RaceState::kLost);
  EXPECT_EQ(race.state(1), RaceState::kLost);
  EXPECT_EQ(race.samples(0).size(), 3u);
  EXPECT_EQ(race.state(3), RaceState::kMeasured);
  EXPECT_THAT(race.ratio(3)->ratio, DoubleNear(0.9, 0.01));
  EXPECT_GE(race.samples(3).size(), 3u);
  EXPECT_LE(timings, 12 * 6);
}

TEST(Race, SpikesNeitherCrownNorCondemn) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Race race = RunRace({.challengers = {100, 95}, .sigma = 0.004, .spike_chance = 0.03}, true, seed);
    wrong += race.state(1) == RaceState::kLost;               // the faster one
    if (race.ratio(0)) wrong += race.ratio(0)->ratio < 0.98;  // the equal one is no winner
  }
  EXPECT_LE(wrong, 2);
}

TEST(Race, ARoundInWhichTheChampionDiffersFromItselfCountsForNothing) {
  Race race(1, true, 1);
  for (int i = 0; i < 3; ++i) race.Add(*race.Next() == Race::kChampionB ? 150 : 100);
  EXPECT_EQ(race.bad_rounds(), 1);
  EXPECT_EQ(race.rounds(), 0);
  EXPECT_TRUE(race.samples(0).empty());
  for (int i = 0; i < 3 && race.Next().has_value(); ++i) race.Add(100);
  EXPECT_EQ(race.rounds(), 1);
}

TEST(Race, TooMuchNoiseEndsTheRace) {
  const Race race = RunRace({.challengers = {100}, .sigma = 0.5}, true, 3);
  EXPECT_TRUE(race.noisy());
  EXPECT_EQ(race.state(0), RaceState::kRunning);
}

TEST(Race, SomeNoiseTakesMoreRoundsAndStillDecides) {
  int wrong = 0, rounds = 0, quiet_rounds = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Race race = RunRace({.challengers = {100, 80, 200}, .sigma = 0.05}, true, seed);
    EXPECT_FALSE(race.noisy()) << seed;
    rounds += static_cast<int>(race.samples(1).size());
    quiet_rounds += static_cast<int>(RunRace({.challengers = {100, 80, 200}}, true, seed).samples(1).size());
    wrong += race.state(1) == RaceState::kLost || race.state(2) != RaceState::kLost;
    if (race.ratio(1).has_value()) wrong += std::abs(race.ratio(1)->ratio - 0.8) > 0.08;
  }
  EXPECT_GT(rounds, quiet_rounds);
  EXPECT_LE(wrong, 3);
}

TEST(Race, OnANoisyMachineTheSlowerLeaveSoonAndTheFasterAreKept) {
  double samples = 0;
  int missed = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Race race =
        RunRace({.challengers = {106, 106, 106, 106, 94}, .sigma = 0.03}, true, seed, nullptr, {.machine_sigma = 0.03});
    for (int slower = 0; slower < 4; ++slower) samples += static_cast<double>(race.samples(slower).size()) / 400;
    missed += race.state(4) == RaceState::kLost;
  }
  EXPECT_LE(samples, 6.5) << "of twelve rounds";
  EXPECT_LE(missed, 1);
}

TEST(Race, WithoutAChampionTheBestLeads) {
  const Race race = RunRace({.challengers = {200, 100, 140}}, false, 9);
  EXPECT_EQ(race.state(0), RaceState::kLost);
  EXPECT_EQ(race.state(1), RaceState::kMeasured);
  EXPECT_EQ(race.state(2), RaceState::kLost);
  EXPECT_FALSE(race.ratio(1).has_value());
}

TEST(Race, FailuresLeaveTheRest) {
  Race race(2, true, 1);
  int asked = 0;
  while (const std::optional<int> who = race.Next()) {
    if (*who == 0 && ++asked == 2) {
      race.Fail();
    } else {
      race.Add(*who == 1 ? 80 : 100);
    }
  }
  EXPECT_EQ(race.state(0), RaceState::kLost);
  EXPECT_EQ(race.state(1), RaceState::kMeasured);
  EXPECT_THAT(race.ratio(1)->ratio, DoubleNear(0.8, 1e-9));
}

TEST(Race, SameSeedSameRace) {
  int first = 0, second = 0;
  RunRace({.challengers = {120, 99, 101}, .spike_chance = 0.1}, true, 42, &first);
  RunRace({.challengers = {120, 99, 101}, .spike_chance = 0.1}, true, 42, &second);
  EXPECT_EQ(first, second);
}

TEST(Race, NobodyToRace) { EXPECT_EQ(Race(0, true, 1).Next(), std::nullopt); }

}  // namespace
}  // namespace hone
