// Rewrites: which workloads they are for, and what becomes of their sketches.
#include "tuner/space/rewrites/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/compiler/schedule/workloads.h"
#include "tuner/space/generator.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Target WideVectors() { return *ParseTarget("cpu:x86-64-v4"); }

std::vector<std::string> SplitsOf(const PrimFunc& func, int threads) {
  const WorkloadInfo info = *AnalyzeWorkload(func);
  std::vector<std::string> labels;
  for (const Rewrite& rewrite : Rewrites({&info, WideVectors(), threads})) {
    if (rewrite.label.starts_with("split_k")) labels.push_back(rewrite.label);
  }
  return labels;
}

TEST(Rewrites, BeginWithTheWorkloadAsItIs) {
  const PrimFunc func = testing::Matmul(4, 32, 64);
  const WorkloadInfo info = *AnalyzeWorkload(func);
  const Rewrite none = Rewrites({&info, WideVectors(), 2})[0];
  EXPECT_EQ(none.label, "");
  Schedule schedule(func);
  EXPECT_TRUE(none.apply(schedule).ok());
  EXPECT_TRUE(schedule.trace().steps.empty());
}

TEST(SplitK, IsForFewResultsAndALongReduction) {
  EXPECT_THAT(SplitsOf(testing::Matmul(4, 32, 8192), 2), ElementsAre("split_k_2(C)"));
  EXPECT_THAT(SplitsOf(testing::Matmul(4, 32, 8192), 1), IsEmpty()) << "one thread";
  EXPECT_THAT(SplitsOf(testing::Matmul(64, 1024, 8192), 2), IsEmpty()) << "tiles enough";
  EXPECT_THAT(SplitsOf(testing::Matmul(4, 32, 512), 2), IsEmpty()) << "little to share";
  EXPECT_THAT(SplitsOf(testing::Matmul(4, 256, 131), 2), IsEmpty()) << "parts would be short";
}

TEST(SplitK, GivesEveryThreadAPartOrPartsAndTilesTogether) {
  EXPECT_THAT(SplitsOf(testing::Matmul(4, 32, 8192), 16), ElementsAre("split_k_16(C)", "split_k_4(C)"));
  EXPECT_THAT(SplitsOf(testing::Matmul(4, 32, 6561), 2), ElementsAre("split_k_3(C)")) << "parts divide the reduction";
}

// Two pieces of such a tile keep too few sums in flight, and each reads all of A or all of B.
TEST(SplitK, IsWhatTheDraftLikesForOneSmallTile) {
  const auto least = [](const PrimFunc& func, bool of_splits) {
    const auto generators = Generators(func, {WideVectors(), 2, NumericLevel::kStrict});
    EXPECT_TRUE(generators.ok()) << generators.status();
    double us = std::numeric_limits<double>::infinity();
    for (const auto& generator : *generators) {
      const bool splits = generator->name().find("split_k_2(") != std::string::npos;
      if (splits == of_splits) us = std::min(us, *generator->Draft(*BestByDraft(*generator)));
    }
    return us;
  };
  const PrimFunc small = testing::Matmul(4, 32, 8192), large = testing::DenseRelu(24, 128, 512);
  EXPECT_LT(least(small, true), 0.9 * least(small, false));
  EXPECT_GT(least(large, true), least(large, false)) << "a large tile for each thread, and nothing to add up";
}

}  // namespace
}  // namespace hone
