// Results that go past the caches: who is offered it, when the draft takes it, and what is built.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "compiler/ir/annotations.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/te/te.h"
#include "compiler/topi/elementwise.h"
#include "compiler/topi/norm.h"
#include "compiler/topi/shape_ops.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/schedule/workload_table.h"
#include "tests/tuner/space/legal_choice.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/generator.h"
#include "tuner/space/nests/draft_costs.h"

namespace hone {
namespace {

te::Tensor Input(std::vector<int64_t> shape) {
  return te::Placeholder(std::vector<Expr>(shape.begin(), shape.end()), kFloat32, "x");
}
PrimFunc Transposed(int64_t rows, int64_t columns) {
  const te::Tensor x = Input({columns, rows});
  return te::CreatePrimFunc({x}, {topi::Transpose(x, {1, 0})}, "main");
}
PrimFunc Softmaxed(int64_t rows, int64_t columns) {
  const te::Tensor x = Input({rows, columns});
  return te::CreatePrimFunc({x}, {topi::Softmax(x, 1)}, "main");
}
PrimFunc Added(int64_t rows, int64_t columns) {
  const te::Tensor x = Input({rows, columns});
  return te::CreatePrimFunc({x}, {topi::Add(x, x)}, "main");
}

// A second cache of 1 MiB and a third of 32, each half as fast as the one before.
SpaceOptions On(const char* target = "cpu:x86-64-v4,l1d=32K,l2=1M,l3=32M,cores=2") {
  SpaceOptions options{*ParseTarget(target), 2, NumericLevel::kStrict};
  options.machine.l1 = 100;
  options.machine.l2 = 50;
  options.machine.l3 = 25;
  options.machine.memory = 12;
  return options;
}
bool ByDefault(const PrimFunc& func, const SpaceOptions& options) {
  const absl::StatusOr<Trace> trace = DefaultTrace(func, options);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() && absl::StrContains(ToText(*trace), "sch.stream(");
}
bool IsOffered(const PrimFunc& func, const SpaceOptions& options) {
  const auto generators = Generators(func, options);
  EXPECT_TRUE(generators.ok()) << generators.status();
  for (const auto& generator : *generators) {
    for (const Knob& knob : generator->knobs()) {
      if (absl::EndsWith(knob.name, ".stream")) return true;
    }
  }
  return false;
}

TEST(Streams, AreTakenForWhatNoCacheHolds) {
  for (const int64_t rows : {256, 8192}) {  // 2 MiB stay in the third cache, 64 MiB do not
    SCOPED_TRACE(rows);
    EXPECT_EQ(ByDefault(Transposed(rows, 2048), On()), rows == 8192);
    EXPECT_EQ(ByDefault(Softmaxed(rows, 2048), On()), rows == 8192);
    EXPECT_EQ(ByDefault(Added(rows, 2048), On()), rows == 8192);
  }
}

TEST(Streams, AreTakenForWhatIsInMemoryInTheEnd) {
  for (PrimFunc func : {Transposed(256, 2048), Softmaxed(256, 2048), Added(256, 2048)}) {
    func.attrs[kColdOutputs] = std::vector<int64_t>{1};
    EXPECT_TRUE(ByDefault(func, On()));
  }
}

TEST(Streams, AreTakenWhereTheThirdCacheIsNoFasterThanMemory) {
  SpaceOptions far = On();
  far.machine.memory = far.machine.l3;
  EXPECT_FALSE(ByDefault(Transposed(1024, 2048), On()));
  EXPECT_TRUE(ByDefault(Transposed(1024, 2048), far));
}

TEST(Streams, AreOfferedToWholeLinesOfResultsOnX86) {
  EXPECT_TRUE(IsOffered(Transposed(8192, 2048), On()));
  EXPECT_FALSE(IsOffered(Transposed(8192, 2047), On()));  // rows that begin inside lines
  EXPECT_FALSE(IsOffered(Transposed(256, 256), On()));    // the second cache holds it
  EXPECT_FALSE(IsOffered(Transposed(8192, 2048), On("cpu:cortex-a72,l1d=32K,l2=1M,l3=32M,cores=2")));
}

// Vectors of half a line in a block of a transpose: the other halves come after other lines.
TEST(Streams, AreOfWholeLinesAcrossATranspose) {
  const auto generators = Generators(Transposed(8192, 2048), On("cpu:x86-64-v3,l1d=32K,l2=1M,l3=32M,cores=2"));
  ASSERT_TRUE(generators.ok());
  const Generator& generator = *generators->front();
  int refused = 0;
  Choice choice(generator.knobs().size(), 0);
  for (size_t k = 0; k < choice.size(); ++k) {
    const Knob& knob = generator.knobs()[k];
    if (absl::EndsWith(knob.name, ".stream")) choice[k] = 1;
  }
  for (size_t k = 0; k < choice.size(); ++k) {
    if (!absl::EndsWith(generator.knobs()[k].name, ".across")) continue;
    for (; choice[k] < static_cast<int>(generator.knobs()[k].candidates.size()); ++choice[k]) {
      const bool alone = generator.knobs()[k].candidates[static_cast<size_t>(choice[k])] == 1;
      EXPECT_EQ(generator.Draft(choice).has_value(), alone);
      refused += alone ? 0 : 1;
    }
    choice[k] = 0;
  }
  EXPECT_GT(refused, 0);
}

// On a machine whose second cache holds next to nothing, small workloads stream: what is built computes the same.
TEST(Streams, ComputeTheSame) {
  Random random(3);
  int streamed = 0;
  for (const PrimFunc& func : {Transposed(48, 32), Softmaxed(9, 64), Added(5, 96)}) {
    const testing::SmallWorkload workload{"streamed", func, false};
    const testing::Reference reference(workload);
    const auto generators = Generators(func, On("cpu:x86-64-v4,l1d=1K,l2=1K,l3=2K,cores=2"));
    ASSERT_TRUE(generators.ok());
    for (const auto& generator : *generators) {
      for (int i = 0; i < 6; ++i) {
        const std::optional<Choice> choice = testing::LegalChoice(*generator, random);
        ASSERT_TRUE(choice.has_value());
        const absl::StatusOr<Schedule> schedule = generator->Build(*choice);
        ASSERT_TRUE(schedule.ok()) << schedule.status();
        EXPECT_EQ(reference.CheckInterpreted(schedule->Program()), "");
        streamed += absl::StrContains(ToText(schedule->trace()), "sch.stream(") ? 1 : 0;
      }
    }
  }
  EXPECT_GT(streamed, 3);
}

TEST(Streams, CostTheLinesThatAreFetchedOrReadAgain) {
  const SpaceOptions options = On();
  const NestContext one{nullptr, options.target, options.machine, 1};
  const Written large{.bytes = 1e9}, small{.bytes = 100e3}, cold{.bytes = 100e3, .cold = true};
  EXPECT_DOUBLE_EQ(StoreCycles(one, large, 2e9, false) / StoreCycles(one, large, 2e9, true), 2);
  const double near = StoreCycles(one, small, 200e3, false);  // in the second cache: nothing is fetched
  EXPECT_DOUBLE_EQ(near, 100e3 / (kWithOtherWork * options.machine.l2));
  EXPECT_GT(StoreCycles(one, small, 200e3, true), near);
  EXPECT_DOUBLE_EQ(StoreCycles(one, cold, 200e3, false), 2 * 100e3 / (kWithOtherWork * options.machine.memory));
  EXPECT_LT(StoreCycles(one, cold, 200e3, true), StoreCycles(one, cold, 200e3, false));
}

}  // namespace
}  // namespace hone
