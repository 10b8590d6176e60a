// What schedules of one size are expected to take at others.
#include "tuner/space/schedules_by_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/schedule/primitives/layout_constant.h"
#include "compiler/schedule/trace/trace_edit.h"
#include "compiler/te/te.h"
#include "tests/tuner/space/legal_choice.h"

namespace hone {
namespace {

using te::Compute;
using te::Indices;
using te::Placeholder;
using te::ReduceAxis;
using te::Tensor;

// n rows, 1 to 512, times a constant of 256 by 192.
PrimFunc Layer() {
  const Var n("n", kInt32, {1, 512});
  const Tensor x = Placeholder({n, 256}, kFloat32, "x"), w = Placeholder({256, 192}, kFloat32, "w");
  const ReduceAxis k(256, "k");
  const Tensor y = Compute(
      {n, 192}, [&](const Indices& i) { return te::Sum(x(i[0], k) * w(k, i[1]), {k}); }, "dense");
  return te::CreatePrimFunc({x, w}, {y}, "main", {{"constants", std::vector<int64_t>{1}}});
}

SpaceOptions Options() {
  SpaceOptions options;
  options.target = *ParseTarget("cpu:x86-64-v4");
  options.target.cores = 2;
  options.threads = 2;
  options.machine = UsualMachine(options.target);
  return options;
}

std::vector<std::unique_ptr<Generator>> At(int64_t n) {
  return *Generators(WithSizes(Layer(), std::vector<int64_t>{n}), Options());
}

TEST(DraftOfOther, OfItselfIsTheDraft) {
  Random random(1, 0);
  int drafted = 0;
  for (const auto& generator : At(96)) {
    for (int i = 0; i < 20; ++i) {
      const std::optional<Choice> choice = testing::LegalChoice(*generator, random);
      if (!choice.has_value()) continue;
      EXPECT_EQ(generator->DraftOfOther(*generator, *choice), generator->Draft(*choice)) << generator->name();
      ++drafted;
    }
  }
  EXPECT_GT(drafted, 20);
}

// Tiles stay as they are: of a schedule with all rows in one piece a quarter of the rows leave a thread idle.
TEST(DraftOfOther, CountsThePiecesThatAreLeft) {
  const auto large = At(512), small = At(128);
  int idle = 0;
  for (const auto& generator : large) {
    const absl::StatusOr<Choice> choice = BestByDraft(*generator);
    if (!choice.ok()) continue;
    for (const auto& here : small) {
      const std::optional<double> us = here->DraftOfOther(*generator, *choice);
      if (!us.has_value()) continue;
      EXPECT_GT(*us, 0.15 * *generator->Draft(*choice)) << generator->name();
      EXPECT_LT(*us, *generator->Draft(*choice)) << generator->name();
      ++idle;
    }
  }
  EXPECT_GT(idle, 0);
}

// A piece of 96 rows serves 64 as well, and two of them 192. Of 128 rows 32 would be left for the second piece, and one
// thread would wait for the other.
TEST(DraftOfOther, PiecesAreAlike) {
  int drafted = 0;
  for (const auto& generator : At(96)) {
    const std::optional<Choice> choice = FitChoice(
        *generator, {generator->name(), {}, {1, 2, 8}, {"dense.v_i0.pieces", "dense.v_i1.pieces", "dense.v_i0.inner"}});
    if (!choice.has_value()) continue;
    const auto drafted_at = [&](int64_t rows) {
      const auto generators = At(rows);
      return std::ranges::any_of(generators,
                                 [&](const auto& here) { return here->DraftOfOther(*generator, *choice).has_value(); });
    };
    if (!drafted_at(192)) continue;
    EXPECT_TRUE(drafted_at(64)) << generator->name();
    EXPECT_FALSE(drafted_at(128)) << generator->name();
    ++drafted;
  }
  EXPECT_GT(drafted, 0);
}

TEST(SchedulesBySize, ReadTheConstantInOneLayout) {
  std::vector<std::vector<int64_t>> points;
  for (const int64_t n : {1, 2, 8, 33, 128, 512}) points.push_back({n});
  const absl::StatusOr<SchedulesBySize> schedules = SchedulesBySize::Make(Layer(), points, {}, Options());
  ASSERT_TRUE(schedules.ok()) << schedules.status();
  std::set<std::string> layouts;  // of the traces' steps
  for (const SchedulesBySize::Candidate& candidate : schedules->candidates()) {
    const absl::StatusOr<Trace> trace = schedules->TraceOf(candidate);
    ASSERT_TRUE(trace.ok()) << trace.status();
    for (const Step& step : trace->steps) {
      if (const auto* layout = step.As<LayoutConstantStep>()) layouts.insert(ToText(layout->index_map));
    }
    EXPECT_TRUE(ForAllSizes(*trace, Layer()).ok());
    EXPECT_GE(schedules->Regret(candidate, candidate.point, candidate.point), 1);
    EXPECT_LE(schedules->Regret(candidate, candidate.point, candidate.point), 2);
  }
  EXPECT_EQ(layouts.size(), 1u) << ::testing::PrintToString(layouts);
}

// What was measured is at hand first, where its sizes are, and the rest reads the constant as it does.
TEST(SchedulesBySize, WhatWasMeasuredDecidesTheLayout) {
  const std::vector<std::vector<int64_t>> points = {{8}, {128}, {512}};
  for (const int64_t width : {16, 64}) {
    std::vector<MeasuredSchedule> measured;
    for (const auto& generator : At(128)) {
      std::optional<Choice> choice;
      ASSERT_GE(generator->knobs().size(), 1u);
      for (const auto& [layout, drafted] : BestOfLayouts(*generator)) {
        for (size_t k = 0; k < generator->knobs().size(); ++k) {
          const Knob& knob = generator->knobs()[k];
          if (!layout.empty() && knob.name == "dense.v_i1.inner" &&
              knob.candidates[static_cast<size_t>(drafted.choice[k])] == width)
            choice = drafted.choice;
        }
      }
      if (!choice.has_value()) continue;
      measured.push_back({{128}, BuildCandidate(*generator, *choice)->trace()});
      break;
    }
    ASSERT_EQ(measured.size(), 1u) << width;
    const absl::StatusOr<SchedulesBySize> schedules = SchedulesBySize::Make(Layer(), points, measured, Options());
    ASSERT_TRUE(schedules.ok()) << schedules.status();
    const SchedulesBySize::Candidate& first = schedules->candidates().front();
    EXPECT_EQ(first.measured, 0);
    EXPECT_NEAR(std::max(schedules->Regret(first, 1, 1), 1.0), 1, 1e-9);
    for (const SchedulesBySize::Candidate& candidate : schedules->candidates()) {
      const std::string text = ToText(*schedules->TraceOf(candidate));
      EXPECT_NE(text.find(absl::StrCat(" // ", width, ",")), std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace hone
