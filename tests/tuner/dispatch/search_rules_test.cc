// Asking the search, and what comes back. One rule a test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"
#include "tuner/dispatch/state/job_state.h"

namespace hone {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(Search, IsToldWhatIsKnownAndWhatIsOut) {
  Desk desk;
  desk.Hello("w");
  desk.Submit({"conv2d_1"});
  ASSERT_THAT(desk.searches, SizeIs(1));
  EXPECT_EQ(desk.searches[0].pending_size(), 1);
  EXPECT_EQ(desk.searches[0].workload().text(), "text of conv2d_1");
  EXPECT_EQ(desk.searches[0].device().target(), "cpu:fake");
  const auto leases = desk.Take("w", 1);
  desk.Report("w", leases[0], Desk::Good(10));
  desk.AnswerSearch({"conv2d_1 default", "a", "a", ""});
  EXPECT_THAT(desk.Take("w", 8), SizeIs(1)) << "what is known, twice the same or empty is no candidate";
  ASSERT_THAT(desk.searches, SizeIs(1));
  ASSERT_EQ(desk.searches[0].observations_size(), 1);
  EXPECT_EQ(desk.searches[0].observations(0).trace(), "conv2d_1 default");
  EXPECT_EQ(desk.searches[0].observations(0).median_us(), 10);
}

TEST(Search, ThatKeepsFailingEndsTheTaskNotTheJob) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("w", 1);
  desk.Report("w", leases[0], Desk::Good(10));
  for (int i = 0; i < 5; ++i) {
    ASSERT_THAT(desk.searches, SizeIs(1)) << i;
    const uint64_t id = desk.searches[0].request_id();
    desk.searches.clear();
    desk.Do(SearchFailed{id, "killed by signal 11"});
    desk.Do(SearchFailed{id, "twice"});
  }
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_DONE);
  EXPECT_THAT(desk.Job(job).reason(), HasSubstr("killed by signal 11"));
}

TEST(Search, WhatAnExhaustedSearchProposedIsStillMeasured) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("w", 1);
  desk.Report("w", leases[0], Desk::Good(10));
  desk.AnswerSearch({"a", "b"}, /*exhausted=*/true);
  const auto last = desk.Take("w", 8);
  ASSERT_THAT(last, SizeIs(2));
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_RUNNING);
  for (const v1::Lease& lease : last) EXPECT_TRUE(desk.Report("w", lease, Desk::Good(12)));
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_DONE);
  EXPECT_EQ(desk.Job(job).trials(), 3);
}

TEST(Search, IsAskedAgainWhenOutcomesAreInAndNotBefore) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"});
  desk.AnswerSearch({"a", "b"});
  const auto leases = desk.Take("w", 8);
  ASSERT_THAT(leases, SizeIs(3));
  for (size_t i = 0; i < leases.size(); ++i) {
    ASSERT_THAT(desk.searches, SizeIs(1)) << i;
    desk.AnswerSearch({"b"});  // it knows of nothing new until it has learnt more
    EXPECT_THAT(desk.searches, SizeIs(0)) << "nothing has changed since";
    EXPECT_TRUE(desk.Report("w", leases[i], Desk::Good(10)));
  }
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_RUNNING) << "answers while outcomes were missing do not count";
  desk.AnswerSearch({"c"});
  EXPECT_THAT(desk.Take("w", 8), SizeIs(1));
}

TEST(Search, AnswersThatNothingCanChangeEndTheTask) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("w", 1);
  desk.Report("w", leases[0], Desk::Good(10));
  for (int i = 0; i < 5; ++i) {
    ASSERT_THAT(desk.searches, SizeIs(1)) << i;
    desk.AnswerSearch({"conv2d_1 default"});
  }
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_DONE);
  EXPECT_EQ(desk.Job(job).tasks(0).state(), "exhausted");
}

const v1::SearchRequest* RequestFor(const Desk& desk, const std::string& name) {
  for (const v1::SearchRequest& request : desk.searches) {
    if (request.workload().name() == name) return &request;
  }
  return nullptr;
}

// Answers the request for that task and reports what it proposed, duels included.
void Try(Desk& desk, const std::string& name, const std::string& trace, double us) {
  for (size_t i = 0; i < desk.searches.size(); ++i) {
    if (desk.searches[i].workload().name() == name) std::swap(desk.searches[0], desk.searches[i]);
  }
  desk.AnswerSearch({trace});
  for (int round = 0; round < 3; ++round) {
    for (const v1::Lease& lease : desk.Take("w", 8)) {
      v1::Outcome outcome = Desk::Good(us);
      if (lease.duel()) outcome.set_duel_ratio(us / lease.champion_us());
      desk.Report("w", lease, outcome);
    }
  }
}

// A request takes longer to make than what else an event does: where several may be made, each has an event of its own.
TEST(Search, AnEventMakesOneRequestAndTheOthersFollow) {
  Desk desk({.searches = 3, .confirm_first = false});
  desk.Hello("w");
  for (const char* name : {"conv2d_1", "dense_2", "pool_3"}) {
    desk.Submit({name});
    std::vector<std::string> traces;
    for (int i = 0; i < 16; ++i) traces.push_back(absl::StrCat(name, " ", i));
    while (!desk.searches.empty()) desk.AnswerSearch(traces);
  }
  ASSERT_THAT(desk.searches, testing::IsEmpty()) << "each has enough";
  EXPECT_THAT(desk.Take("w", 64), testing::SizeIs(3 * 17)) << "and now none has anything";
  for (int i = 0; i < 3; ++i) desk.Wait(1);
  EXPECT_THAT(desk.searches, testing::SizeIs(3));
  EXPECT_EQ(desk.most_asked_at_once, 1);
}

// Two tasks that differ in what follows their heaviest block: what one finds, the other tries, though it had given up.
TEST(Search, ASiblingsNewBestIsASeedAtOnce) {
  DispatchOptions options;
  options.searches = 2;
  options.batch = 2;
  options.stall_trials = 5;
  for (const bool siblings : {true, false}) {
    SCOPED_TRACE(siblings);
    Desk desk(options);
    desk.anchor_of = {{"conv2d_1_add", "x"}, {"pad_conv2d_1_relu", siblings ? "x" : "y"}};
    desk.Hello("w");
    const uint64_t job = desk.Submit({"conv2d_1_add", "pad_conv2d_1_relu"});
    for (const v1::Lease& lease : desk.Take("w", 8)) desk.Report("w", lease, Desk::Good(100));
    for (int i = 0; i < 12 && RequestFor(desk, "pad_conv2d_1_relu") != nullptr; ++i)
      Try(desk, "pad_conv2d_1_relu", absl::StrCat("relu ", i), 100);
    ASSERT_EQ(desk.Job(job).tasks(1).state(), "stalled");
    ASSERT_NE(RequestFor(desk, "conv2d_1_add"), nullptr);

    Try(desk, "conv2d_1_add", "slower by a little", 97);
    EXPECT_EQ(RequestFor(desk, "pad_conv2d_1_relu"), nullptr) << "a tie teaches nothing";
    Try(desk, "conv2d_1_add", "fast", 10);
    ASSERT_EQ(desk.Job(job).tasks(0).best_us(), 10);
    const v1::SearchRequest* request = RequestFor(desk, "pad_conv2d_1_relu");
    ASSERT_EQ(request != nullptr, siblings);
    if (!siblings) continue;
    ASSERT_GE(request->seeds_size(), 1);
    EXPECT_EQ(request->seeds(0), "fast");
    EXPECT_EQ(desk.Job(job).tasks(1).state(), "open");
    Try(desk, "pad_conv2d_1_relu", "fast, fitted", 11);
    EXPECT_EQ(desk.Job(job).tasks(1).best_us(), 11);
  }
}

TEST(Search, IsToldToPolishWhenTheBudgetNearsItsEnd) {
  Desk desk;
  desk.Hello("w");
  desk.Submit({"conv2d_1"}, /*max_trials=*/20);
  for (const v1::Lease& lease : desk.Take("w", 1)) desk.Report("w", lease, Desk::Good(100));
  bool polished = false;
  for (int i = 1; i < 20; ++i) {
    ASSERT_THAT(desk.searches, SizeIs(1)) << i;
    EXPECT_EQ(desk.searches[0].polish(), i >= 15) << "after " << i << " of 20 trials";
    polished = polished || desk.searches[0].polish();
    Try(desk, "conv2d_1", absl::StrCat("candidate ", i), 100);
  }
  EXPECT_TRUE(polished);
}

TEST(Search, IsToldWhoseTaskItIs) {
  Desk desk;
  desk.Hello("w");
  desk.Submit({"conv2d_1"});
  for (const v1::Lease& lease : desk.Take("w", 1)) desk.Report("w", lease, Desk::Good(100));
  ASSERT_THAT(desk.searches, SizeIs(1));
  EXPECT_EQ(desk.searches[0].tenant(), kLocalTenant);
}

TEST(Search, FollowsTheStrategyOfTheJob) {
  Desk desk;
  desk.strategy = v1::SEARCH_DRAFT;
  desk.Hello("w");
  desk.Submit({"conv2d_1"});
  desk.Restart();
  desk.Hello("w", 2, "again");
  ASSERT_THAT(desk.searches, testing::Not(testing::IsEmpty()));
  EXPECT_EQ(desk.searches.back().strategy(), v1::SEARCH_DRAFT);
}

TEST(Search, UnknownStrategiesAndStrayAnchorsAreRefused) {
  v1::SubmitRequest request;
  request.set_request_id("r");
  request.set_numeric(v1::NUMERIC_DEFAULT);
  v1::TaskSpec& task = *request.add_tasks();
  task.mutable_workload()->set_text("text");
  task.mutable_workload()->set_hash(Sha256("text"));
  EXPECT_TRUE(CheckSubmit(request).ok());
  request.add_anchors("x");
  EXPECT_TRUE(CheckSubmit(request).ok());
  request.add_anchors("y");
  EXPECT_THAT(std::string(CheckSubmit(request).message()), HasSubstr("2 anchors for 1 tasks"));
  request.clear_anchors();
  request.set_strategy(static_cast<v1::SearchStrategy>(77));
  EXPECT_THAT(std::string(CheckSubmit(request).message()), HasSubstr("search strategy 77 is not known"));
}

}  // namespace
}  // namespace hone
