#include "tuner/search/task_search.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/structural.h"
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

v1::Observation Failed(const std::string& trace) {
  v1::Observation observation;
  observation.set_trace(trace);
  observation.set_kind(v1::OUTCOME_BUILD_ERROR);
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
  const auto search = NewSearch(Dense());
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

// What fails is tried less and less.
TEST(TaskSearch, LearnsFromFailures) {
  const auto search = NewSearch(Dense());
  const auto fails = [](const v1::Candidate& candidate) {
    const Origin origin = From(candidate);
    return origin.generator == "template" && origin.choice[0] % 2 == 0;  // every other height of the tile
  };
  std::vector<int> failed;
  for (int round = 0; round < 8; ++round) {
    int count = 0;
    for (const v1::Candidate& candidate : Next(*search)) {
      const bool failure = fails(candidate);
      count += failure ? 1 : 0;
      search->Observe(failure ? Failed(candidate.trace()) : Seen(candidate.trace(), candidate.predicted_us()));
    }
    failed.push_back(count);
  }
  const int early = failed[0] + failed[1] + failed[2], late = failed[5] + failed[6] + failed[7];
  EXPECT_GT(early, 0);
  EXPECT_LT(late, early) << ::testing::PrintToString(failed);
}

TEST(TaskSearch, GoesWhereItWasFast) {
  const auto search = NewSearch(Dense());
  const auto cost = [](const v1::Candidate& candidate) {  // the tall tiles of the template are ten times as fast
    const Origin origin = From(candidate);
    return origin.generator == "template" && origin.choice[0] >= 3 ? 1.0 : 10.0;
  };
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

TEST(TaskSearch, TriesSeedsFirstAndOnlyThoseThatReplay) {
  const auto donor = NewSearch(Dense(), 3), search = NewSearch(Dense(), 4);
  const std::string good = Next(*donor).back().trace();
  search->AddSeed("nonsense");
  search->AddSeed("b0 = sch.get_block(name=\"no such block\", func_name=\"main\")\n");
  search->AddSeed(good);
  search->AddSeed(good);
  const Batch batch = Next(*search);
  ASSERT_EQ(batch.size(), 1u) << "seeds go out at once";
  EXPECT_EQ(batch[0].trace(), good);
  EXPECT_EQ(batch[0].source(), "seed");
  search->Observe(Seen(good, 5));
  for (const v1::Candidate& candidate : Next(*search)) EXPECT_NE(candidate.trace(), good);
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
