#include "tuner/model/features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "compiler/schedule/locate.h"
#include "compiler/schedule/loop_kind.h"
#include "compiler/schedule/split.h"
#include "tests/compiler/schedule/workload_table.h"
#include "tests/compiler/schedule/workloads.h"
#include "tuner/space/generator.h"

namespace hone {
namespace {

const Target& Device() {
  static const Target target = *ParseTarget("cpu:x86-64-v4");
  return target;
}

std::vector<float> FeaturesOf(const PrimFunc& scheduled, double draft_us = 10, std::vector<int64_t> knobs = {}) {
  const absl::StatusOr<LoweredFunc> lowered = Lower(scheduled);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return ExtractFeatures(*lowered, Device(), UsualMachine(Device()), 2, draft_us, knobs);
}

float At(const std::vector<float>& features, std::string_view name) {
  for (int i = 0; i < NumFeatures(); ++i) {
    if (FeatureName(i) == name) return features[static_cast<size_t>(i)];
  }
  ADD_FAILURE() << "there is no feature " << name;
  return 0;
}

TEST(Features, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i < NumFeatures(); ++i) {
    EXPECT_FALSE(FeatureName(i).empty());
    EXPECT_TRUE(names.insert(FeatureName(i)).second) << FeatureName(i);
  }
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
    const std::vector<float> features = FeaturesOf(schedule->func());
    ASSERT_EQ(features.size(), static_cast<size_t>(NumFeatures()));
    for (int i = 0; i < NumFeatures(); ++i)
      EXPECT_TRUE(std::isfinite(features[static_cast<size_t>(i)])) << FeatureName(i);
    EXPECT_EQ(features, FeaturesOf(again->func()));
  }
}

// Counts are log2(x + 1).
TEST(Features, CountWhatRuns) {
  const PrimFunc matmul = testing::Matmul(8, 16, 4);
  const std::vector<float> plain = FeaturesOf(matmul);
  EXPECT_FLOAT_EQ(At(plain, "draft_us"), std::log2(11.0f));
  EXPECT_EQ(At(plain, "parallel_loops"), 0);
  EXPECT_EQ(At(plain, "vector_arithmetic"), 0);
  EXPECT_FLOAT_EQ(At(plain, "scalar_arithmetic"), std::log2(8 * 16 * 4 * 2 + 1.0f));

  Schedule schedule(matmul);
  const BlockRef block = *GetBlock(schedule, "C");
  const std::vector<LoopRef> loops = *GetLoops(schedule, block);
  ASSERT_TRUE(Parallel(schedule, loops[0]).ok());
  ASSERT_TRUE(Vectorize(schedule, loops[1]).ok());
  const std::vector<float> fast = FeaturesOf(schedule.func());
  EXPECT_FLOAT_EQ(At(fast, "parallel_loops"), 1);
  EXPECT_FLOAT_EQ(At(fast, "parallel_extent"), std::log2(9.0f));
  EXPECT_GT(At(fast, "vector_arithmetic"), 0);
  EXPECT_FLOAT_EQ(At(fast, "lanes"), std::log2(17.0f));
  EXPECT_FLOAT_EQ(At(fast, "bytes_touched"), At(plain, "bytes_touched"));
}

TEST(Features, KnobsAreCutOffWhereThereIsNoPlaceForMore) {
  const PrimFunc func = testing::TwoElementwise(3, 5);
  const std::vector<float> some = FeaturesOf(func, 1, {7, 0, 15});
  EXPECT_FLOAT_EQ(At(some, "knob0"), 3);
  EXPECT_FLOAT_EQ(At(some, "knob1"), 0);
  EXPECT_FLOAT_EQ(At(some, "knob2"), 4);
  const std::vector<float> many = FeaturesOf(func, 1, std::vector<int64_t>(100, 7));
  EXPECT_EQ(many.size(), static_cast<size_t>(NumFeatures()));
  EXPECT_FLOAT_EQ(many.back(), 3);
}

}  // namespace
}  // namespace hone
