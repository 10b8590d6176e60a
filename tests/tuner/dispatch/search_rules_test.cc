// Asking the search, and what comes back. One rule a test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

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

}  // namespace
}  // namespace hone
