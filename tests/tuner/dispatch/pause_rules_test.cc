// Jobs that are paused, what is said of why a job stands where it does, and what is counted.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

class Paused : public testing::Test {
 protected:
  void Pause(uint64_t job, bool paused = true) { desk_.Do(PauseJob{.to = ++replies_, .job = job, .paused = paused}); }
  Desk desk_;
  ReplyTo replies_ = 5000;
};

TEST_F(Paused, AJobIsLentNothingUntilItGoesOn) {
  desk_.Hello("w");
  const uint64_t job = desk_.Submit({"conv2d_1", "dense_2"});
  const auto working = desk_.Take("w", 1);
  ASSERT_THAT(working, SizeIs(1));
  desk_.Take("w", 0, working, v1::PHASE_MEASURING);
  Pause(job);
  EXPECT_TRUE(desk_.Job(job).paused());
  EXPECT_EQ(desk_.Job(job).hold_up(), v1::HOLD_UP_PAUSED);
  EXPECT_EQ(desk_.Job(job).state(), v1::JOB_WAITING);
  EXPECT_TRUE(desk_.Report("w", working[0], Desk::Good(10))) << "what was under work is finished";
  EXPECT_EQ(desk_.Job(job).trials(), 1);
  if (!desk_.searches.empty()) desk_.AnswerSearch({"a", "b"});
  EXPECT_THAT(desk_.Take("w", 8), SizeIs(0));
  Pause(job, false);
  EXPECT_EQ(desk_.Job(job).hold_up(), v1::HOLD_UP_NONE);
  const auto others = desk_.Take("w", 8);
  ASSERT_THAT(others, SizeIs(1)) << "the default schedule of the other task";
  EXPECT_EQ(others[0].trace(), "dense_2 default");
}

TEST_F(Paused, TimeDoesNotCount) {
  desk_.Hello("w");
  const uint64_t job = desk_.Submit({"conv2d_1"}, 0, /*max_seconds=*/10);
  Pause(job);
  desk_.Wait(60 * kSecond);
  EXPECT_LT(desk_.Job(job).seconds(), 1);
  Pause(job, false);
  EXPECT_EQ(desk_.Job(job).state(), v1::JOB_WAITING) << "the worker has not been heard of";
  desk_.Hello("w");
  EXPECT_EQ(desk_.Job(job).state(), v1::JOB_RUNNING);
  desk_.Wait(11 * kSecond);
  EXPECT_FALSE(desk_.dispatcher->HasJob(job));
  EXPECT_THAT(desk_.Job(job).reason(), HasSubstr("budget of seconds"));
}

TEST_F(Paused, OutlivesTheDaemon) {
  const uint64_t job = desk_.Submit({"conv2d_1"});
  Pause(job);
  desk_.Restart();
  desk_.Hello("w");
  EXPECT_TRUE(desk_.Job(job).paused());
  EXPECT_THAT(desk_.Take("w", 8), SizeIs(0));
  Pause(job, false);
  EXPECT_THAT(desk_.Take("w", 8), SizeIs(1));
}

// Two jobs have the same task: what the paused one had queued of it does not stand in the way of the other.
TEST_F(Paused, ItsCandidatesAreFreeForOthers) {
  desk_.Hello("w");
  const uint64_t first = desk_.Submit({"conv2d_1"});
  const uint64_t second = desk_.Submit({"conv2d_1"});
  Pause(first);
  desk_.AnswerSearch({"a"});
  Pause(second);  // on and off: it asks for its default again
  Pause(second, false);
  const auto leases = desk_.Take("w", 8);
  ASSERT_FALSE(leases.empty());
  EXPECT_EQ(leases[0].trace(), "conv2d_1 default");
  for (const v1::Lease& lease : leases) desk_.Report("w", lease, Desk::Good(10));
  EXPECT_GE(desk_.Job(second).trials(), 1);
}

TEST_F(Paused, AJobCanBeStopped) {
  desk_.Hello("w");
  const uint64_t job = desk_.Submit({"conv2d_1"});
  Pause(job);
  desk_.Do(StopJob{1000, job});
  EXPECT_EQ(desk_.Job(job).state(), v1::JOB_STOPPED);
}

TEST_F(Paused, AnothersJobIsNotThere) {
  const uint64_t job = desk_.Submit({"conv2d_1"});
  desk_.Do(PauseJob{.to = 900, .job = job, .tenant = TenantOf("other").id});
  EXPECT_EQ(std::get<Refusal>(desk_.replies.at(900)).code, static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_FALSE(desk_.Job(job).paused());
}

TEST(Explain, SaysWhoFitsAndWhoDoesNot) {
  Desk desk;
  desk.Hello("small", 1);
  desk.Hello("right", 2);
  const uint64_t job = desk.Submit({"conv2d_1", "dense_2"}, 0, 0, "cpu:native", 2);
  const auto leases = desk.Take("right", 1);
  desk.Take("right", 0, leases, v1::PHASE_BUILDING);
  const v1::JobExplanation why = desk.dispatcher->Explain(job);
  ASSERT_THAT(why.workers(), SizeIs(2));
  EXPECT_THAT(why.workers(0).misfit(), HasSubstr("measures with 1 threads, the job needs 2"));
  EXPECT_EQ(why.workers(1).misfit(), "");
  EXPECT_EQ(why.workers(1).leases(), 1);
  EXPECT_EQ(why.queued(), 1);
  EXPECT_EQ(why.lent().at("building"), 1);
  EXPECT_EQ(why.searches(), 1);
}

TEST(Explain, SaysWhatTheTimeWasWaitedFor) {
  Desk desk;
  const uint64_t job = desk.Submit({"conv2d_1"});
  desk.Wait(7 * kSecond);
  desk.Hello("w");
  v1::SyncRequest busy = desk.SyncOf("w");
  busy.set_waiting_for("its hours, 22:00 to 06:00");
  busy.set_not_quiet(true);
  desk.Sync(busy);
  EXPECT_EQ(desk.Job(job).hold_up(), v1::HOLD_UP_NOT_QUIET);
  EXPECT_THAT(desk.Job(job).held_up_by(), HasSubstr("its hours, 22:00 to 06:00"));
  EXPECT_EQ(desk.dispatcher->Workers(kLocalTenant, desk.now)[0].waiting_for(), "its hours, 22:00 to 06:00");
  desk.Wait(5 * kSecond);
  desk.Sync(desk.SyncOf("w"));
  desk.Wait(1 * kSecond);
  const auto waited = desk.Job(job).waited_seconds();
  EXPECT_NEAR(waited.at("no_worker"), 7, 0.01);
  EXPECT_NEAR(waited.at("not_quiet"), 5, 0.01);
}

TEST(Counts, SayHowMuchThereIs) {
  Desk desk;
  desk.Hello("w");
  desk.Submit({"conv2d_1", "dense_2", "dense_3"});
  const auto leases = desk.Take("w", 2);
  FleetCounts counts = desk.dispatcher->Counts();
  EXPECT_EQ(counts.jobs_running, 1);
  EXPECT_EQ(counts.queued, 1);
  EXPECT_EQ(counts.all_lent(), 2);
  EXPECT_EQ(counts.workers_busy, 1);
  EXPECT_EQ(desk.dispatcher->Counts(TenantOf("other").id).all_lent(), 0);
  desk.Report("w", leases[0], Desk::Good(3));
  desk.Report("w", leases[1], Desk::Bad(v1::OUTCOME_CRASH));
  desk.Report("w", leases[1], Desk::Bad(v1::OUTCOME_CRASH));
  const DispatchCounters& counters = desk.dispatcher->counters();
  EXPECT_EQ(counters.lent, 2);
  EXPECT_EQ(counters.results[v1::OUTCOME_OK], 1);
  EXPECT_EQ(counters.results[v1::OUTCOME_CRASH], 1);
  EXPECT_GE(counters.superseded, 1);
}

}  // namespace
}  // namespace hone
