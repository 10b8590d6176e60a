// Convolutions by Winograd's algorithm: when it is in the space, and that what the generators make of it is right.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/lower/lower.h"
#include "compiler/schedule/primitives/choose_algorithm.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/schedule/workloads.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/generator.h"

namespace hone {
namespace {

using testing::ConvBiasResidualRelu;
using testing::ConvShape;

SpaceOptions Options(NumericLevel numeric, const char* target = "cpu:x86-64-v4") {
  return {*ParseTarget(target), 2, numeric};
}

std::vector<std::unique_ptr<Generator>> All(const PrimFunc& func, const SpaceOptions& options) {
  absl::StatusOr<std::vector<std::unique_ptr<Generator>>> found = Generators(func, options);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *std::move(found) : std::vector<std::unique_ptr<Generator>>();
}

// The algorithm that a generator goes by; empty: as the workload has it.
std::string AlgorithmOf(const std::string& generator) {
  for (const std::string& algorithm : AlgorithmNames()) {
    if (generator.find(algorithm) != std::string::npos) return algorithm;
  }
  return "";
}

std::set<std::string> AlgorithmsOf(const ConvShape& shape, NumericLevel numeric) {
  std::set<std::string> names;
  for (const auto& generator : All(ConvBiasResidualRelu(shape), Options(numeric))) {
    names.insert(AlgorithmOf(generator->name()));
  }
  return names;
}

TEST(WinogradSpace, IsForPlainThreeByThreeAtTheDefaultLevelAlone) {
  const std::set<std::string> direct = {""};
  const std::set<std::string> all = {"", "winograd_2x2_3x3", "winograd_4x4_3x3"};
  EXPECT_EQ(AlgorithmsOf({8, 8, 16, 16}, NumericLevel::kDefault), all);
  EXPECT_EQ(AlgorithmsOf({8, 8, 16, 16}, NumericLevel::kStrict), direct);
  EXPECT_EQ(AlgorithmsOf({8, 8, 16, 16, 3, 2}, NumericLevel::kDefault), direct) << "stride";
  EXPECT_EQ(AlgorithmsOf({8, 8, 16, 16, 1, 1, 0}, NumericLevel::kDefault), direct) << "1x1";
  EXPECT_EQ(AlgorithmsOf({8, 8, 16, 16, 5, 1, 2}, NumericLevel::kDefault), direct) << "5x5";
}

TEST(WinogradSpace, NeedsAQuarterOfTheOperations) {
  const PrimFunc func = ConvBiasResidualRelu({16, 16, 32, 32});
  const double direct = *LeastFlop(func, Options(NumericLevel::kStrict));
  EXPECT_EQ(direct, 2.0 * 16 * 16 * 32 * 32 * 9);
  EXPECT_EQ(*LeastFlop(func, Options(NumericLevel::kDefault)), direct / 4) << "36 products for 16 results";
}

TEST(WinogradSpace, IsTheDefaultWhereChannelsAreManyAndNotWhereTheyAreFew) {
  const auto chosen = [](const ConvShape& shape) {
    const Trace trace = *DefaultTrace(ConvBiasResidualRelu(shape), Options(NumericLevel::kDefault));
    return AlgorithmOf(OriginOf(trace)->generator);
  };
  EXPECT_EQ(chosen({56, 56, 64, 64}), "winograd_4x4_3x3");
  EXPECT_EQ(chosen({56, 56, 4, 4}), "") << "the transforms would cost more than the products save";
}

class WinogradCandidates : public ::testing::TestWithParam<ConvShape> {};

TEST_P(WinogradCandidates, AreRight) {
  const testing::SmallWorkload workload{"conv", ConvBiasResidualRelu(GetParam()), false, NumericLevel::kDefault};
  const testing::Reference reference(workload);
  for (const char* target : {"cpu:x86-64-v4", "cpu:cortex-a72"}) {
    for (const auto& generator : All(workload.func, Options(NumericLevel::kDefault, target))) {
      SCOPED_TRACE(generator->name() + " for " + target);
      const absl::StatusOr<Choice> choice = BestByDraft(*generator);
      ASSERT_TRUE(choice.ok()) << choice.status();
      const absl::StatusOr<Schedule> schedule = generator->Build(*choice);
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      const bool winograd = !AlgorithmOf(generator->name()).empty();
      EXPECT_EQ(NumericLevelOf(schedule->trace()), winograd ? NumericLevel::kDefault : NumericLevel::kStrict);
      EXPECT_EQ(reference.CheckInterpreted(schedule->Program()), "");
      EXPECT_EQ(reference.CheckInterpreted(testing::Reversed(schedule->Program())), "") << "backwards";
      const absl::StatusOr<LoweredFunc> lowered = Lower(schedule->func());
      EXPECT_TRUE(lowered.ok()) << lowered.status();
    }
  }
}

// Sizes that tiles divide and that they do not; no padding; channels that fill vectors and that do not.
INSTANTIATE_TEST_SUITE_P(Shapes, WinogradCandidates,
                         ::testing::Values(ConvShape{8, 8, 16, 16}, ConvShape{5, 7, 16, 32}, ConvShape{4, 9, 32, 16},
                                           ConvShape{1, 1, 16, 16}, ConvShape{6, 6, 16, 16, 3, 1, 0},
                                           ConvShape{6, 5, 5, 7}));

}  // namespace
}  // namespace hone
