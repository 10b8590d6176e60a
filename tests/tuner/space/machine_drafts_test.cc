// Drafts are computed from the facts of the machine: another machine, another draft and another default.
#include <gtest/gtest.h>

#include "compiler/schedule/trace/trace.h"
#include "tests/compiler/schedule/workload_table.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/generator.h"
#include "tuner/space/nests/draft_costs.h"

namespace hone {
namespace {

SpaceOptions On(const Machine& machine, int threads = 2) {
  return {*ParseTarget("cpu:x86-64-v4,cores=2"), threads, NumericLevel::kStrict, machine};
}
Machine Usual() { return UsualMachine(*ParseTarget("cpu:x86-64-v4,cores=2")); }

TEST(MachineDrafts, OfOneThreadAreCyclesOverTheClock) {
  Machine slow = Usual();
  slow.ghz /= 2;
  for (const testing::SmallWorkload& workload : testing::SmallWorkloads()) {
    SCOPED_TRACE(workload.name);
    const auto usual = Generators(workload.func, On(Usual(), 1)), halved = Generators(workload.func, On(slow, 1));
    ASSERT_TRUE(usual.ok() && halved.ok());
    ASSERT_EQ(usual->size(), halved->size());
    for (size_t g = 0; g < usual->size(); ++g) {
      const absl::StatusOr<Choice> choice = BestByDraft(*(*usual)[g]);
      if (!choice.ok()) continue;
      EXPECT_NEAR(*(*halved)[g]->Draft(*choice), 2 * *(*usual)[g]->Draft(*choice), 1e-6 * *(*usual)[g]->Draft(*choice))
          << (*usual)[g]->name();
    }
  }
}

TEST(MachineDrafts, ADefaultIsSerialWhereForksAreDear) {
  Machine dear = Usual(), cheap = Usual();
  dear.fork_us = 1e5;
  cheap.fork_us = cheap.piece_us = 0;
  int parallel = 0, serials = 0;
  for (const testing::SmallWorkload& workload : testing::SmallWorkloads()) {
    SCOPED_TRACE(workload.name);
    const absl::StatusOr<Trace> serial = DefaultTrace(workload.func, On(dear));
    const absl::StatusOr<Trace> shared = DefaultTrace(workload.func, On(cheap));
    ASSERT_TRUE(serial.ok() && shared.ok());
    const std::string text = ToText(*serial);
    if (text.find("cache_read(") == std::string::npos) {  // the copy of an operand into panels is parallel in any case
      EXPECT_EQ(text.find("parallel("), std::string::npos) << text;
      ++serials;
    }
    parallel += ToText(*shared).find("parallel(") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(parallel, 0);
  EXPECT_GT(serials, 10);
}

TEST(MachineDrafts, BytesComeFromTheLevelTheyFit) {
  const Target target = *ParseTarget("cpu:x86-64-v4,l1d=32K,l2=1M,l3=32M,cores=2");
  Machine machine = Usual();
  machine.l1 = 100;
  machine.l2 = 50;
  machine.l3 = 20;
  machine.memory = 10;
  const double of_memory = BytesPerCycle(target, machine, 1e9);
  EXPECT_DOUBLE_EQ(BytesPerCycle(target, machine, 10e3) / of_memory, 10);
  EXPECT_DOUBLE_EQ(BytesPerCycle(target, machine, 300e3) / of_memory, 5);
  EXPECT_DOUBLE_EQ(BytesPerCycle(target, machine, 10e6) / of_memory, 2);
}

TEST(MachineDrafts, AParallelLoopCostsItsForkAndItsPieces) {
  Machine machine = Usual();
  machine.fork_us = 5;
  machine.piece_us = 0.5;
  EXPECT_DOUBLE_EQ(ParallelTime(machine, 80, 4, 2), 40 + 5 + 2 * 0.5);
  EXPECT_DOUBLE_EQ(ParallelTime(machine, 90, 3, 2), 60 + 5 + 2 * 0.5);
  EXPECT_DOUBLE_EQ(ParallelTime(machine, 80, 1, 2), 80);
  EXPECT_DOUBLE_EQ(ParallelTime(machine, 80, 4, 1), 80);
}

}  // namespace
}  // namespace hone
