// Records of an earlier build, and workers of a later one. One rule a test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"

namespace hone {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

v1::Outcome Made(v1::Outcome outcome, const std::string& generator, const std::string& code) {
  outcome.set_generator(generator);
  outcome.set_object_digest(code);
  return outcome;
}

class RecordChecks : public testing::Test {
 protected:
  // Two kernels of 10 us, tuned by the first build; then the daemon is started anew.
  void SetUp() override {
    desk_.Hello("old");
    desk_.Submit({"conv2d_1", "dense_2"}, 2);
    for (const v1::Lease& lease : desk_.Take("old", 8)) {
      desk_.Report("old", lease, Made(Desk::Good(10), "build 1", "code of " + lease.trace()));
    }
    ASSERT_TRUE(desk_.dispatcher->Idle());
    desk_.Restart();
    desk_.generator = "build 2";
  }
  RecordRow RecordOf(const std::string& trace) {
    for (const auto& [id, row] : desk_.store.records()) {
      if (row.record.trace() == trace) return row;
    }
    ADD_FAILURE() << "no record of " << trace;
    return {};
  }
  double BestOf(const std::string& trace) {
    for (const auto& [key, best] : desk_.store.best()) {
      if (best.first == RecordOf(trace).record.id()) return best.second;
    }
    return 0;
  }
  // The checks that a worker is lent, by what they check.
  std::map<std::string, v1::Lease> Checks(const std::string& worker) {
    std::map<std::string, v1::Lease> checks;
    for (const v1::Lease& lease : desk_.Take(worker, 8)) checks[lease.trace()] = lease;
    return checks;
  }
  void SameCode(const v1::Lease& check) {
    EXPECT_TRUE(desk_.Report("new", check, Made(Desk::Bad(v1::OUTCOME_CANCELLED), "build 2", check.measured_digest())));
  }
  Desk desk_;
};

TEST_F(RecordChecks, TheSameCodeIsThePresentBuilds) {
  desk_.Hello("new");
  const auto checks = Checks("new");
  ASSERT_THAT(checks, SizeIs(2));
  for (const auto& [trace, check] : checks) {
    EXPECT_TRUE(check.duel());
    EXPECT_EQ(check.measured_digest(), "code of " + trace);
    EXPECT_EQ(check.champion_trace(), "");
    SameCode(check);
    EXPECT_EQ(RecordOf(trace).record.generator(), "build 2");
    EXPECT_EQ(BestOf(trace), 10);
  }
  EXPECT_FALSE(desk_.dispatcher->HasJob(2)) << "there is nothing more to do";
  EXPECT_THAT(desk_.searches, IsEmpty());
  EXPECT_THAT(desk_.Take("new", 8), IsEmpty());
  desk_.Restart();
  desk_.Hello("new");
  EXPECT_THAT(desk_.Take("new", 8), IsEmpty()) << "once";
}

TEST_F(RecordChecks, OtherCodeHasATimeOfItsOwn) {
  desk_.Hello("new");
  auto checks = Checks("new");
  ASSERT_THAT(checks, SizeIs(2));
  desk_.Report("new", checks["conv2d_1 default"], Made(Desk::Good(10.5), "build 2", "other code"));
  const RecordRow row = RecordOf("conv2d_1 default");
  EXPECT_EQ(row.origin, "tuned");
  EXPECT_EQ(row.record.generator(), "build 2");
  EXPECT_EQ(row.record.object_digest(), "other code");
  EXPECT_EQ(row.record.median_us(), 10.5);
  EXPECT_EQ(BestOf("conv2d_1 default"), 10.5);
  SameCode(checks["dense_2 default"]);
  EXPECT_FALSE(desk_.dispatcher->HasJob(2)) << "5 per cent are noise";
  EXPECT_THAT(desk_.searches, IsEmpty());
}

TEST_F(RecordChecks, SlowerCodeIsTunedAnewUntilItIsNot) {
  desk_.Hello("new");
  auto checks = Checks("new");
  ASSERT_THAT(checks, SizeIs(2));
  SameCode(checks["dense_2 default"]);
  EXPECT_THAT(desk_.searches, IsEmpty());
  desk_.Report("new", checks["conv2d_1 default"], Made(Desk::Good(20), "build 2", "other code"));
  EXPECT_EQ(BestOf("conv2d_1 default"), 20) << "what is served is what was measured";
  desk_.Take("new", 1);
  ASSERT_THAT(desk_.searches, SizeIs(1));
  EXPECT_EQ(desk_.searches[0].workload().name(), "conv2d_1");
  desk_.AnswerSearch({"fast"});
  auto leases = desk_.Take("new", 1);
  ASSERT_THAT(leases, SizeIs(1));
  desk_.Report("new", leases[0], Made(Desk::Good(9), "build 2", "fast code"));
  leases = desk_.Take("new", 1);
  ASSERT_THAT(leases, SizeIs(1));
  EXPECT_EQ(leases[0].champion_trace(), "conv2d_1 default");
  v1::Outcome won = Made(Desk::Good(9), "build 2", "fast code");
  won.set_duel_ratio(0.45);
  desk_.Report("new", leases[0], won);
  EXPECT_EQ(BestOf("fast"), 9);
  EXPECT_FALSE(desk_.dispatcher->HasJob(2)) << "it is as fast as it was";
}

TEST_F(RecordChecks, AScheduleThatFailsIsStaleUntilAnotherIsFound) {
  desk_.Hello("new");
  auto checks = Checks("new");
  ASSERT_THAT(checks, SizeIs(2));
  SameCode(checks["dense_2 default"]);
  desk_.Report("new", checks["conv2d_1 default"], Made(Desk::Bad(v1::OUTCOME_WRONG_RESULT), "build 2", "bad code"));
  EXPECT_EQ(RecordOf("conv2d_1 default").origin, "stale");
  EXPECT_EQ(RecordOf("conv2d_1 default").record.median_us(), 10) << "nothing is thrown away";
  desk_.Take("new", 1);
  ASSERT_THAT(desk_.searches, SizeIs(1));
  desk_.AnswerSearch({"right"});
  for (int i = 0; i < 2; ++i) {  // and is confirmed
    const auto leases = desk_.Take("new", 1);
    if (leases.empty()) break;
    desk_.Report("new", leases[0], Made(Desk::Good(10), "build 2", "right code"));
  }
  EXPECT_EQ(BestOf("right"), 10);
}

TEST_F(RecordChecks, EveryOtherJobComesFirst) {
  desk_.Hello("new");
  EXPECT_TRUE(desk_.dispatcher->HasJob(2));
  EXPECT_TRUE(desk_.dispatcher->Idle()) << "a private daemon does not stay for it";
  const uint64_t job = desk_.Submit({"conv2d_1"}, 1);
  EXPECT_EQ(desk_.Job(2).hold_up(), v1::HOLD_UP_PAUSED);
  EXPECT_THAT(desk_.Job(2).held_up_by(), HasSubstr("no other job"));
  EXPECT_THAT(desk_.Take("new", 8), IsEmpty()) << "its default is known";
  ASSERT_THAT(desk_.searches, SizeIs(1));
  desk_.AnswerSearch({"a"});
  auto leases = desk_.Take("new", 8);
  ASSERT_THAT(leases, SizeIs(1));
  EXPECT_EQ(leases[0].trace(), "a");
  desk_.Report("new", leases[0], Made(Desk::Good(30), "build 2", "slow code"));
  EXPECT_FALSE(desk_.dispatcher->HasJob(job));
  const auto checks = Checks("new");
  EXPECT_THAT(checks, SizeIs(2));
  for (const auto& [trace, check] : checks) SameCode(check);
  EXPECT_FALSE(desk_.dispatcher->HasJob(2));
}

TEST_F(RecordChecks, OutlastTheDaemon) {
  desk_.Hello("new");
  desk_.Report("new", Checks("new")["conv2d_1 default"], Made(Desk::Good(20), "build 2", "other code"));
  desk_.Restart();
  desk_.searches.clear();    // of the daemon before
  desk_.Wait(60 * kSecond);  // what was lent is free
  desk_.Hello("new");
  auto checks = Checks("new");
  ASSERT_THAT(checks, SizeIs(1)) << "the other one was checked";
  SameCode(checks["dense_2 default"]);
  desk_.Take("new", 1);
  ASSERT_THAT(desk_.searches, SizeIs(1));
  EXPECT_EQ(desk_.searches[0].workload().name(), "conv2d_1") << "and is slower still";
}

// The same code by the same build: it is the driver that compiles it, and so each is measured.
TEST_F(RecordChecks, AnotherDriverIsMeasuredThoughTheCodeIsTheSame) {
  desk_.generator = "build 1";
  desk_.driver = "560.35";
  desk_.Hello("new");
  auto checks = Checks("new");
  ASSERT_THAT(checks, SizeIs(2));
  for (const auto& [trace, check] : checks) {
    EXPECT_EQ(RecordOf(trace).record.driver(), "");
    EXPECT_EQ(check.measured_digest(), "") << "it is not left out";
    EXPECT_TRUE(desk_.Report("new", check, Made(Desk::Good(10.5), "build 1", "code of " + trace)));
    EXPECT_EQ(RecordOf(trace).record.driver(), "560.35");
    EXPECT_EQ(RecordOf(trace).record.median_us(), 10.5);
    EXPECT_EQ(BestOf(trace), 10.5);
  }
  EXPECT_FALSE(desk_.dispatcher->HasJob(2));
  desk_.Restart();
  desk_.Hello("new");
  EXPECT_THAT(desk_.Take("new", 8), IsEmpty()) << "once";
}

TEST_F(RecordChecks, WaitUntilTheWorkersAreOfOneBuild) {
  const uint64_t job = desk_.Submit({"conv2d_1"}, 1);
  desk_.Hello("new");
  desk_.generator = "build 3";
  desk_.Hello("last");
  desk_.Do(StopJob{.to = 9000, .job = job});
  ASSERT_FALSE(desk_.dispatcher->HasJob(job));
  EXPECT_EQ(desk_.pages_read, 0);
  desk_.generator = "build 2";
  desk_.Hello("last");
  EXPECT_EQ(desk_.pages_read, 1);
  EXPECT_TRUE(desk_.dispatcher->HasJob(job + 1));
}

TEST_F(RecordChecks, AJobThatWasStoppedIsTheLast) {
  desk_.Hello("new");
  desk_.Do(StopJob{.to = 9000, .job = 2});
  EXPECT_FALSE(desk_.dispatcher->HasJob(2));
  EXPECT_EQ(desk_.Job(2).state(), v1::JOB_STOPPED);
  EXPECT_THAT(desk_.Take("new", 8), IsEmpty());
  desk_.Restart();
  desk_.Hello("new");
  EXPECT_THAT(desk_.Take("new", 8), SizeIs(2)) << "of this daemon's life";
}

TEST_F(RecordChecks, ThoseThatNobodyCouldMeasureAreLeftForALaterDaemon) {
  desk_.Hello("new");
  // All attempts of both, one at a time.
  for (int attempt = 0; attempt < 2 * DispatchOptions().max_attempts; ++attempt) {
    for (const v1::Lease& check : desk_.Take("new", 8)) desk_.Report("new", check, Desk::Bad(v1::OUTCOME_INFRA));
    desk_.Wait(20 * kSecond);
  }
  EXPECT_FALSE(desk_.dispatcher->HasJob(2));
  EXPECT_FALSE(desk_.dispatcher->HasJob(3));
  EXPECT_EQ(RecordOf("conv2d_1 default").origin, "tuned");
  EXPECT_EQ(RecordOf("conv2d_1 default").record.generator(), "build 1");
}

}  // namespace
}  // namespace hone
