#include "tuner/search/strategies/strategy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "tests/compiler/schedule/workloads.h"
#include "tuner/search/candidates/generated_space.h"
#include "tuner/search/strategies/draft_correction.h"
#include "tuner/search/strategies/population.h"
#include "tuner/search/strategies/task_search.h"

namespace hone {
namespace {

SpaceOptions Narrow() { return {*ParseTarget("cpu:x86-64-v4"), 2, NumericLevel::kStrict}; }

std::unique_ptr<TaskSearch> NewSearch(v1::SearchStrategy strategy, uint64_t seed = 1, int threads = 1) {
  SearchTuning tuning;
  tuning.pool = 256;
  tuning.finalists = 48;
  tuning.threads = threads;
  // A reduction long enough for the template of products, so that there are two sources.
  absl::StatusOr<std::unique_ptr<TaskSearch>> search =
      TaskSearch::Create(testing::DenseRelu(24, 48, 96), Narrow(), seed, tuning, strategy);
  HONE_CHECK(search.ok()) << search.status().ToString();
  return *std::move(search);
}

v1::Observation Seen(const v1::Candidate& candidate, double us) {
  v1::Observation observation;
  observation.set_trace(candidate.trace());
  observation.set_kind(v1::OUTCOME_OK);
  observation.set_median_us(us);
  return observation;
}

std::vector<std::string> Log(TaskSearch& search, int rounds, bool polish = false) {
  std::vector<std::string> log;
  for (int round = 0; round < rounds; ++round) {
    const auto batch = search.Propose(8, polish);
    HONE_CHECK(batch.ok()) << batch.status().ToString();
    for (const v1::Candidate& candidate : *batch) {
      log.push_back(candidate.trace());
      search.Observe(Seen(candidate, 1 + static_cast<double>(std::hash<std::string>{}(candidate.trace()) % 100)));
    }
  }
  return log;
}

class Strategies : public ::testing::TestWithParam<v1::SearchStrategy> {};

TEST_P(Strategies, AreFunctionsOfSeedAndObservationsWhateverTheThreads) {
  const auto a = NewSearch(GetParam(), 7), b = NewSearch(GetParam(), 7, /*threads=*/4);
  const std::vector<std::string> log = Log(*a, 4);
  EXPECT_GE(log.size(), 24u);
  EXPECT_EQ(log, Log(*b, 4));
  EXPECT_EQ(std::set<std::string>(log.begin(), log.end()).size(), log.size()) << "nothing twice";
}

INSTANTIATE_TEST_SUITE_P(All, Strategies, ::testing::Values(v1::SEARCH_MODEL, v1::SEARCH_RANDOM, v1::SEARCH_DRAFT),
                         [](const auto& info) { return v1::SearchStrategy_Name(info.param); });

TEST(DraftStrategy, GoesByTheDraftAlone) {
  const auto search = NewSearch(v1::SEARCH_DRAFT);
  double last = 0;
  for (int round = 0; round < 3; ++round) {
    const auto batch = search->Propose(8);
    ASSERT_TRUE(batch.ok());
    for (const v1::Candidate& candidate : *batch) {
      EXPECT_GE(candidate.predicted_us(), last);
      last = candidate.predicted_us();
      search->Observe(Seen(candidate, 1e6 / last));  // the better the draft, the slower: it does not care
    }
  }
}

TEST(RandomStrategy, DrawsFromEverySource) {
  const auto search = NewSearch(v1::SEARCH_RANDOM);
  std::map<size_t, int> by_source;
  double draft = 0;
  int count = 0;
  for (int round = 0; round < 6; ++round) {
    const auto batch = search->Propose(16);
    ASSERT_TRUE(batch.ok());
    for (const v1::Candidate& candidate : *batch) {
      ++by_source[search->space().Fit(candidate.trace())->source];
      draft += candidate.predicted_us();
      ++count;
    }
  }
  EXPECT_EQ(by_source.size(), search->space().sources().size());
  const auto best = NewSearch(v1::SEARCH_DRAFT)->Propose(1);
  EXPECT_GT(draft / count, 1.5 * (*best)[0].predicted_us()) << "not the draft's favourites";
}

// Near the end of a budget the whole neighbourhood of the best goes out before anything else.
TEST(ModelStrategy, PolishesAroundTheBest) {
  const auto search = NewSearch(v1::SEARCH_MODEL);
  const auto untried = [&](const Point& point) {
    std::set<Point> found;
    for (const Point& near : Neighbours(search->space(), point)) {
      if (!search->experience().Knows(near) && search->space().Draft(near).has_value()) found.insert(near);
    }
    return found;
  };
  const auto first = search->Propose(16);
  ASSERT_TRUE(first.ok());
  size_t best = 0;  // the one with most to try around it is the fastest
  for (size_t i = 1; i < first->size(); ++i) {
    const auto around_of = [&](size_t k) { return untried(*search->space().Fit((*first)[k].trace())).size(); };
    if (around_of(i) > around_of(best)) best = i;
  }
  const std::set<Point> around = untried(*search->space().Fit((*first)[best].trace()));
  ASSERT_GE(around.size(), 3u);
  for (size_t i = 0; i < first->size(); ++i) search->Observe(Seen((*first)[i], i == best ? 1 : 100));
  for (size_t round = 0; round < around.size(); ++round) {
    const auto batch = search->Propose(4, /*polish=*/true);
    ASSERT_TRUE(batch.ok());
    for (const v1::Candidate& candidate : *batch) search->Observe(Seen(candidate, 1e6));  // none is better
    if (std::all_of(around.begin(), around.end(), [&](const Point& p) { return search->experience().Knows(p); }))
      return;
    for (const v1::Candidate& candidate : *batch) {
      EXPECT_EQ(candidate.source(), "polish");
      EXPECT_EQ(around.count(*search->space().Fit(candidate.trace())), 1u);
    }
  }
  FAIL() << "something around the best was never tried";
}

// Without being told: after many trials without a gain.
TEST(ModelStrategy, PolishesWhenStalled) {
  const auto search = NewSearch(v1::SEARCH_MODEL);
  double us = 10;
  int polished = 0;
  for (int round = 0; round < 10; ++round) {
    const auto batch = search->Propose(8);
    ASSERT_TRUE(batch.ok());
    for (const v1::Candidate& candidate : *batch) {
      if (round < 4) { EXPECT_NE(candidate.source(), "polish"); }
      polished += candidate.source() == "polish" ? 1 : 0;
      search->Observe(Seen(candidate, us));
      us = 20;
    }
  }
  EXPECT_GT(polished, 0);
}

// One value of the second knob doubles the time, one source is four times what its draft says.
TEST(DraftCorrection, FindsTheEffectsOfSourcesAndValues) {
  std::vector<DraftCorrection::Sample> samples;
  for (int source = 0; source < 2; ++source) {
    for (int a = 0; a < 4; ++a) {
      for (int b = 0; b < 3; ++b) {
        const double wrong = (source == 1 ? std::log(4.0) : 0) + (source == 0 && b == 2 ? std::log(2.0) : 0);
        samples.push_back({{static_cast<size_t>(source), {a, b}}, wrong});
      }
    }
  }
  const DraftCorrection correction = DraftCorrection::Fit(samples);
  EXPECT_GT(correction.Of({0, {1, 2}}), correction.Of({0, {1, 1}}) + 0.3);
  EXPECT_NEAR(correction.Of({0, {0, 1}}), correction.Of({0, {3, 1}}), 0.05) << "the first knob has no effect";
  EXPECT_GT(correction.Of({1, {1, 1}}), correction.Of({0, {1, 1}}) + 0.9);
  EXPECT_NEAR(correction.Of({1, {1, 2}}), correction.Of({1, {1, 1}}), 0.1) << "the value is the other source's";
  EXPECT_EQ(DraftCorrection().Of({0, {1, 2}}), 0);
}

// A single time that is absurdly long says no more than that the point is slow.
TEST(DraftCorrection, IsNotCarriedAwayByOneTime) {
  std::vector<DraftCorrection::Sample> samples(20, {{0, {0}}, 0.0});
  samples[7].log_ratio = 50;
  EXPECT_LT(DraftCorrection::Fit(samples).Of({0, {0}}), 0.2);
}

// Before anything is known the sources take turns: their drafts are not comparable.
TEST(ModelStrategy, TriesSeveralSourcesFirst) {
  const auto search = NewSearch(v1::SEARCH_MODEL);
  const auto batch = search->Propose(8);
  ASSERT_TRUE(batch.ok());
  std::map<size_t, int> by_source;
  for (const v1::Candidate& candidate : *batch) ++by_source[search->space().Fit(candidate.trace())->source];
  EXPECT_GE(by_source.size(), std::min<size_t>(search->space().sources().size(), 2));
  for (const auto& [source, count] : by_source) EXPECT_LE(count, 6) << source;
}

TEST(Legality, BlamesTheValueThatFails) {
  Legality legality;
  EXPECT_EQ(legality.RiskOf({0, {1, 2}}), 0);
  for (int other = 0; other < 4; ++other) {
    legality.Learn({0, {1, other}}, /*failed=*/true);
    legality.Learn({0, {2, other}}, /*failed=*/false);
    legality.Learn({0, {3, other}}, /*failed=*/false);
  }
  EXPECT_GT(legality.RiskOf({0, {1, 9}}), 0.7);
  EXPECT_LT(legality.RiskOf({0, {2, 2}}), 0.5);
  EXPECT_EQ(legality.RiskOf({1, {1, 1}}), 0) << "another source";
}

}  // namespace
}  // namespace hone
