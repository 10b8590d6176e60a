// The formulas: where the next batch goes, the roofline, what a worker may claim.
#include <cmath>
#include <limits>

#include "compiler/support/sha256.h"
#include "gtest/gtest.h"
#include "tuner/dispatch/rules/outcome_check.h"
#include "tuner/dispatch/state/roofline.h"
#include "tuner/dispatch/state/task_scheduler.h"

namespace hone {
namespace {

TaskProgress Task(double weight, double best_us, double bound_us = 0, std::vector<double> rounds = {}) {
  TaskProgress task;
  task.weight = weight;
  task.best_us = best_us;
  task.lower_bound_us = bound_us;
  task.rounds = std::move(rounds);
  task.searched = true;
  task.seconds_per_trial = 0.5;
  task.flop = 1e6;
  return task;
}

TEST(GainPerSecond, FollowsTheFormula) {
  const DispatchOptions options;  // alpha 0.2, window 3, batches of 16
  const TaskProgress task = Task(2, 100, 45, {160, 130, 120, 100});
  // Backward: (160 - 100) / 3 = 20. Forward: 100 / 5 rounds = 20, below the gap to the bound, 100 - 45 / 0.9 = 50.
  EXPECT_DOUBLE_EQ(GainPerSecond(task, 0, options), 2 * (0.2 * 20 + 0.8 * 20) / (0.5 * 16));
}
TEST(GainPerSecond, IsCappedByTheRoofline) {
  const DispatchOptions options;
  EXPECT_DOUBLE_EQ(GainPerSecond(Task(1, 100, 90, {100, 100}), 0, options), 0) << "nothing is left to gain";
  EXPECT_GT(GainPerSecond(Task(1, 100, 30, {100, 100}), 0, options), 0);
}
TEST(GainPerSecond, ATaskFarBehindItsKinIsExpectedToCatchUp) {
  const DispatchOptions options;
  const TaskProgress task = Task(1, 1000, 0, {4000, 3000, 2000, 1000});
  const double alone = GainPerSecond(task, 0, options);
  // Kin reach 10000 flop/us: 100 us for this one, 200 with beta; 800 us to gain.
  EXPECT_DOUBLE_EQ(GainPerSecond(task, 10'000, options), (0.2 * 1000 + 0.8 * 800) / (0.5 * 16));
  EXPECT_GT(GainPerSecond(task, 10'000, options), alone);
}
TEST(GainPerSecond, IsPerSecond) {
  const DispatchOptions options;
  TaskProgress slow = Task(1, 100), quick = Task(1, 100);
  slow.seconds_per_trial = 2;
  quick.seconds_per_trial = 0.2;
  EXPECT_DOUBLE_EQ(GainPerSecond(quick, 0, options), 10 * GainPerSecond(slow, 0, options));
}

TEST(GainPerSecond, IsHalvedByEveryRoundWithoutAGain) {
  const DispatchOptions options;
  const double fresh = GainPerSecond(Task(1, 1000, 0, {2000, 1500, 1200, 1000}), 100'000, options);
  const double stale = GainPerSecond(Task(1, 1000, 0, {1000, 1000, 1000, 1000}), 100'000, options);
  // Kin reach 100,000 flop/us: 980 us are hoped for, and three rounds have shown none of it.
  EXPECT_DOUBLE_EQ(stale, 0.8 * 980 / 8 / (0.5 * 16));
  EXPECT_GT(fresh, 7 * stale);
}

// 61 % of the model's time lie in two tasks that gain with every round; a third is far behind its kin and stays there.
TEST(PickTask, GoesWhereTheModelGains) {
  const DispatchOptions options;
  std::vector<TaskProgress> tasks = {Task(1, 390, 0, {390}), Task(1, 310, 0, {310}), Task(1, 300, 0, {300})};
  tasks[0].flop = 1e6;
  tasks[1].flop = tasks[2].flop = 2e7;
  std::vector<int> batches(3);
  for (int round = 0; round < 8; ++round) {
    const int chosen = PickTask(tasks, {true, true, true}, options);
    ASSERT_GE(chosen, 0);
    ++batches[chosen];
    TaskProgress& task = tasks[chosen];
    if (chosen != 0) task.best_us *= 0.93;
    task.rounds.push_back(task.best_us);
  }
  EXPECT_LE(batches[0], 3) << "of 8 batches to the task that gains nothing";
  EXPECT_GE(batches[1], 2);
  EXPECT_GE(batches[2], 2);
}

TEST(PickTask, GoesRoundOnceThenByGain) {
  const DispatchOptions options;
  std::vector<TaskProgress> tasks = {Task(1, 50), Task(4, 40), Task(1, 0.1)};
  for (TaskProgress& task : tasks) task.searched = false;
  EXPECT_EQ(PickTask(tasks, {true, true, true}, options), 1) << "the largest share first";
  tasks[1].searched = true;
  EXPECT_EQ(PickTask(tasks, {true, true, true}, options), 0);
  tasks[0].searched = true;
  EXPECT_EQ(PickTask(tasks, {true, true, true}, options), 1) << "a negligible task is left out of the round";
  EXPECT_EQ(PickTask(tasks, {false, false, true}, options), 2) << "but not for ever";
  EXPECT_EQ(PickTask(tasks, {false, false, false}, options), -1);
}

TEST(KindOfName, IsTheNameUpToItsNumbers) {
  EXPECT_EQ(KindOfName("conv2d_3x3_s1_64x56x56_add_relu"), "conv2d");
  EXPECT_EQ(KindOfName("batch_matmul_12x128"), "batch_matmul");
  EXPECT_EQ(KindOfName("softmax"), "softmax");
  EXPECT_EQ(KindOfName("3x3"), "3x3");
  EXPECT_EQ(KindOfName(""), "");
}

TEST(Roofline, IsTheSlowerOfArithmeticAndTraffic) {
  v1::DeviceProfile device;
  EXPECT_EQ(LowerBoundUs(1e9, 1e9, device, 2), 0) << "unknown peaks";
  device.set_cores(4);
  device.set_peak_gflops_1(50);
  device.set_peak_gflops_all(160);
  device.set_l1d_bytes(10'000);
  device.set_l2_bytes(1'000'000);
  device.set_l3_bytes(30'000'000);
  for (const double gbps : {200.0, 100.0, 40.0, 15.0}) device.add_moved_gbps_1(gbps);
  for (const double gbps : {800.0, 400.0, 80.0, 20.0}) device.add_moved_gbps_all(gbps);
  EXPECT_DOUBLE_EQ(LowerBoundUs(1e9, 1e3, device, 1), 1e9 / 50e3);
  EXPECT_DOUBLE_EQ(LowerBoundUs(1e9, 1e3, device, 2), 1e9 / 100e3);
  EXPECT_DOUBLE_EQ(LowerBoundUs(1e9, 1e3, device, 4), 1e9 / 160e3);
  EXPECT_DOUBLE_EQ(LowerBoundUs(1e3, 1e3, device, 4), 1e3 / 160e3);
  EXPECT_DOUBLE_EQ(LowerBoundUs(0, 40e3, device, 4), 40e3 / 800e3) << "fits the first caches";
  EXPECT_DOUBLE_EQ(LowerBoundUs(0, 4e6, device, 4), (4e6 - 40e3) / 400e3) << "what they cannot hold";
  EXPECT_DOUBLE_EQ(LowerBoundUs(0, 20e6, device, 4), (20e6 - 4.04e6) / 80e3);
  EXPECT_DOUBLE_EQ(LowerBoundUs(0, 1e9, device, 4), (1e9 - 34.04e6) / 20e3);
  EXPECT_DOUBLE_EQ(LowerBoundUs(0, 1e9, device, 1), (1e9 - 31.01e6) / 15e3) << "one thread, its own caches and rates";
  EXPECT_DOUBLE_EQ(LowerBoundUs(0, 1e9, device, 2), (1e9 - 32.02e6) / 20e3) << "two cannot read more than all";
}

v1::Outcome Good() {
  v1::Outcome outcome;
  outcome.set_kind(v1::OUTCOME_OK);
  outcome.mutable_timing()->set_median_us(10);
  outcome.mutable_timing()->set_low_us(9.5);
  outcome.mutable_timing()->set_high_us(10.5);
  for (int i = 0; i < 5; ++i) outcome.mutable_timing()->add_samples_us(10);
  return outcome;
}

TEST(CheckedOutcome, HonestOnesPass) {
  EXPECT_EQ(CheckedOutcome(Good(), 5).kind(), v1::OUTCOME_OK);
  v1::Outcome plain = Good();
  plain.mutable_timing()->clear_low_us();
  plain.mutable_timing()->clear_high_us();
  EXPECT_EQ(CheckedOutcome(plain, 0).kind(), v1::OUTCOME_OK);
  EXPECT_EQ(CheckedOutcome(plain, 0).timing().low_us(), 10);
}

// Whoever is shown it reads it from a message.
TEST(CheckedOutcome, AReasonThatIsCutStaysText) {
  v1::Outcome outcome;
  outcome.set_kind(v1::OUTCOME_INFRA);
  outcome.set_detail(std::string(4095, 'd') + "\u20ac" + "more");
  const v1::Outcome checked = CheckedOutcome(outcome, 0);
  EXPECT_EQ(checked.detail(), std::string(4095, 'd'));
  EXPECT_TRUE(v1::Outcome().ParseFromString(checked.SerializeAsString()));
}

TEST(CheckedOutcome, EveryHostileTimeIsRefused) {
  const double hostile[] = {
      std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -1.0, 0.0, 1e300,
      -std::numeric_limits<double>::infinity()};
  for (const double value : hostile) {
    v1::Outcome outcome = Good();
    outcome.mutable_timing()->set_median_us(value);
    EXPECT_EQ(CheckedOutcome(outcome, 0).kind(), v1::OUTCOME_INVALID_TIMING) << value;
    EXPECT_FALSE(CheckedOutcome(outcome, 0).has_timing());
    outcome = Good();
    outcome.mutable_timing()->set_samples_us(2, static_cast<float>(value));
    EXPECT_EQ(CheckedOutcome(outcome, 0).kind(), v1::OUTCOME_INVALID_TIMING) << value;
    outcome = Good();
    outcome.mutable_timing()->set_low_us(value);
    if (!(value > 0 && value < 10)) {
      EXPECT_EQ(CheckedOutcome(outcome, 0).kind(), v1::OUTCOME_INVALID_TIMING) << value;
    }
    outcome = Good();
    outcome.set_build_seconds(value);
    const v1::Outcome checked = CheckedOutcome(outcome, 0);
    EXPECT_TRUE(std::isfinite(checked.build_seconds()) && checked.build_seconds() >= 0 &&
                checked.build_seconds() < 1e5);
    outcome.set_duel_ratio(value);
    EXPECT_TRUE(std::isfinite(CheckedOutcome(outcome, 0).duel_ratio()) && CheckedOutcome(outcome, 0).duel_ratio() >= 0);
  }
}

TEST(CheckedOutcome, AnObjectThatIsNotWhatWasMeasuredIsDropped) {
  v1::Outcome outcome = Good();
  outcome.set_object("its bytes");
  outcome.set_kernel_set("its kernels");
  outcome.set_object_digest(Sha256("its bytes"));
  DropOtherObject(outcome);
  EXPECT_EQ(outcome.object(), "its bytes");
  outcome.set_object("other bytes");
  DropOtherObject(outcome);
  EXPECT_EQ(outcome.object(), "");
  EXPECT_EQ(outcome.kernel_set(), "");
  EXPECT_EQ(outcome.object_digest(), Sha256("its bytes")) << "what was measured stays stated";
}

TEST(CheckedOutcome, ImpossibleOnesAreRefused) {
  EXPECT_EQ(CheckedOutcome(Good(), 11).kind(), v1::OUTCOME_INVALID_TIMING);
  v1::Outcome few = Good();
  few.mutable_timing()->mutable_samples_us()->Truncate(2);
  EXPECT_EQ(CheckedOutcome(few, 0).kind(), v1::OUTCOME_INVALID_TIMING);
  v1::Outcome swapped = Good();
  swapped.mutable_timing()->set_low_us(11);
  EXPECT_EQ(CheckedOutcome(swapped, 0).kind(), v1::OUTCOME_INVALID_TIMING);
  v1::Outcome elsewhere = Good();  // the samples are of something else
  for (float& sample : *elsewhere.mutable_timing()->mutable_samples_us()) sample *= 3;
  EXPECT_EQ(CheckedOutcome(elsewhere, 0).kind(), v1::OUTCOME_INVALID_TIMING);
  elsewhere.mutable_timing()->set_anchor_ratio(3);  // or the machine is three times slower today
  EXPECT_EQ(CheckedOutcome(elsewhere, 0).kind(), v1::OUTCOME_OK);
  elsewhere.mutable_timing()->set_anchor_ratio(1e6);
  EXPECT_EQ(CheckedOutcome(elsewhere, 0).kind(), v1::OUTCOME_INVALID_TIMING);
  v1::Outcome ratio = Good();
  ratio.set_duel_ratio(0.5);
  ratio.set_duel_ratio_low(0.8);
  ratio.set_duel_ratio_high(0.9);
  EXPECT_EQ(CheckedOutcome(ratio, 0).kind(), v1::OUTCOME_INVALID_TIMING);
  v1::Outcome unknown;
  unknown.set_kind(static_cast<v1::OutcomeKind>(77));
  EXPECT_EQ(CheckedOutcome(unknown, 0).kind(), v1::OUTCOME_INFRA);
}

}  // namespace
}  // namespace hone
