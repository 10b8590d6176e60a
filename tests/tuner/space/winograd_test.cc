// Convolutions by Winograd's algorithm: when it is in the space, and that what the generators make of it is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/primitives/choose_algorithm.h"
#include "compiler/schedule/primitives/layout_constant.h"
#include "compiler/support/random.h"
#include "compiler/te/te.h"
#include "compiler/topi/conv.h"
#include "compiler/topi/elementwise.h"
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

bool IsByBlocks(const std::string& generator) { return generator.find(",blocks(") != std::string::npos; }

PrimFunc Dilated(std::vector<int64_t> images, std::vector<int64_t> dilation, std::vector<int64_t> padding) {
  const te::Tensor x = te::Placeholder(te::Shape(images), kFloat32, "x");
  const te::Tensor weights = te::Placeholder(te::Shape({3, 3, images[3], 16}), kFloat32, "w");
  const te::Tensor result = topi::Conv2d(x, weights, {{}, std::move(dilation), padding, padding});
  return te::CreatePrimFunc({x, weights}, {topi::Relu(result, "relu")}, "main",
                            {{"constants", std::vector<int64_t>{1}}});
}

struct WinogradCase {
  const char* name;
  PrimFunc (*func)();
};

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

TEST(WinogradSpace, IsForDilatedOnesToo) {
  std::set<std::string> algorithms;
  for (const auto& generator : All(Dilated({1, 16, 16, 16}, {2, 2}, {2, 2}), Options(NumericLevel::kDefault))) {
    algorithms.insert(AlgorithmOf(generator->name()));
  }
  EXPECT_THAT(algorithms, ::testing::ElementsAre("", "winograd_2x2_3x3", "winograd_4x4_3x3"));
}

TEST(WinogradSpace, IsForBytesWhereSumsFitInt32) {
  const auto algorithms = [](int64_t channels) {
    const te::Tensor x = te::Placeholder(te::Shape({1, 8, 8, channels}), DType::UInt(8), "x");
    const te::Tensor w = te::Placeholder(te::Shape({3, 3, channels, 16}), DType::Int(8), "w");
    const PrimFunc func = te::CreatePrimFunc({x, w}, {topi::Conv2d(x, w, {{}, {}, {1, 1}, {1, 1}})}, "main",
                                             {{"constants", std::vector<int64_t>{1}}});
    std::set<std::string> found;
    for (const auto& generator : All(func, Options(NumericLevel::kDefault, "cpu:x86-64-v3")))
      found.insert(AlgorithmOf(generator->name()));
    return found;
  };
  EXPECT_THAT(algorithms(543), ::testing::ElementsAre("", "winograd_2x2_3x3"));
  EXPECT_THAT(algorithms(544), ::testing::ElementsAre(""));
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

// A generator is named for what is packed; the transformed weights are a buffer that its rewrite makes.
TEST(WinogradSpace, WeightsAreInPanels) {
  int packed = 0;
  for (const auto& generator : All(ConvBiasResidualRelu({16, 16, 32, 32}), Options(NumericLevel::kDefault))) {
    if (AlgorithmOf(generator->name()).empty() || !absl::StrContains(generator->name(), "pack(")) continue;
    const absl::StatusOr<Choice> choice = BestByDraft(*generator);
    ASSERT_TRUE(choice.ok()) << choice.status();
    const absl::StatusOr<Schedule> schedule = generator->Build(*choice);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    const std::vector<Step>& steps = schedule->trace().steps;
    EXPECT_TRUE(std::ranges::any_of(steps, [](const Step& step) { return step.As<LayoutConstantStep>() != nullptr; }))
        << generator->name();
    ++packed;
  }
  EXPECT_GE(packed, 4) << "both tiles, by blocks and by phases";
}

class WinogradCandidates : public ::testing::TestWithParam<WinogradCase> {};

void ExpectRight(const testing::Reference& reference, const Generator& generator, const Choice& choice) {
  SCOPED_TRACE(generator.name() + " " + ::testing::PrintToString(choice));
  const absl::StatusOr<Schedule> schedule = generator.Build(choice);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const bool winograd = !AlgorithmOf(generator.name()).empty();
  EXPECT_EQ(NumericLevelOf(schedule->trace()), winograd ? NumericLevel::kDefault : NumericLevel::kStrict);
  EXPECT_EQ(reference.CheckInterpreted(schedule->Program()), "");
  EXPECT_EQ(reference.CheckInterpreted(testing::Reversed(schedule->Program())), "") << "backwards";
  const absl::StatusOr<LoweredFunc> lowered = Lower(schedule->func());
  EXPECT_TRUE(lowered.ok()) << lowered.status();
}

TEST_P(WinogradCandidates, AreRight) {
  const testing::SmallWorkload workload{"conv", GetParam().func(), false, NumericLevel::kDefault};
  const testing::Reference reference(workload);
  for (const char* target : {"cpu:x86-64-v4", "cpu:cortex-a72"}) {
    SCOPED_TRACE(target);
    for (const auto& generator : All(workload.func, Options(NumericLevel::kDefault, target))) {
      const absl::StatusOr<Choice> choice = BestByDraft(*generator);
      ASSERT_TRUE(choice.ok()) << generator->name() << ": " << choice.status();
      ExpectRight(reference, *generator, *choice);
    }
  }
}

// Whatever size the blocks have, and whatever tiles stand in them, the draft takes for legal what can be built.
TEST_P(WinogradCandidates, OfAllSizesOfBlocksAreRight) {
  const testing::SmallWorkload workload{"conv", GetParam().func(), false, NumericLevel::kDefault};
  const testing::Reference reference(workload);
  for (const auto& generator : All(workload.func, Options(NumericLevel::kDefault))) {
    if (!IsByBlocks(generator->name())) continue;
    int tried = 0;
    for (int i = 0; i < 3000 && tried < 12; ++i) {
      Random random(23, static_cast<uint64_t>(i));
      const Choice choice = RandomChoice(*generator, random);
      if (!generator->Draft(choice).has_value()) continue;
      ExpectRight(reference, *generator, choice);
      ++tried;
    }
    EXPECT_GT(tried, 0) << generator->name();
  }
}

PrimFunc TwoImages() {
  const te::Tensor images = te::Placeholder(te::Shape({2, 8, 6, 16}), kFloat32, "x");
  const te::Tensor weights = te::Placeholder(te::Shape({3, 3, 16, 16}), kFloat32, "w");
  const te::Tensor result = topi::Conv2d(images, weights, {{}, {}, {1, 1}, {1, 1}});
  return te::CreatePrimFunc({images, weights}, {result}, "main", {{"constants", std::vector<int64_t>{1}}});
}

PrimFunc OfBytes(DType image, std::vector<int64_t> dilation) {
  const te::Tensor x = te::Placeholder(te::Shape({1, 9, 7, 32}), image, "x");
  const te::Tensor weights = te::Placeholder(te::Shape({3, 3, 32, 16}), DType::Int(8), "w");
  const te::Tensor result = topi::Conv2d(x, weights, {{}, dilation, dilation, dilation});
  return te::CreatePrimFunc({x, weights}, {topi::Relu(result, "relu")}, "main",
                            {{"constants", std::vector<int64_t>{1}}});
}

PrimFunc Of(const ConvShape& shape) { return ConvBiasResidualRelu(shape); }

// Sizes that tiles divide and that they do not; no padding; channels that fill vectors and that do not; a batch;
// dilated by what divides the image, by what does not, and in one direction alone; of bytes.
INSTANTIATE_TEST_SUITE_P(Shapes, WinogradCandidates,
                         ::testing::Values(WinogradCase{"EightByEight",
                                                        [] {
                                                          return Of({8, 8, 16, 16});
                                                        }},
                                           WinogradCase{"FiveBySeven",
                                                        [] {
                                                          return Of({5, 7, 16, 32});
                                                        }},
                                           WinogradCase{"FourByNine",
                                                        [] {
                                                          return Of({4, 9, 32, 16});
                                                        }},
                                           WinogradCase{"OnePixel",
                                                        [] {
                                                          return Of({1, 1, 16, 16});
                                                        }},
                                           WinogradCase{"Bytes",
                                                        [] {
                                                          return OfBytes(DType::UInt(8), {1, 1});
                                                        }},
                                           WinogradCase{"SignedBytesDilated",
                                                        [] {
                                                          return OfBytes(DType::Int(8), {2, 1});
                                                        }},
                                           WinogradCase{"NoPadding",
                                                        [] {
                                                          return Of({6, 6, 16, 16, 3, 1, 0});
                                                        }},
                                           WinogradCase{"Column",
                                                        [] {
                                                          return Of({17, 2, 16, 16});
                                                        }},
                                           WinogradCase{"OddChannels",
                                                        [] {
                                                          return Of({6, 5, 5, 7});
                                                        }},
                                           WinogradCase{"TwoImages", TwoImages},
                                           WinogradCase{"Dilated",
                                                        [] {
                                                          return Dilated({1, 8, 16, 16}, {2, 2}, {2, 2});
                                                        }},
                                           WinogradCase{"DilatedByThreeAndTwo",
                                                        [] {
                                                          return Dilated({2, 11, 9, 5}, {3, 2}, {0, 1});
                                                        }},
                                           WinogradCase{"DilatedAcross",
                                                        [] {
                                                          return Dilated({1, 6, 9, 16}, {1, 2}, {1, 2});
                                                        }}),
                         [](const auto& info) { return info.param.name; });

// The generator of that algorithm, block by block or stage by stage.
const Generator* Find(const std::vector<std::unique_ptr<Generator>>& all, const std::string& algorithm,
                      bool by_blocks) {
  for (const auto& generator : all) {
    const std::string& name = generator->name();
    if (name.starts_with("sketch:") && AlgorithmOf(name) == algorithm && IsByBlocks(name) == by_blocks)
      return generator.get();
  }
  return nullptr;
}

// The parallel loops of the lowered best of a generator, and the memory that it needs.
struct Shape {
  int parallel = 0;
  int64_t shared_bytes = 0, thread_bytes = 0;
};

Shape ShapeOf(const Generator& generator) {
  const absl::StatusOr<Schedule> schedule = generator.Build(*BestByDraft(generator));
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  const absl::StatusOr<LoweredFunc> lowered = Lower(schedule->func());
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  Shape shape{0, lowered->scratch_bytes, lowered->thread_scratch_bytes};
  ForEachStmt(lowered->func.body, [&](const Stmt& stmt) {
    const For* loop = stmt.As<For>();
    shape.parallel += loop != nullptr && loop->kind == ForKind::kParallel ? 1 : 0;
    return true;
  });
  return shape;
}

TEST(WinogradBlocks, AreOneParallelLoopWithScratchOfTheThread) {
  const auto all = All(ConvBiasResidualRelu({32, 32, 32, 32}), Options(NumericLevel::kDefault));
  const int64_t between = 36 * 64 * 32 * 4;  // bytes of V, and of M: 8 x 8 tiles
  const Generator *stages = Find(all, "winograd_4x4_3x3", false), *blocks = Find(all, "winograd_4x4_3x3", true);
  ASSERT_TRUE(stages != nullptr && blocks != nullptr);
  const Shape three = ShapeOf(*stages), one = ShapeOf(*blocks);
  EXPECT_EQ(three.parallel, 3);
  EXPECT_GE(three.shared_bytes, 2 * between);
  EXPECT_EQ(one.parallel, 1);
  EXPECT_EQ(one.shared_bytes, 0);
  EXPECT_GT(one.thread_bytes, 0);
  EXPECT_LE(one.thread_bytes, between) << "half the tiles at most, V and M";
}

TEST(WinogradBlocks, NeedTwoRowsOfTiles) {
  const auto low = All(ConvBiasResidualRelu({4, 16, 16, 16}), Options(NumericLevel::kDefault));
  EXPECT_EQ(Find(low, "winograd_4x4_3x3", true), nullptr);
  const Generator* flat = Find(low, "winograd_2x2_3x3", true);
  ASSERT_NE(flat, nullptr);
  EXPECT_THAT(flat->knobs()[0].name, ::testing::EndsWith("_product.block"));
  EXPECT_THAT(flat->knobs()[0].candidates, ::testing::ElementsAre(8)) << "tiles in a row";
  // Two images of two rows of two tiles: a block is of one image.
  const auto images = All(TwoImages(), Options(NumericLevel::kDefault));
  const Generator* square = Find(images, "winograd_4x4_3x3", true);
  ASSERT_NE(square, nullptr);
  EXPECT_THAT(square->knobs()[0].candidates, ::testing::ElementsAre(2, 4));
}

// A large image passes more between the stages than a cache holds; of a small one with many channels, every block would
// read weights that no cache holds.
TEST(WinogradBlocks, AreTheDefaultOfLargeImages) {
  const auto by_blocks = [](const ConvShape& shape) {
    const Trace trace = *DefaultTrace(ConvBiasResidualRelu(shape), Options(NumericLevel::kDefault));
    return IsByBlocks(OriginOf(trace)->generator);
  };
  EXPECT_TRUE(by_blocks({112, 112, 64, 64}));
  EXPECT_FALSE(by_blocks({14, 14, 512, 512}));
}

}  // namespace
}  // namespace hone
