#include "tuner/search/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/file.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/workloads.h"
#include "tuner/search/candidates/generated_space.h"
#include "tuner/search/strategies/population.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

// Random points of a small workload. Their times are what a draft that is wrong about two knobs would be wrong by: a
// source's first knob costs up to three times the draft, and every other value of the second saves a third.
Recording Made(int candidates) {
  Recording recording;
  const PrimFunc func = testing::DenseRelu(24, 48, 40);
  recording.name = "dense";
  recording.workload = ToText(func);
  recording.target = "cpu:x86-64-v4";
  recording.threads = 2;
  recording.numeric = v1::NUMERIC_STRICT;
  recording.note = "made by a test";
  recording.machine = ToText(UsualMachine(*ParseTarget(recording.target)));
  recording.networks = {{"small", 2}, {"smaller", 1}};
  const auto space = MakeGeneratedSpace(func, {*ParseTarget(recording.target), 2, NumericLevel::kStrict});
  HONE_CHECK(space.ok()) << space.status().ToString();
  Random random(3);
  std::set<std::string> traces;
  while (static_cast<int>(recording.candidates.size()) < candidates) {
    const Point point = RandomPoint(**space, random.Below((*space)->sources().size()), random);
    const std::optional<double> draft = (*space)->Draft(point);
    if (!draft.has_value()) continue;
    const absl::StatusOr<Built> built = (*space)->Build(point);
    if (!built.ok() || !traces.insert(built->trace).second) continue;
    const std::vector<int>& sizes = (*space)->sources()[point.source].sizes;
    double us = *draft;
    if (!sizes.empty()) us *= 1 + 2.0 * point.choice[0] / sizes[0];
    if (sizes.size() > 1 && point.choice[1] % 2 == 1) us *= 0.67;
    recording.candidates.push_back({us, 0.02, *draft, built->trace});
  }
  return recording;
}

std::shared_ptr<const RecordedSpace> SpaceOf(const Recording& recording) {
  absl::StatusOr<std::shared_ptr<const RecordedSpace>> space = RecordedSpace::Make(recording, 2);
  HONE_CHECK(space.ok()) << space.status().ToString();
  return *std::move(space);
}

const Recording& Small() {
  static const Recording recording = Made(300);
  return recording;
}

std::vector<double> Curve(const std::shared_ptr<const RecordedSpace>& space, v1::SearchStrategy strategy, uint64_t seed,
                          int trials, int threads = 1) {
  ReplayOptions options;
  options.trials = trials;
  options.batch = 8;
  options.tuning.pool = 256;
  options.tuning.finalists = 48;
  options.tuning.threads = threads;
  absl::StatusOr<std::vector<double>> curve = ReplaySearch(space, strategy, seed, options);
  HONE_CHECK(curve.ok()) << curve.status().ToString();
  return *std::move(curve);
}

constexpr v1::SearchStrategy kStrategies[] = {v1::SEARCH_MODEL, v1::SEARCH_RANDOM, v1::SEARCH_DRAFT};

TEST(Recording, IsReadAsItWasWritten) {
  const Recording recording = Made(20);
  const absl::StatusOr<Recording> again = ParseRecording(ToText(recording));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->name, recording.name);
  EXPECT_EQ(again->workload, recording.workload);
  EXPECT_EQ(again->target, recording.target);
  EXPECT_EQ(again->threads, recording.threads);
  EXPECT_EQ(again->numeric, recording.numeric);
  EXPECT_EQ(again->machine, recording.machine);
  EXPECT_EQ(again->note, recording.note);
  EXPECT_EQ(again->networks, recording.networks);
  ASSERT_EQ(again->candidates.size(), recording.candidates.size());
  size_t traces = 0;
  for (size_t i = 0; i < recording.candidates.size(); ++i) {
    EXPECT_EQ(again->candidates[i].trace, recording.candidates[i].trace);
    EXPECT_NEAR(again->candidates[i].us, recording.candidates[i].us, 1e-5 * recording.candidates[i].us);
    EXPECT_NEAR(again->candidates[i].spread, recording.candidates[i].spread, 1e-3);
    traces += recording.candidates[i].trace.size();
  }
  EXPECT_LT(ToText(recording).size(), traces) << "a line is kept once";
}

struct BadFile {
  const char* name;
  std::string text;
  const char* says;
};

TEST(Recording, RefusesWhatIsNone) {
  const std::string head = R"({"format":2,"name":"n","workload":"","target":"t","lines":["a","b"]})";
  const BadFile files[] = {
      {"Empty", "", "line 1: the file is empty"},
      {"OtherFormat", R"({"format":1})", "line 1: not the header of a recorded space of format 2"},
      {"NotJson", "hello\n", "line 1: not the header"},
      {"TornRow", head + "\n[1,0,2,0]\n[3,", "line 3: not [us, spread, draft_us, lines...]"},
      {"NoLines", head + "\n[1,0,2]\n", "line 2: not [us, spread, draft_us, lines...]"},
      {"NoWeight", R"({"format":2,"networks":{"resnet18":"often"}})", "line 1: the weight of network resnet18"},
      {"NoSuchLine", head + "\n[1,0,2,0,2]\n", "line 2: there is no line 2 of traces"},
      {"NegativeLine", head + "\n[1,0,2,-1]\n", "line 2: there is no line -1 of traces"},
      {"NoTime", head + "\n[0,0,2,1]\n", "line 2: the time is 0 us"},
  };
  for (const BadFile& file : files) {
    SCOPED_TRACE(file.name);
    const absl::StatusOr<Recording> recording = ParseRecording(file.text);
    EXPECT_EQ(recording.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(recording.status().message()), HasSubstr(file.says));
  }
}

TEST(RecordedSpace, HasWhatWasRecordedAndNothingElse) {
  Recording recording = Made(60);
  recording.candidates.push_back({0.001, 0, 1, "no trace at all\n"});
  const auto space = SpaceOf(recording);
  EXPECT_EQ(space->left_out(), 1u);
  EXPECT_GE(space->size(), 55u);
  double best = 1e9;
  for (size_t i = 0; i + 1 < recording.candidates.size(); ++i) best = std::min(best, recording.candidates[i].us);
  EXPECT_EQ(space->best_us(), best) << "what does not replay is not the best";
  std::set<std::string> built;
  Random random(1);
  for (int i = 0; i < 400; ++i) {
    const Point point = RandomPoint(*space, random.Below(space->sources().size()), random);
    EXPECT_EQ(space->Snap(point), point);
    ASSERT_TRUE(space->Draft(point).has_value());
    const absl::StatusOr<Built> candidate = space->Build(point);
    ASSERT_TRUE(candidate.ok()) << candidate.status();
    built.insert(candidate->trace);
    EXPECT_EQ(space->Identify(candidate->trace)->point, point);
    for (const Point& near : Neighbours(*space, point)) EXPECT_TRUE(space->Build(near).ok());
  }
  EXPECT_GE(built.size(), 30u);
}

TEST(RecordedSpace, CountsWhatTodaysGeneratorsBuildOtherwiseAndKeepsItsDrafts) {
  Recording recording = Made(60);
  EXPECT_EQ(SpaceOf(recording)->built_otherwise(), 0u);
  // A value that no knob has any more.
  Recording::Candidate* stale = &recording.candidates[20];
  const size_t begin = stale->trace.find("sample_categorical(");
  ASSERT_NE(begin, std::string::npos);
  stale->trace.replace(begin, stale->trace.find('\n', begin) - begin,
                       "sample_categorical([7777], probs=[], decision=0)");
  stale->draft_us = 12345;
  const auto space = SpaceOf(recording);
  EXPECT_EQ(space->built_otherwise(), 1u);
  EXPECT_EQ(space->left_out(), 0u);
  EXPECT_EQ(space->Draft(*space->Identify(stale->trace)->point), 12345);
}

TEST(RecordedSpace, SaysSoWhenNothingReplays) {
  Recording recording = Made(2);
  for (Recording::Candidate& candidate : recording.candidates) candidate.trace = "b0 = sch.get_block(name=\"gone\")\n";
  EXPECT_THAT(std::string(RecordedSpace::Make(recording, 1).status().message()), HasSubstr("none of its 2 candidates"));
}

TEST(Replay, NeverFallsAndEndsAtTheBestOfASpaceThatIsUsedUp) {
  const auto space = SpaceOf(Made(40));
  for (const v1::SearchStrategy strategy : kStrategies) {
    SCOPED_TRACE(strategy);
    const std::vector<double> curve = Curve(space, strategy, 1, 1000);
    ASSERT_FALSE(curve.empty());
    EXPECT_LE(curve.size(), space->size());
    for (size_t i = 1; i < curve.size(); ++i) EXPECT_GE(curve[i], curve[i - 1]);
    EXPECT_EQ(curve.back(), 1.0);
  }
}

TEST(Replay, IsAFunctionOfTheSeedWhateverTheNumberOfThreads) {
  const auto space = SpaceOf(Small());
  for (const v1::SearchStrategy strategy : kStrategies) {
    SCOPED_TRACE(strategy);
    EXPECT_EQ(Curve(space, strategy, 5, 48), Curve(space, strategy, 5, 48, /*threads=*/3));
  }
  EXPECT_NE(Curve(space, v1::SEARCH_RANDOM, 5, 48), Curve(space, v1::SEARCH_RANDOM, 6, 48));
}

TEST(Replay, ASmallBudgetBeginsWithHalfOfIt) {
  const auto space = SpaceOf(Made(60));
  const auto first_ten = [&](int trials, int batch) {
    ReplayOptions options;
    options.trials = trials;
    options.batch = batch;
    std::vector<double> found;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const absl::StatusOr<std::vector<double>> curve = ReplaySearch(space, v1::SEARCH_RANDOM, seed, options);
      HONE_CHECK(curve.ok()) << curve.status().ToString();
      found.insert(found.end(), curve->begin(), curve->begin() + 10);
    }
    return found;
  };
  EXPECT_EQ(first_ten(10, 16), first_ten(10, 5));
  EXPECT_NE(first_ten(32, 16), first_ten(10, 5)) << "what a batch draws depends on where it begins";
}

double MeanQuality(const std::shared_ptr<const RecordedSpace>& space, v1::SearchStrategy strategy, int trials) {
  std::vector<double> found;
  for (uint64_t seed = 1; seed <= 12; ++seed) found.push_back(Curve(space, strategy, seed, trials).back());
  return MeanOf(found).mean;
}

TEST(Replay, TheModelLearnsWhatTheDraftGetsWrong) {
  const auto space = SpaceOf(Small());
  const double model = MeanQuality(space, v1::SEARCH_MODEL, 40);
  EXPECT_GT(model, MeanQuality(space, v1::SEARCH_RANDOM, 40));
  EXPECT_GE(model, MeanQuality(space, v1::SEARCH_DRAFT, 40));
}

Recording FromLaboratory(const std::string& task) {
  const std::filesystem::path folder = std::filesystem::path(HONE_TEST_DATA) / "bench/search/spaces";
  const absl::StatusOr<std::string> text = ReadFile(folder / absl::StrCat(task, ".space"));
  HONE_CHECK(text.ok()) << text.status().ToString();
  absl::StatusOr<Recording> recording = ParseRecording(*text);
  HONE_CHECK(recording.ok()) << recording.status().ToString();
  return *std::move(recording);
}

TEST(Recording, IsDividedByTheKindOfTheSources) {
  const Recording recording = FromLaboratory("conv2d_3x3_s1_14x14x256_add_relu");
  const Recording templates = OfKind(recording, "template"), sketches = OfKind(recording, "sketch");
  EXPECT_GT(templates.candidates.size(), 10u);
  EXPECT_GT(sketches.candidates.size(), 10u);
  EXPECT_EQ(templates.candidates.size() + sketches.candidates.size(), recording.candidates.size());
  for (const Recording::Candidate& candidate : templates.candidates)
    EXPECT_THAT(candidate.trace, HasSubstr("template"));
  for (const Recording::Candidate& candidate : sketches.candidates) EXPECT_THAT(candidate.trace, HasSubstr("sketch"));
}

// The short form of tests/bench/search/run: on what was measured of random draws of real tasks, the model's strategy
// finds better candidates than random order in as many trials, and no worse ones than the draft's order.
TEST(Replay, OnRecordedTasksTheModelBeatsRandomAndIsNotBehindTheDraft) {
  constexpr uint64_t kSeeds = 10;
  constexpr size_t kCandidates = 240;  // of each: to replay and lower them all is what takes long here
  std::map<v1::SearchStrategy, double> log_quality;
  int tasks = 0;
  for (const char* task : {"depthwise_conv2d_3x3_s1_14x14x384_add_clip", "max_pool_3x3_s2_56x56x64",
                           "dense_1x1000x512_add", "softmax_12x128x128"}) {
    SCOPED_TRACE(task);
    Recording recording = FromLaboratory(task);
    recording.candidates.resize(kCandidates);
    const auto space = SpaceOf(recording);
    EXPECT_EQ(space->left_out(), 0u) << "stored traces replay for ever";
    ++tasks;
    for (const v1::SearchStrategy strategy : kStrategies) {
      double sum = 0;
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) sum += std::log(Curve(space, strategy, seed, 24).back());
      log_quality[strategy] += sum / kSeeds;
    }
  }
  const auto quality = [&](v1::SearchStrategy strategy) { return std::exp(log_quality[strategy] / tasks); };
  EXPECT_GT(quality(v1::SEARCH_MODEL), quality(v1::SEARCH_RANDOM) + 0.02);
  EXPECT_GE(quality(v1::SEARCH_MODEL), quality(v1::SEARCH_DRAFT) - 0.005);
  RecordProperty("model", std::to_string(quality(v1::SEARCH_MODEL)));
  RecordProperty("random", std::to_string(quality(v1::SEARCH_RANDOM)));
  RecordProperty("draft", std::to_string(quality(v1::SEARCH_DRAFT)));
}

TEST(MeanOf, HasStudentsInterval) {
  EXPECT_EQ(MeanOf({0.5}).mean, 0.5);
  EXPECT_EQ(MeanOf({0.5}).half, 0);
  const Mean two = MeanOf({1, 3});
  EXPECT_EQ(two.mean, 2);
  EXPECT_NEAR(two.half, 12.71, 0.01);
}

}  // namespace
}  // namespace hone
