// Hours of fleet life in milliseconds: first safety while everything fails, then the faults stop and everything ends.
// A failing seed is the bug report: `--gtest_filter='*Everything*/N'` plays it again, event by event. HONE_SEEDS=1000
// plays that many.
#include <chrono>
#include <cstdlib>
#include <set>

#include "gtest/gtest.h"
#include "tests/tuner/dispatch/sim_world.h"

namespace hone {
namespace {

constexpr Micros kMinute = 60'000'000;

// Each seed draws its own rates, so that some worlds are calm in one respect and wild in another.
SimOptions Draw(uint64_t seed) {
  Random random(seed, 99);
  SimOptions options;
  options.workers = 1 + static_cast<int>(random.Below(5));
  options.kinds = options.workers > 1 && random.Chance(0.5) ? 2 : 1;
  options.credits = 1 + static_cast<int>(random.Below(10));
  options.space = 20 + static_cast<int>(random.Below(60));
  const auto rate = [&](double most) { return random.Chance(0.3) ? 0.0 : most * random.Uniform(); };
  options.drop = rate(0.25);
  options.repeat = rate(0.2);
  options.slow = rate(0.2);
  options.worker_crash = rate(0.05);
  options.worker_vanish = rate(0.02);
  options.lie = rate(0.2);
  options.infra = rate(0.1);
  options.search_crash = rate(0.4);
  options.daemon_crash = rate(0.01);
  options.prune = rate(0.02);
  options.poison = rate(0.03);
  options.wrong = rate(0.5);
  if (Random several(seed, 47); several.Chance(0.3)) options.tenants = 2 + static_cast<int>(several.Below(2));
  if (Random roles(seed, 31); roles.Chance(0.4)) {
    options.measure_only = 1 + static_cast<int>(roles.Below(options.workers));
    options.builders = 1 + static_cast<int>(roles.Below(3));
    options.build_poison = roles.Chance(0.3) ? 0 : 0.05 * roles.Uniform();
  }
  return options;
}

class DispatcherSim : public testing::TestWithParam<uint64_t> {};

TEST_P(DispatcherSim, EverythingEndsAndNothingIsLost) {
  const uint64_t seed = GetParam();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SimWorld world(seed, Draw(seed));
  Random random(seed, 7);
  const int jobs = 1 + static_cast<int>(random.Below(4));
  for (int i = 0; i < jobs; ++i) {
    world.Submit(1 + static_cast<int>(random.Below(4)), 5 + static_cast<int64_t>(random.Below(60)),
                 random.Chance(0.2) ? 60.0 + random.Below(600) : 0);
  }
  if (random.Chance(0.3)) world.StopSomeJobAt(static_cast<Micros>(random.Below(10 * kMinute)));
  world.RunFor(30 * kMinute);
  world.StopFaults();
  ASSERT_TRUE(world.RunFor(240 * kMinute, [&] { return world.AllJobsEnded(); })) << world.Describe();
  world.CheckEnd();
}
uint64_t Seeds() {
  const char* text = std::getenv("HONE_SEEDS");
  return text == nullptr ? 250 : std::strtoull(text, nullptr, 10);
}
INSTANTIATE_TEST_SUITE_P(Seeds, DispatcherSim, testing::Range<uint64_t>(0, Seeds()));

TEST(DispatcherSimTest, TheSameSeedGivesTheSameWorld) {
  uint64_t fingerprints[2];
  for (uint64_t& fingerprint : fingerprints) {
    SimWorld world(11, Draw(11));
    world.Submit(3, 40);
    world.RunFor(20 * kMinute);
    fingerprint = world.fingerprint();
  }
  EXPECT_EQ(fingerprints[0], fingerprints[1]);
}

TEST(DispatcherSimTest, BuildersFeedThoseThatOnlyMeasure) {
  SimWorld world(5, WithoutFaults({.workers = 4, .measure_only = 4, .builders = 2, .poison = 0}));
  world.Submit(4, 100);
  ASSERT_TRUE(world.RunFor(60 * kMinute, [&] { return world.AllJobsEnded(); })) << world.Describe();
  world.CheckEnd();
  int64_t measured = 0;
  for (const auto& [id, trial] : world.store().trials()) measured += trial.state == TrialState::kDone;
  EXPECT_GE(measured, 100);
  EXPECT_EQ(world.built_for_others(), measured) << "nothing is built twice where nothing is lost";
}

TEST(DispatcherSimTest, TwoThousandWorkersOfTwoClassesServeThreeTenants) {
  SimWorld world(9, WithoutFaults({.workers = 2000, .kinds = 2, .tenants = 3, .poison = 0}), /*check_every=*/5000);
  for (int i = 0; i < 12; ++i) world.Submit(4, 60);
  ASSERT_TRUE(world.RunFor(60 * kMinute, [&] { return world.AllJobsEnded(); })) << world.Describe();
  world.CheckEnd();
}

TEST(DispatcherSimTest, ASecondJobMeasuresNothingTwice) {
  const SimOptions calm = WithoutFaults({.workers = 1, .poison = 0, .wrong = 0.1});
  SimWorld world(3, calm);
  world.Submit(8, 60);  // all the workloads there are
  ASSERT_TRUE(world.RunFor(60 * kMinute, [&] { return world.AllJobsEnded(); })) << world.Describe();
  const size_t before = world.store().records().size();
  EXPECT_EQ(before, 60u);
  world.Submit(8, 60);
  ASSERT_TRUE(world.RunFor(60 * kMinute, [&] { return world.AllJobsEnded(); })) << world.Describe();
  EXPECT_EQ(world.store().records().size(), 120u) << "sixty new ones";
  std::set<std::pair<TuningKey, std::string>> measured;
  for (const auto& [id, trial] : world.store().trials()) {
    if (!trial.duel) { EXPECT_TRUE(measured.emplace(trial.key, trial.trace).second) << trial.trace; }
  }
  world.CheckEnd();
}

}  // namespace
}  // namespace hone
