// Races with their calls counted, on made-up kernels: true times, log-normal noise, and a first call that is slower.
#include "worker/measure/timed_race.h"

#include <cmath>
#include <map>

#include "compiler/support/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

double Normal(Random& random) {
  return std::sqrt(-2 * std::log(1 - random.Uniform())) * std::cos(6.283185307179586 * random.Uniform());
}

// A machine that runs kernels by their true times; the champion is the last.
class FakeMachine {
 public:
  FakeMachine(std::vector<double> times_us, double sigma, uint64_t seed)
      : times_(std::move(times_us)), sigma_(sigma), random_(seed, 5) {}

  TimeCalls calls() {
    return [this](int who, int warm_up, int samples, int inner) -> std::optional<std::vector<double>> {
      const int kernel = who < 0 ? static_cast<int>(times_.size()) - 1 : who;
      if (failing == kernel) return std::nullopt;
      std::vector<double> us;
      for (int s = 0; s < samples; ++s) {
        const bool cold = runs[kernel] == 0 && warm_up == 0 && s == 0;
        us.push_back(times_[static_cast<size_t>(kernel)] * std::exp(sigma_ * Normal(random_)) * (cold ? 1.08 : 1));
      }
      runs[kernel] += warm_up + samples * inner;
      return us;
    };
  }
  double spent_us() const {
    double us = 0;
    for (const auto& [kernel, count] : runs) us += count * times_[static_cast<size_t>(kernel)];
    return us;
  }

  std::map<int, int> runs;
  int failing = -5;

 private:
  std::vector<double> times_;
  double sigma_;
  Random random_;
};

constexpr double kLong = 41'000;

TEST(TimedRace, APlainLoserOfALongKernelRunsThreeTimes) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    FakeMachine machine({2 * kLong, 1.5 * kLong, 5 * kLong, kLong}, 0.005, seed);
    const TimedRace timed = RunTimedRace(3, true, seed, {.champion_us = kLong}, machine.calls());
    for (int challenger = 0; challenger < 3; ++challenger) {
      EXPECT_EQ(timed.race.state(challenger), RaceState::kLost);
      EXPECT_EQ(timed.race.samples(challenger).size(), 3u);
      EXPECT_EQ(machine.runs[challenger], 3);
    }
    EXPECT_LE(machine.runs[3], 7);
  }
}

TEST(TimedRace, ATrialOfALongKernelIsEightRunsAtMostOnAverage) {
  constexpr int kVerifying = 2, kBatch = 8;
  double runs = 0, trials = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    std::vector<double> times;
    for (int i = 0; i < kBatch; ++i) times.push_back(kLong * std::exp(0.6 * random.Uniform() - 0.02));
    times.push_back(kLong);
    FakeMachine machine(times, 0.01, seed);
    RunTimedRace(kBatch, true, seed, {.champion_us = kLong}, machine.calls());
    for (const auto& [kernel, count] : machine.runs) runs += count;  // the champion's are the trials' too
    runs += kVerifying * kBatch;
    trials += kBatch;
  }
  EXPECT_LE(runs / trials, 8);
}

TEST(TimedRace, ShortKernelsHaveLongSamples) {
  FakeMachine machine({100, 300, 90}, 0.003, 1);
  const TimedRace timed = RunTimedRace(2, true, 1, {.champion_us = 90}, machine.calls());
  EXPECT_EQ(timed.race.state(1), RaceState::kLost);
  EXPECT_GE(machine.runs[0], 3 * 4) << "300 us of calls of 100 us, and one to warm up";
  EXPECT_GE(machine.runs[2], 2 * 3 * 5);
}

TEST(TimedRace, OperandsThatTakeLongToComeBackAreWarmedUp) {
  FakeMachine warm({kLong, kLong}, 0.003, 1), cold({kLong, kLong}, 0.003, 1);
  RunTimedRace(1, true, 1, {.champion_us = kLong, .cold_us = 0.05 * kLong}, warm.calls());
  RunTimedRace(1, true, 1, {.champion_us = kLong, .cold_us = 0.5 * kLong}, cold.calls());
  EXPECT_GT(cold.runs[1], 1.8 * warm.runs[1]);
}

TEST(TimedRace, WhoFailsAtItsFirstCallIsNotInTheRace) {
  FakeMachine machine({kLong, 0.9 * kLong, kLong}, 0.003, 1);
  machine.failing = 0;
  const TimedRace timed = RunTimedRace(2, true, 1, {.champion_us = kLong}, machine.calls());
  EXPECT_THAT(timed.entries, testing::ElementsAre(1));
  EXPECT_EQ(timed.race.state(0), RaceState::kMeasured);
  FakeMachine alone({kLong, 2 * kLong, kLong}, 0.003, 1);
  alone.failing = 2;  // the champion: challengers race each other
  const TimedRace rest = RunTimedRace(2, true, 1, {.champion_us = kLong}, alone.calls());
  EXPECT_EQ(rest.race.state(0), RaceState::kMeasured);
  EXPECT_EQ(rest.race.state(1), RaceState::kLost);
}

// The race alone says "faster" of an equal kernel seldom, and never "lost" of a faster one.
TEST(TimedRace, FewRunsDoNotCrownAnEqualKernel) {
  int crowned = 0, missed = 0;
  constexpr int kSeeds = 400;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    FakeMachine machine({kLong, 0.95 * kLong, kLong}, 0.008, seed);
    const TimedRace timed = RunTimedRace(2, true, seed, {.champion_us = kLong}, machine.calls());
    if (timed.race.noisy()) continue;
    crowned += timed.race.ratio(0).has_value() && timed.race.ratio(0)->ratio < 0.97;
    missed += timed.race.state(1) == RaceState::kLost;
  }
  EXPECT_LE(crowned, kSeeds / 100);
  EXPECT_EQ(missed, 0);
}

// Batches and duels over a pool, as the daemon and the worker go through it together: a challenger that seems faster
// duels, and takes the champion's place when the duel's interval says so.
TEST(TimedRace, TheWinnerOfAPoolIsNearTheBest) {
  constexpr int kPool = 500, kBatch = 8, kSeeds = 60;
  int far = 0;
  double spent = 0, own = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random(seed, 9);
    std::vector<double> pool;
    for (int i = 0; i < kPool; ++i) pool.push_back(kLong * std::exp(std::abs(0.4 * Normal(random))));
    double champion = pool[0];
    for (int begin = 1; begin < kPool; begin += kBatch) {
      std::vector<double> times(pool.begin() + begin, pool.begin() + std::min(begin + kBatch, kPool));
      const int count = static_cast<int>(times.size());
      for (const double us : times) own += us;
      times.push_back(champion);
      FakeMachine machine(times, 0.01, seed * 1000 + static_cast<uint64_t>(begin));
      const TimedRace timed = RunTimedRace(count, true, seed, {.champion_us = champion}, machine.calls());
      spent += machine.spent_us();
      int best = -1;
      for (size_t k = 0; k < timed.entries.size(); ++k) {
        const std::optional<PairedRatio> ratio = timed.race.ratio(static_cast<int>(k));
        if (!ratio.has_value() || ratio->ratio > 0.99) continue;
        if (best < 0 || ratio->ratio < timed.race.ratio(best)->ratio) best = static_cast<int>(k);
      }
      if (best < 0) continue;
      const double challenger = times[static_cast<size_t>(timed.entries[static_cast<size_t>(best)])];
      FakeMachine duel({challenger, champion}, 0.01, seed * 1000 + static_cast<uint64_t>(begin) + 1);
      TimedRaceOptions options{.champion_us = champion};
      options.race.min_rounds = 8;
      options.race.max_rounds = 24;
      options.round_us = 500'000;
      const TimedRace fought = RunTimedRace(1, true, seed, options, duel.calls());
      spent += duel.spent_us();
      const std::optional<PairedRatio> ratio = fought.race.ratio(0);
      if (ratio.has_value() && ratio->ratio * std::exp(2 * ratio->log_error) < 1) champion = challenger;
    }
    far += champion > 1.015 * *std::min_element(pool.begin(), pool.end());
  }
  EXPECT_LE(far, kSeeds / 20);
  EXPECT_LE(spent / own, 6) << "runs of their own kernels, duels and champions included, verifying not";
}

}  // namespace
}  // namespace hone
