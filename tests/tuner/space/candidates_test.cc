// Candidates of every generator, on operators of every kind: they build, lower, replay, and compute what the workload
// does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/random.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/schedule/workload_table.h"
#include "tests/compiler/schedule/workloads.h"
#include "tests/thorough.h"
#include "tests/tuner/space/extra_workloads.h"
#include "tests/tuner/space/legal_choice.h"
#include "tuner/space/default_schedule.h"
#include "tuner/space/generator.h"

namespace hone {
namespace {

using testing::Reference;
using testing::SmallWorkload;

// At random, of every generator: beside the draft's best, one finds what is wrong with many choices. HONE_THOROUGH=1
// takes three.
const int kChoices = Thorough() ? 3 : 1;

std::vector<SmallWorkload> Workloads() {
  std::vector<SmallWorkload> all = testing::SmallWorkloads();
  for (SmallWorkload& more : testing::LargerWorkloads()) all.push_back(std::move(more));
  return all;
}

// Narrow vectors, so that small sizes fill some; and this machine's kind.
SpaceOptions Narrow() { return {*ParseTarget("cpu:cortex-a72"), 2, NumericLevel::kStrict}; }
SpaceOptions Wide() { return {*ParseTarget("cpu:x86-64-v4"), 2, NumericLevel::kStrict}; }
// With instructions for four products of bytes.
SpaceOptions WithDots() { return {*ParseTarget("cpu:x86-64-v4+avx512vnni"), 2, NumericLevel::kStrict}; }

// And for whole tiles of them.
SpaceOptions WithTiles() {
  return {*ParseTarget("cpu:x86-64-v4+avx512vnni+amx-tile+amx-int8"), 2, NumericLevel::kStrict};
}

void ExpectGood(const SmallWorkload& workload, const Reference& reference, const Generator& generator,
                const Choice& choice) {
  SCOPED_TRACE(workload.name + ", " + generator.name() + ", " + ::testing::PrintToString(choice));
  const std::optional<double> us = generator.Draft(choice);
  ASSERT_TRUE(us.has_value());
  EXPECT_TRUE(std::isfinite(*us) && *us > 0) << *us;
  const absl::StatusOr<Schedule> schedule = generator.Build(choice);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const std::string text = ToText(schedule->trace());
  const absl::StatusOr<Trace> trace = ParseTrace(text);
  ASSERT_TRUE(trace.ok()) << trace.status() << "\n" << text;
  const std::optional<Origin> origin = OriginOf(*trace);
  ASSERT_TRUE(origin.has_value());
  EXPECT_EQ(origin->generator, generator.name());
  EXPECT_EQ(origin->choice, choice);
  const absl::StatusOr<Schedule> again = Replay(*trace, workload.func);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(StructuralEqual(again->func(), schedule->func()));
  EXPECT_EQ(reference.CheckInterpreted(schedule->Program()), "") << text;
  EXPECT_EQ(reference.CheckInterpreted(testing::Reversed(schedule->Program())), "") << "backwards\n" << text;
  const absl::StatusOr<LoweredFunc> lowered = Lower(schedule->func());
  EXPECT_TRUE(lowered.ok()) << lowered.status() << "\n" << text;
}

class Candidates : public ::testing::TestWithParam<SmallWorkload> {};

TEST_P(Candidates, OfAllGeneratorsAreRight) {
  const SmallWorkload& workload = GetParam();
  const Reference reference(workload);
  std::vector<SpaceOptions> all = {Narrow(), Wide()};
  if (workload.name.find("byte") != std::string::npos) {
    all.push_back(WithDots());
    all.push_back(WithTiles());
  }
  for (const SpaceOptions& options : all) {
    const auto generators = Generators(workload.func, options);
    ASSERT_TRUE(generators.ok()) << generators.status();
    std::set<std::string> names;
    for (size_t g = 0; g < generators->size(); ++g) {
      const Generator& generator = *(*generators)[g];
      EXPECT_TRUE(names.insert(generator.name()).second) << generator.name() << " is there twice";
      const absl::StatusOr<Choice> best = BestByDraft(generator);
      ASSERT_TRUE(best.ok()) << generator.name() << ": " << best.status();
      ExpectGood(workload, reference, generator, *best);
      for (int i = 0; i < kChoices; ++i) {
        Random random(17, g * 100 + static_cast<uint64_t>(i));
        if (const std::optional<Choice> choice = testing::LegalChoice(generator, random))
          ExpectGood(workload, reference, generator, *choice);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Candidates, ::testing::ValuesIn(Workloads()),
                         [](const auto& info) { return info.param.name; });

TEST(DefaultTrace, IsTheDraftsFavouriteOfAllSources) {
  const PrimFunc func = testing::DenseRelu(32, 64, 48);
  const absl::StatusOr<Trace> trace = DefaultTrace(func, Wide());
  ASSERT_TRUE(trace.ok()) << trace.status();
  const std::optional<Origin> origin = OriginOf(*trace);
  ASSERT_TRUE(origin.has_value());
  const auto generators = Generators(func, Wide());
  ASSERT_TRUE(generators.ok()) << generators.status();
  double least = 0, chosen = 0;
  for (const auto& generator : *generators) {
    const double us = *generator->Draft(*BestByDraft(*generator));
    least = least == 0 ? us : std::min(least, us);
    if (generator->name() == origin->generator) chosen = *generator->Draft(origin->choice);
  }
  EXPECT_EQ(chosen, least);
}

TEST(OriginOf, IsNothingForATraceByHand) {
  const absl::StatusOr<Trace> trace = ParseTrace("b0 = sch.get_block(name=\"C\", func_name=\"main\")\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_FALSE(OriginOf(*trace).has_value());
}

TEST(Generators, RefuseAFunctionWithoutBlocks) {
  PrimFunc func = testing::TwoElementwise(4, 4);
  func.body = Stmt::Make(Seq{});
  EXPECT_EQ(Generators(func, Wide()).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace hone
