#include "tuner/search/strategies/task_search.h"
#include "compiler/schedule/trace/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/ir/structural.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone {
namespace {

using Batch = std::vector<v1::Candidate>;

SpaceOptions Options() { return {*ParseTarget("cpu:x86-64-v4"), 2, NumericLevel::kStrict}; }

std::unique_ptr<TaskSearch> NewSearch(const PrimFunc& func, uint64_t seed = 1, int threads = 1) {
  SearchTuning tuning;
  tuning.pool = 256;
  tuning.threads = threads;
  absl::StatusOr<std::unique_ptr<TaskSearch>> search = TaskSearch::Create(func, Options(), seed, tuning);
  HONE_CHECK(search.ok()) << search.status().ToString();
  return *std::move(search);
}

Batch Next(TaskSearch& search, int count = 8) {
  absl::StatusOr<Batch> batch = search.Propose(count);
  EXPECT_TRUE(batch.ok()) << batch.status();
  EXPECT_LE(batch->size(), static_cast<size_t>(count));
  return *std::move(batch);
}

v1::Observation Seen(const std::string& trace, double us) {
  v1::Observation observation;
  observation.set_trace(trace);
  observation.set_kind(v1::OUTCOME_OK);
  observation.set_median_us(us);
  return observation;
}

v1::Observation Failed(const std::string& trace, v1::OutcomeKind kind = v1::OUTCOME_BUILD_ERROR) {
  v1::Observation observation;
  observation.set_trace(trace);
  observation.set_kind(kind);
  return observation;
}

Origin From(const v1::Candidate& candidate) {
  const absl::StatusOr<Trace> trace = ParseTrace(candidate.trace());
  HONE_CHECK(trace.ok()) << trace.status().ToString();
  return *OriginOf(*trace);
}

// A latency that the seed of nothing decides: by the text alone.
double Latency(const v1::Candidate& candidate) {
  return candidate.predicted_us() * (1 + static_cast<double>(std::hash<std::string>{}(candidate.trace()) % 100) / 100);
}

std::vector<std::string> Log(TaskSearch& search, int rounds) {
  std::vector<std::string> log;
  for (int round = 0; round < rounds; ++round) {
    for (const v1::Candidate& candidate : Next(search)) {
      log.push_back(candidate.trace());
      search.Observe(Seen(candidate.trace(), Latency(candidate)));
    }
  }
  return log;
}

const PrimFunc& Dense() {
  static const PrimFunc func = testing::DenseRelu(24, 48, 40);
  return func;
}

// With a reduction long enough for the template of products.
const PrimFunc& LongDense() {
  static const PrimFunc func = testing::DenseRelu(24, 48, 96);
  return func;
}

// The height of the register tile that a candidate has.
int64_t Height(const v1::Candidate& candidate) {
  const Origin origin = From(candidate);
  for (size_t k = 0; k < origin.knobs.size(); ++k) {
    if (origin.knobs[k].ends_with("i.inner")) return origin.values[k];
  }
  ADD_FAILURE() << "no height among " << ::testing::PrintToString(origin.knobs);
  return 0;
}

TEST(TaskSearch, IsAFunctionOfSeedAndObservations) {
  const auto a = NewSearch(Dense(), 7), b = NewSearch(Dense(), 7, 3), other = NewSearch(Dense(), 8);
  const std::vector<std::string> log = Log(*a, 4);
  EXPECT_EQ(log, Log(*b, 4)) << "also with more threads";
  EXPECT_NE(log, Log(*other, 4));
}

TEST(TaskSearch, ProposesNothingTwice) {
  const auto search = NewSearch(Dense());
  std::set<std::string> traces;
  std::set<uint64_t> programs;
  for (int round = 0; round < 6; ++round) {
    for (const v1::Candidate& candidate : Next(*search)) {
      EXPECT_TRUE(traces.insert(candidate.trace()).second);
      const absl::StatusOr<Schedule> schedule = Replay(*ParseTrace(candidate.trace()), Dense());
      ASSERT_TRUE(schedule.ok()) << schedule.status();
      EXPECT_TRUE(programs.insert(StructuralHash(schedule->func())).second) << "another choice, but the same program";
      if (round % 2 == 0) search->Observe(Seen(candidate.trace(), Latency(candidate)));  // the rest stays out
    }
  }
  EXPECT_GE(traces.size(), 40u);
  EXPECT_EQ(search->refused(), 0) << search->last_refusal();
}

TEST(TaskSearch, EverySourceHasATurn) {
  const auto search = NewSearch(LongDense());
  std::map<std::string, int> by_source;
  for (int round = 0; round < 4; ++round) {
    for (const v1::Candidate& candidate : Next(*search, 16)) {
      ++by_source[candidate.source()];
      search->Observe(Seen(candidate.trace(), Latency(candidate)));
    }
  }
  EXPECT_GT(by_source["template"], 0);
  EXPECT_GT(by_source["sketch"], 0);
  for (const auto& [source, count] : by_source)
    EXPECT_TRUE(source == "template" || source == "sketch" || source == "mutate") << source;
}

// What fails is tried less than it is where it does not fail: high tiles, which the draft likes.
TEST(TaskSearch, LearnsFromFailures) {
  const auto is_of_the_kind = [](const v1::Candidate& candidate) { return Height(candidate) >= 8; };
  const auto proposed = [&](bool fails) {
    const auto search = NewSearch(Dense());
    int count = 0;
    for (int round = 0; round < 8; ++round) {
      for (const v1::Candidate& candidate : Next(*search)) {
        const bool is = is_of_the_kind(candidate);
        count += is ? 1 : 0;
        search->Observe(is && fails ? Failed(candidate.trace()) : Seen(candidate.trace(), candidate.predicted_us()));
      }
    }
    return count;
  };
  const int where_they_fail = proposed(true), where_they_do_not = proposed(false);
  EXPECT_GT(where_they_fail, 0);
  EXPECT_LT(where_they_fail, where_they_do_not / 2);
}

TEST(TaskSearch, GoesWhereItWasFast) {
  const auto search = NewSearch(Dense());
  // Low tiles, which the draft does not like, are ten times as fast.
  const auto cost = [](const v1::Candidate& candidate) { return Height(candidate) <= 3 ? 1.0 : 10.0; };
  int first = 0, last = 0;
  for (int round = 0; round < 6; ++round) {
    for (const v1::Candidate& candidate : Next(*search)) {
      const double us = cost(candidate);
      if (round == 0) first += us == 1.0 ? 1 : 0;
      if (round == 5) last += us == 1.0 ? 1 : 0;
      search->Observe(Seen(candidate.trace(), us));
    }
  }
  EXPECT_GE(last, first);
  EXPECT_GE(last, 5) << "of 8";
}

TEST(TaskSearch, LeavesOutWhatIsPending) {
  const auto first = NewSearch(Dense(), 3), second = NewSearch(Dense(), 3);
  std::set<std::string> pending;
  for (const v1::Candidate& candidate : Next(*first)) {
    pending.insert(candidate.trace());
    second->NotePending(candidate.trace());
  }
  for (const v1::Candidate& candidate : Next(*second)) EXPECT_EQ(pending.count(candidate.trace()), 0u);
}

TEST(TaskSearch, TriesSeedsEarlyAndOnlyThoseThatReplay) {
  const auto donor = NewSearch(Dense(), 3), search = NewSearch(Dense(), 4);
  const std::string good = Next(*donor).back().trace();
  search->AddSeed("nonsense");
  search->AddSeed("b0 = sch.get_block(name=\"no such block\", func_name=\"main\")\n");
  search->AddSeed(good);
  search->AddSeed(good);
  const Batch batch = Next(*search);
  ASSERT_EQ(batch.size(), 8u);
  EXPECT_EQ(batch[0].trace(), good);
  EXPECT_EQ(batch[0].source(), "seed");
  for (size_t i = 1; i < batch.size(); ++i) EXPECT_NE(batch[i].source(), "seed");
  search->Observe(Seen(good, 5));
  search->AddSeed(good);  // said again with every request
  for (const v1::Candidate& candidate : Next(*search)) EXPECT_NE(candidate.trace(), good);
}

TEST(TaskSearch, SeedsAreAQuarterOfABatch) {
  const auto donor = NewSearch(Dense(), 3), search = NewSearch(Dense(), 4);
  std::vector<std::string> theirs;
  for (int round = 0; round < 3; ++round) {
    for (const v1::Candidate& candidate : Next(*donor, 8)) theirs.push_back(candidate.trace());
  }
  for (size_t i = theirs.size() - 10; i < theirs.size(); ++i)
    search->AddSeed(theirs[i]);  // not the first, both have those
  std::vector<int> seeds;
  for (int round = 0; round < 4; ++round) {
    int count = 0;
    for (const v1::Candidate& candidate : Next(*search, 8)) count += candidate.source() == "seed" ? 1 : 0;
    seeds.push_back(count);
  }
  EXPECT_LE(seeds[0], 2);
  EXPECT_LE(seeds[1], 2);
  EXPECT_GE(seeds[0] + seeds[1] + seeds[2] + seeds[3], 3) << "the others come with later batches";
}

// The same kernel with other extents has other lists of candidates: an index into one says nothing about another.
const PrimFunc& LargerDense() {
  static const PrimFunc func = testing::DenseRelu(96, 448, 320);
  return func;
}

double Log2Distance(int64_t a, int64_t b) {
  return std::abs(std::log2(static_cast<double>(a) + 1) - std::log2(static_cast<double>(b) + 1));
}

TEST(TaskSearch, FitsASeedOfAnotherShapeByValue) {
  const auto donor = NewSearch(LargerDense(), 3);
  const auto generators = Generators(LongDense(), Options());
  ASSERT_TRUE(generators.ok()) << generators.status();
  int checked = 0;
  for (const v1::Candidate& theirs : Next(*donor, 32)) {
    const Origin from = From(theirs);
    const auto search = NewSearch(LongDense(), 4);
    search->AddSeed(theirs.trace());
    const Batch batch = Next(*search, 1);
    ASSERT_FALSE(batch.empty());
    if (batch[0].source() != "seed") continue;  // no source of that name here
    ASSERT_TRUE(Replay(*ParseTrace(batch[0].trace()), LongDense()).ok());
    const Origin fitted = From(batch[0]);
    ASSERT_EQ(fitted.generator, from.generator);
    ASSERT_EQ(fitted.knobs, from.knobs);
    for (const auto& generator : *generators) {
      if (generator->name() != fitted.generator) continue;
      Choice nearest;
      for (size_t k = 0; k < fitted.values.size(); ++k) {
        const std::vector<int64_t>& candidates = generator->knobs()[k].candidates;
        EXPECT_NE(std::find(candidates.begin(), candidates.end(), fitted.values[k]), candidates.end());
        const auto best = std::min_element(candidates.begin(), candidates.end(), [&](int64_t a, int64_t b) {
          return Log2Distance(a, from.values[k]) < Log2Distance(b, from.values[k]);
        });
        nearest.push_back(static_cast<int>(best - candidates.begin()));
      }
      if (!generator->Draft(nearest).has_value()) continue;  // then it is one near to that
      ++checked;
      for (size_t k = 0; k < nearest.size(); ++k) {
        EXPECT_EQ(fitted.values[k], generator->knobs()[k].candidates[static_cast<size_t>(nearest[k])])
            << fitted.knobs[k] << " was " << from.values[k];
      }
    }
  }
  EXPECT_GE(checked, 8);
}

// A trace of the larger kernel may replay on the smaller one, and is then a program that no choice here need give.
TEST(TaskSearch, FilesATimeUnderTheProgramThatRan) {
  const auto donor = NewSearch(LargerDense(), 3), search = NewSearch(Dense(), 4);
  std::map<uint64_t, double> ran;  // by program
  double us = 1000;
  for (const v1::Candidate& theirs : Next(*donor, 64)) {
    const absl::StatusOr<Schedule> schedule = Replay(*ParseTrace(theirs.trace()), Dense());
    if (!schedule.ok()) continue;
    const absl::StatusOr<LoweredFunc> lowered = Lower(schedule->func());
    if (!lowered.ok() || !ran.emplace(StructuralHash(lowered->func), us).second) continue;
    search->Observe(Seen(theirs.trace(), us));
    us += 1;
  }
  ASSERT_GE(ran.size(), 4u);
  Next(*search);
  EXPECT_EQ(search->experience().timed().size(), ran.size()) << "all of them train the model";
  for (const auto& [measured_us, point] : search->experience().measured()) {
    const absl::StatusOr<Built> built = search->space().Build(point);
    ASSERT_TRUE(built.ok()) << built.status();
    ASSERT_EQ(ran.count(built->program.hash), 1u) << "a time of a program that never ran";
    EXPECT_EQ(ran.at(built->program.hash), measured_us);
  }
}

// Traces that were stored before they named their knobs.
TEST(TaskSearch, ReadsTracesWithoutNamesOfKnobs) {
  const auto donor = NewSearch(Dense(), 3), search = NewSearch(Dense(), 4);
  const std::string named = Next(*donor).back().trace();
  std::string old;
  for (const absl::string_view line : absl::StrSplit(named, '\n')) {
    if (line.find(kKnobsKey) == absl::string_view::npos) absl::StrAppend(&old, line, "\n");
  }
  ASSERT_NE(old, named);
  search->Observe(Seen(old, 5));
  for (const v1::Candidate& candidate : Next(*search)) EXPECT_NE(candidate.trace(), named);
  ASSERT_EQ(search->experience().measured().size(), 1u);
  EXPECT_EQ(search->experience().measured()[0].second, *search->space().Fit(named));
}

// What the network or a worker did says nothing of the candidate.
TEST(TaskSearch, AFailureOfTheInfrastructureIsNoLabel) {
  for (const v1::OutcomeKind kind : {v1::OUTCOME_INFRA, v1::OUTCOME_CANCELLED}) {
    const auto search = NewSearch(LongDense());
    const Batch batch = Next(*search);
    for (const v1::Candidate& candidate : batch) search->Observe(Failed(candidate.trace(), kind));
    std::set<std::string> again;
    for (const v1::Candidate& candidate : Next(*search)) again.insert(candidate.trace());
    int repeated = 0;
    for (const v1::Candidate& candidate : batch) repeated += again.count(candidate.trace()) > 0 ? 1 : 0;
    // Nothing was learned, so the draft's favourites come again; the others were drawn at random from a large space.
    EXPECT_GT(again.count(batch.front().trace()), 0u);
    EXPECT_GE(repeated, 3) << "of 8";
    EXPECT_TRUE(search->experience().timed().empty());
    for (const v1::Candidate& candidate : batch) {
      const std::optional<Point> point = search->space().Fit(candidate.trace());
      ASSERT_TRUE(point.has_value());
      EXPECT_EQ(search->experience().legality().RiskOf(*point), 0);
    }
    // One that brings the infrastructure down again and again is let go.
    for (const v1::Candidate& candidate : batch) search->Observe(Failed(candidate.trace(), kind));
    for (const v1::Candidate& candidate : Next(*search)) {
      for (const v1::Candidate& twice : batch) EXPECT_NE(candidate.trace(), twice.trace());
    }
  }
}

TEST(TaskSearch, AFailureOfTheProgramIsNoTime) {
  const auto search = NewSearch(Dense());
  const Batch batch = Next(*search);
  for (const v1::Candidate& candidate : batch) search->Observe(Failed(candidate.trace(), v1::OUTCOME_WRONG_RESULT));
  for (const v1::Candidate& candidate : Next(*search)) {
    for (const v1::Candidate& failed : batch) EXPECT_NE(candidate.trace(), failed.trace());
  }
  EXPECT_TRUE(search->experience().timed().empty());
  EXPECT_GT(search->experience().legality().RiskOf(*search->space().Fit(batch[0].trace())), 0.5);
}

TEST(TaskSearch, EndsWhereTheSpaceDoes) {
  const auto search = NewSearch(testing::TwoElementwise(2, 3));
  size_t proposed = 0;
  for (int round = 0; round < 50; ++round) {
    const Batch batch = Next(*search);
    if (batch.empty()) {
      EXPECT_GT(proposed, 0u);
      EXPECT_TRUE(Next(*search).empty()) << "and stays ended";
      return;
    }
    proposed += batch.size();
    for (const v1::Candidate& candidate : batch) search->Observe(Seen(candidate.trace(), 1));
  }
  FAIL() << proposed << " candidates for six elements";
}

TEST(TaskSearch, SurvivesObservationsOfAnything) {
  const auto search = NewSearch(Dense());
  search->Observe(Seen("", 1));
  search->Observe(Seen("not a trace", -1));
  search->Observe(Seen("b0 = sch.get_block(name=\"C\", func_name=\"main\")\n", 1e300));
  search->Observe(Failed("sch.annotate(block_or_loop=None, ann_key=\"hone.generator\", ann_val=\"template\")\n"));
  const Batch batch = Next(*search);
  ASSERT_FALSE(batch.empty());
  search->Observe(Seen(batch[0].trace(), 0));
  search->Observe(Seen(batch[0].trace(), 3));
  search->Observe(Failed(batch[0].trace()));  // the same candidate, again and otherwise
  EXPECT_EQ(search->num_observations(), 7u);
  EXPECT_FALSE(Next(*search).empty());
}

}  // namespace
}  // namespace hone
