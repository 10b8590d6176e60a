#include "tuner/model/features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/workload_table.h"
#include "tests/compiler/schedule/workloads.h"
#include "tuner/space/generator.h"

namespace hone {
namespace {

const Target& Device() {
  static const Target target = *ParseTarget("cpu:x86-64-v4");
  return target;
}

ProgramFeatures FeaturesOf(const PrimFunc& scheduled, double draft_us = 10, const std::string& source = "template",
                           int threads = 2) {
  const absl::StatusOr<LoweredFunc> lowered = Lower(scheduled);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return ExtractFeatures(*lowered, Device(), UsualMachine(Device()), threads, {draft_us, source});
}

// Of the store that takes longest.
float At(const ProgramFeatures& features, std::string_view name) {
  const size_t store =
      static_cast<size_t>(std::max_element(features.shares.begin(), features.shares.end()) - features.shares.begin());
  for (size_t i = 0; i < NumFeatures(); ++i) {
    if (FeatureName(i) == name) return features.row(store)[i];
  }
  ADD_FAILURE() << "there is no feature " << name;
  return 0;
}

float Log(double count) { return static_cast<float>(std::log2(count + 1)); }

TEST(Features, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < NumFeatures(); ++i) {
    EXPECT_FALSE(FeatureName(i).empty());
    EXPECT_TRUE(names.insert(FeatureName(i)).second) << FeatureName(i);
  }
  EXPECT_GE(NumFeatures(), 164u - 8u) << "those that are published, less the bindings of a GPU";
}

TEST(Features, AreFiniteAndTheSameTwiceForEveryKindOfOperator) {
  for (const testing::SmallWorkload& workload : testing::SmallWorkloads()) {
    SCOPED_TRACE(workload.name);
    const auto generators = Generators(workload.func, {Device(), 2});
    ASSERT_TRUE(generators.ok()) << generators.status();
    const Generator& generator = *generators->back();
    const absl::StatusOr<Choice> choice = BestByDraft(generator);
    ASSERT_TRUE(choice.ok()) << choice.status();
    const absl::StatusOr<Schedule> schedule = generator.Build(*choice), again = generator.Build(*choice);
    ASSERT_TRUE(schedule.ok() && again.ok()) << schedule.status() << again.status();
    const ProgramFeatures features = FeaturesOf(schedule->func());
    ASSERT_GE(features.stores(), 1u);
    ASSERT_LE(features.stores(), kMostStores);
    ASSERT_EQ(features.rows.size(), features.stores() * NumFeatures());
    for (size_t i = 0; i < features.rows.size(); ++i)
      EXPECT_TRUE(std::isfinite(features.rows[i])) << FeatureName(i % NumFeatures());
    EXPECT_NEAR(std::accumulate(features.shares.begin(), features.shares.end(), 0.0), 1, 1e-5);
    EXPECT_EQ(features.rows, FeaturesOf(again->func()).rows);
  }
}

TEST(Features, CountWhatRuns) {
  const PrimFunc matmul = testing::Matmul(8, 16, 4);
  const ProgramFeatures plain = FeaturesOf(matmul, 10);
  EXPECT_FLOAT_EQ(At(plain, "draft_us"), Log(10));
  EXPECT_FLOAT_EQ(At(plain, "parallel_count"), 0);
  EXPECT_FLOAT_EQ(At(plain, "parallel_none"), 1);
  EXPECT_FLOAT_EQ(At(plain, "vector_none"), 1);
  EXPECT_FLOAT_EQ(At(plain, "float_mad"), Log(8 * 16 * 4));
  EXPECT_FLOAT_EQ(At(plain, "float_mul"), 0);
  EXPECT_FLOAT_EQ(At(plain, "outer_product"), Log(8 * 16 * 4));
  EXPECT_FLOAT_EQ(At(plain, "loops"), Log(3));

  Schedule schedule(matmul);
  const BlockRef block = *GetBlock(schedule, "C");
  const std::vector<LoopRef> loops = *GetLoops(schedule, block);
  ASSERT_TRUE(Parallel(schedule, loops[0]).ok());
  ASSERT_TRUE(Vectorize(schedule, loops[1]).ok());
  const ProgramFeatures fast = FeaturesOf(schedule.func());
  EXPECT_FLOAT_EQ(At(fast, "parallel_count"), Log(1));
  EXPECT_FLOAT_EQ(At(fast, "parallel_product"), Log(8));
  EXPECT_FLOAT_EQ(At(fast, "parallel_outer_spatial"), 1);
  EXPECT_FLOAT_EQ(At(fast, "vector_innermost"), Log(16));
  EXPECT_FLOAT_EQ(At(fast, "float_mad"), Log(8 * 16 * 4)) << "lanes count one by one";
  EXPECT_FLOAT_EQ(At(fast, "threads_used"), 1);
}

// B = A * 2 over 64 x 32 floats, row after row: 8 KiB are read and as much is written.
TEST(Features, BuffersSayBytesLinesAndReuse) {
  const PrimFunc func = testing::Matmul(16, 32, 64);
  const ProgramFeatures plain = FeaturesOf(func);
  // In 16 x 32 x 64 iterations all three are touched; C twice, so it moves most.
  const double iterations = 16 * 32 * 64;
  EXPECT_FLOAT_EQ(At(plain, "b0_bytes"), Log(iterations * 4 * 2));
  EXPECT_FLOAT_EQ(At(plain, "b0_read_write"), 1);
  EXPECT_FLOAT_EQ(At(plain, "b0_unique_bytes"), Log(16 * 32 * 4));
  EXPECT_FLOAT_EQ(At(plain, "b0_unique_lines"), Log(16 * 32 * 4 / 64));
  EXPECT_FLOAT_EQ(At(plain, "b0_reuse_loop"), 1);
  EXPECT_FLOAT_EQ(At(plain, "b0_reuse_count"), Log(64)) << "k, the innermost loop, does not move it";
  EXPECT_FLOAT_EQ(At(plain, "b0_reuse_iterations"), Log(1));
  // A: the loop over j, in the middle, comes back to it after 64 iterations.
  EXPECT_FLOAT_EQ(At(plain, "b1_read"), 1);
  EXPECT_FLOAT_EQ(At(plain, "b1_unique_bytes"), Log(16 * 64 * 4));
  EXPECT_FLOAT_EQ(At(plain, "b1_reuse_count"), Log(32));
  EXPECT_FLOAT_EQ(At(plain, "b1_reuse_iterations"), Log(64));
  EXPECT_FLOAT_EQ(At(plain, "b1_stride"), Log(1));
  EXPECT_FLOAT_EQ(At(plain, "b2_stride"), Log(32)) << "B by columns";
  EXPECT_FLOAT_EQ(At(plain, "b3_bytes"), 0) << "there are three";
}

TEST(Features, IntensityGrowsWhereDataIsUsedAgain) {
  const ProgramFeatures features = FeaturesOf(testing::Matmul(64, 64, 64));
  EXPECT_GT(At(features, "intensity9"), At(features, "intensity0"));
  // All closed: 2 x 64^3 operations over three matrices of 16 KiB.
  EXPECT_NEAR(At(features, "intensity9"), std::log2(2.0 * 64 * 64 * 64 / (3 * 64 * 64 * 4) + 1), 1e-4);
}

TEST(Features, RatiosAreOfTheMachine) {
  // Three matrices of 64 KiB, of which an eighth fits into the first cache of 24 KiB.
  const absl::StatusOr<LoweredFunc> lowered = Lower(testing::Matmul(128, 128, 128));
  ASSERT_TRUE(lowered.ok());
  const Target small = *ParseTarget("cpu:x86-64-v3,l1d=24K,l2=192K,l3=32M");
  const ProgramFeatures features = ExtractFeatures(*lowered, small, UsualMachine(small), 2, {10, "sketch"});
  EXPECT_NEAR(At(features, "working_set_over_l1"), 3, 0.05);
  EXPECT_NEAR(At(features, "working_set_over_l2"), 0, 0.05);
  EXPECT_FLOAT_EQ(At(features, "sketch"), 1);
  EXPECT_FLOAT_EQ(At(features, "template"), 0);
  EXPECT_FLOAT_EQ(At(features, "threads_used"), 0.5) << "one loop nest on two threads";
}

TEST(Features, OfAProgramOfManyStoresTheLongestStay) {
  std::string text = "@T.prim_func\ndef main(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")):\n";
  for (int i = 1; i <= 20; ++i) {
    const std::string n = std::to_string(i);
    text += "    for i" + n + " in range(" + n + "):\n        B[i" + n + "] = A[i" + n + "] * T.float32(2)\n";
  }
  LoweredFunc lowered;
  lowered.func = *ParsePrimFunc(text);
  const ProgramFeatures features = ExtractFeatures(lowered, Device(), UsualMachine(Device()), 2, {});
  ASSERT_EQ(features.stores(), kMostStores);
  EXPECT_FLOAT_EQ(At(features, "outer_product"), Log(20));
  EXPECT_FLOAT_EQ(At(features, "program_stores"), Log(20));
  EXPECT_NEAR(std::accumulate(features.shares.begin(), features.shares.end(), 0.0), 1, 1e-5);
}

}  // namespace
}  // namespace hone
