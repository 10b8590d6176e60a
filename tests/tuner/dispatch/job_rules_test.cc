// Jobs: taken in, bound to workers, ended. One rule a test.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/dispatch/desk.h"
#include "tuner/dispatch/state/job_state.h"

namespace hone {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(Jobs, TheFirstCandidateOfATaskIsItsDefault) {
  Desk desk;
  desk.Hello("w");
  desk.Submit({"conv2d_1", "dense_2"});
  const std::vector<v1::Lease> leases = desk.Take("w", 8);
  ASSERT_THAT(leases, SizeIs(2));
  EXPECT_EQ(leases[0].trace(), "conv2d_1 default");
  EXPECT_EQ(leases[1].trace(), "dense_2 default");
  EXPECT_EQ(leases[0].threads(), 2);
  EXPECT_EQ(leases[0].workload_hash(), Sha256("text of conv2d_1"));
  EXPECT_FALSE(leases[0].duel());
}

TEST(Jobs, SayWhyTheyWait) {
  Desk desk;
  const uint64_t job = desk.Submit({"conv2d_1"}, 0, 0, "cpu:other", 4);
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_WAITING);
  EXPECT_THAT(desk.Job(job).reason(), HasSubstr("no worker is connected"));
  desk.Hello("w");
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_WAITING);
  EXPECT_THAT(desk.Job(job).reason(),
              HasSubstr("none of the 1 workers fits: the job needs target cpu:other, 4 threads; w has fake/c2"));
  EXPECT_EQ(desk.Job(job).hold_up(), v1::HOLD_UP_NO_FITTING_WORKER);
  EXPECT_EQ(desk.Job(job).held_up_by(), desk.Job(job).reason());
  EXPECT_THAT(desk.Take("w", 4), SizeIs(0));
  const uint64_t fits = desk.Submit({"conv2d_1"}, 0, 0, "cpu:fake", 2);
  EXPECT_EQ(desk.Job(fits).state(), v1::JOB_RUNNING);
  EXPECT_EQ(desk.Job(fits).device_class(), "fake/c2");
}

TEST(Jobs, SayForHowLongTheyAreHeldUpAndByWhat) {
  Desk desk;
  const uint64_t job = desk.Submit({"conv2d_1"});
  desk.Wait(4 * kSecond);
  EXPECT_EQ(desk.Job(job).hold_up(), v1::HOLD_UP_NO_WORKER);
  EXPECT_EQ(desk.Job(job).held_up_seconds(), 4);
  desk.Hello("w");
  const auto leases = desk.Take("w", 8);
  EXPECT_EQ(desk.Job(job).hold_up(), v1::HOLD_UP_NONE);
  EXPECT_EQ(desk.Job(job).held_up_seconds(), 0);
  EXPECT_EQ(desk.Job(job).current_task(), "conv2d_1");

  v1::SyncRequest waits = desk.SyncOf("w");
  *waits.add_held()->mutable_id() = leases[0].id();
  waits.set_waiting_for("the turn of its machine: process 7 measures");
  desk.Sync(waits);
  EXPECT_EQ(desk.Job(job).hold_up(), v1::HOLD_UP_TURN);
  EXPECT_EQ(desk.Job(job).held_up_by(), "worker w waits for the turn of its machine: process 7 measures");

  v1::Outcome fault = Desk::Bad(v1::OUTCOME_INFRA);
  fault.set_detail("cannot start a runner: no memory");
  EXPECT_TRUE(desk.Report("w", leases[0], fault));
  EXPECT_EQ(desk.Job(job).hold_up(), v1::HOLD_UP_WORKER_FAULT);
  EXPECT_THAT(desk.Job(job).held_up_by(), HasSubstr("cannot start a runner: no memory"));
  desk.Wait(2 * kSecond);
  const auto again = desk.Take("w", 8);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_TRUE(desk.Report("w", again[0], Desk::Good(10)));
  EXPECT_EQ(desk.Job(job).hold_up(), v1::HOLD_UP_NONE);
}

TEST(Jobs, TheBudgetRunsFromTheStartOfTheJob) {
  Desk desk;
  const uint64_t job = desk.Submit({"conv2d_1"}, 0, 5);
  desk.Wait(4 * kSecond);
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_WAITING);
  EXPECT_EQ(desk.Job(job).seconds(), 4);
  desk.Wait(2 * kSecond);
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_DONE);
  EXPECT_THAT(desk.Job(job).reason(), HasSubstr("before anything was measured: no worker is connected"));
}

TEST(Jobs, AreWrittenForTheirAccountsOnceASecondAndWhenTheDaemonStops) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"}, 20);
  std::vector<v1::Lease> leases = desk.Take("w", 1);
  ASSERT_THAT(leases, SizeIs(1));
  desk.Wait(kSecond);
  EXPECT_TRUE(desk.Report("w", leases[0], Desk::Good(10)));
  EXPECT_DOUBLE_EQ(desk.store.GetJob(kLocalTenant, job)->measure_seconds, 0.1);
  desk.AnswerSearch({"a", "b", "c"});
  leases = desk.Take("w", 3);
  ASSERT_THAT(leases, SizeIs(3));
  EXPECT_TRUE(desk.Report("w", leases[0], Desk::Good(10)));
  EXPECT_DOUBLE_EQ(desk.store.GetJob(kLocalTenant, job)->measure_seconds, 0.1) << "a moment after the last time";
  EXPECT_EQ(desk.store.GetTasks(kLocalTenant, job)->at(0).trials, 2) << "what a budget counts is never behind";
  desk.Wait(kSecond);
  EXPECT_TRUE(desk.Report("w", leases[1], Desk::Good(10)));
  EXPECT_DOUBLE_EQ(desk.store.GetJob(kLocalTenant, job)->measure_seconds, 0.3);
  EXPECT_TRUE(desk.Report("w", leases[2], Desk::Good(10)));
  desk.Do(ShutDown{});
  EXPECT_DOUBLE_EQ(desk.store.GetJob(kLocalTenant, job)->measure_seconds, 0.4);
}

TEST(Jobs, KnowWhenTheyLastGained) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1", "dense_2"});
  const auto leases = desk.Take("w", 8);
  desk.Wait(3 * kSecond);
  EXPECT_EQ(desk.Job(job).seconds_since_gain(), 3);
  EXPECT_TRUE(desk.Report("w", leases[0], Desk::Good(10)));
  EXPECT_EQ(desk.Job(job).seconds_since_gain(), 0);
  desk.Wait(2 * kSecond);
  EXPECT_EQ(desk.Job(job).seconds_since_gain(), 2);
}

TEST(Jobs, AllThreadsOfTheWorkerWhenNoneAreNamed) {
  Desk desk;
  desk.Hello("w", 12);
  const uint64_t job = desk.Submit({"conv2d_1"}, 0, 0, "cpu:native", 0);
  EXPECT_EQ(desk.Job(job).threads(), 12);
}

// A job for two device classes, with a worker of each.
class JobsOfTwoClasses : public testing::Test {
 protected:
  JobsOfTwoClasses() {
    desk_.Hello("small");
    desk_.device_class = "fake/c4";
    desk_.Hello("large", 4);
    desk_.further_targets = {"cpu:fake/c4"};
  }
  Desk desk_;
};

TEST_F(JobsOfTwoClasses, AreLentToWorkersOfEach) {
  const uint64_t whole = desk_.Submit({"conv2d_1"}, 0, 0, "cpu:fake/c2");
  ASSERT_THAT(desk_.Job(whole).part_jobs(), SizeIs(1));
  const uint64_t part = desk_.Job(whole).part_jobs(0);
  EXPECT_EQ(desk_.Job(part).part_of(), whole);
  EXPECT_EQ(desk_.Job(whole).device_class(), "fake/c2");
  EXPECT_EQ(desk_.Job(part).device_class(), "fake/c4");
  for (const char* worker : {"small", "large"}) {
    const std::vector<v1::Lease> leases = desk_.Take(worker, 8);
    ASSERT_THAT(leases, SizeIs(1)) << worker;
    EXPECT_EQ(leases[0].trace(), "conv2d_1 default");
    EXPECT_TRUE(desk_.Report(worker, leases[0], Desk::Good(worker[0] == 's' ? 20 : 10)));
  }
  EXPECT_EQ(desk_.Job(whole).tasks(0).best_us(), 20);
  EXPECT_EQ(desk_.Job(part).tasks(0).best_us(), 10);
}

TEST_F(JobsOfTwoClasses, HaveABudgetOfTrialsForEachAndEndTogether) {
  const uint64_t whole = desk_.Submit({"conv2d_1"}, 1, 0, "cpu:fake/c2");
  const uint64_t part = desk_.Job(whole).part_jobs(0);
  const auto small = desk_.Take("small", 8), large = desk_.Take("large", 8);
  EXPECT_TRUE(desk_.Report("small", small[0], Desk::Good(20)));
  EXPECT_EQ(desk_.Job(whole).state(), v1::JOB_RUNNING) << "its part goes on";
  EXPECT_EQ(desk_.Job(whole).hold_up(), v1::HOLD_UP_NONE);
  desk_.Restart();
  desk_.Hello("large", 4);
  EXPECT_EQ(desk_.Job(whole).state(), v1::JOB_RUNNING) << "after a restart, too";
  EXPECT_TRUE(desk_.Report("large", large[0], Desk::Good(10)));
  EXPECT_EQ(desk_.Job(part).state(), v1::JOB_DONE);
  EXPECT_EQ(desk_.Job(whole).state(), v1::JOB_DONE);
}

TEST_F(JobsOfTwoClasses, StopAndPauseTogether) {
  const uint64_t whole = desk_.Submit({"conv2d_1"}, 0, 0, "cpu:fake/c2");
  const uint64_t part = desk_.Job(whole).part_jobs(0);
  desk_.Do(PauseJob{desk_.NewCall(), whole});
  EXPECT_TRUE(desk_.Job(part).paused());
  EXPECT_THAT(desk_.Take("large", 8), SizeIs(0));
  desk_.Do(PauseJob{desk_.NewCall(), whole, false});
  EXPECT_FALSE(desk_.Job(part).paused());
  desk_.Do(StopJob{desk_.NewCall(), whole});
  EXPECT_EQ(desk_.Job(part).state(), v1::JOB_STOPPED);
  EXPECT_EQ(desk_.Job(whole).state(), v1::JOB_STOPPED);
}

TEST_F(JobsOfTwoClasses, EveryOneCountsAgainstTheLimitOfJobs) {
  Desk desk(DispatchOptions{.max_jobs = 3, .confirm_first = false});
  desk.further_targets = {"cpu:fake/c4"};
  desk.Submit({"conv2d_1"});
  v1::SubmitRequest request;
  request.set_request_id("one too many");
  request.set_numeric(v1::NUMERIC_DEFAULT);
  v1::TaskSpec& task = *request.add_tasks();
  task.mutable_workload()->set_text("text");
  task.mutable_workload()->set_hash(Sha256("text"));
  v1::SubmitPart& part = *request.add_parts();
  part.set_target("cpu:fake/c4");
  *part.add_tasks() = task;
  const ReplyTo to = desk.NewCall();
  desk.Do(Submit{to, request, ""});
  const Refusal* refusal = std::get_if<Refusal>(&desk.replies.at(to));
  ASSERT_NE(refusal, nullptr);
  EXPECT_THAT(refusal->message, HasSubstr("2 jobs of tenant local wait or run, and it may have 3"));
}

struct BadSubmit {
  const char* name;
  void (*spoil)(v1::SubmitRequest&);
  const char* message;
};
class SubmitRefused : public testing::TestWithParam<BadSubmit> {};
TEST_P(SubmitRefused, WithTheReason) {
  v1::SubmitRequest request;
  request.set_request_id("r");
  request.set_numeric(v1::NUMERIC_STRICT);
  v1::TaskSpec& task = *request.add_tasks();
  task.mutable_workload()->set_text("text");
  task.mutable_workload()->set_hash(Sha256("text"));
  GetParam().spoil(request);
  Desk desk;
  desk.Do(Submit{1, request, ""});
  const Refusal* refusal = std::get_if<Refusal>(&desk.replies.at(1));
  ASSERT_NE(refusal, nullptr);
  EXPECT_EQ(refusal->code, static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(refusal->message, HasSubstr(GetParam().message));
  EXPECT_TRUE(desk.dispatcher->Idle());
}
INSTANTIATE_TEST_SUITE_P(
    Cases, SubmitRefused,
    testing::Values(
        BadSubmit{"NoRequestId", [](v1::SubmitRequest& r) { r.clear_request_id(); }, "request_id has 0 bytes"},
        BadSubmit{"NoLevel", [](v1::SubmitRequest& r) { r.clear_numeric(); }, "numeric level 0"},
        BadSubmit{"NoTasks", [](v1::SubmitRequest& r) { r.clear_tasks(); }, "no tasks"},
        BadSubmit{"LineFeed", [](v1::SubmitRequest& r) { r.set_request_id("r\n1"); }, "request_id has a line feed"},
        BadSubmit{"PartWithoutTasks", [](v1::SubmitRequest& r) { r.add_parts()->set_target("cpu:fake/c4"); },
                  "part for cpu:fake/c4: submit: the job has no tasks"},
        BadSubmit{"ManyParts",
                  [](v1::SubmitRequest& r) {
                    for (int i = 0; i < 65; ++i) r.add_parts();
                  },
                  "65 parts; at most 64"},
        BadSubmit{"NegativeTrials", [](v1::SubmitRequest& r) { r.set_max_trials(-1); }, "max_trials is -1"},
        BadSubmit{"EndlessSeconds", [](v1::SubmitRequest& r) { r.set_max_seconds(1.0 / 0.0); }, "max_seconds is inf"},
        BadSubmit{"ManyThreads", [](v1::SubmitRequest& r) { r.set_threads(5000); }, "threads is 5000"},
        BadSubmit{"OtherHash", [](v1::SubmitRequest& r) { r.mutable_tasks(0)->mutable_workload()->set_hash("x"); },
                  "task 0 (): the hash is not"},
        BadSubmit{"WeightIsNoNumber", [](v1::SubmitRequest& r) { r.mutable_tasks(0)->set_weight(0.0 / 0.0); },
                  "weight, flop, bytes or least_flop is nan"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Jobs, EndAtTheirBudgetOfTrials) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"}, 3);
  const auto first = desk.Take("w", 8);
  desk.AnswerSearch({"a", "b", "c", "d"});
  const auto more = desk.Take("w", 8, first);
  EXPECT_THAT(more, SizeIs(2)) << "three in all";
  EXPECT_TRUE(desk.Report("w", first[0], Desk::Good(10)));
  for (const v1::Lease& lease : more) EXPECT_TRUE(desk.Report("w", lease, Desk::Good(20)));
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_DONE);
  EXPECT_EQ(desk.Job(job).trials(), 3);
  EXPECT_THAT(desk.Job(job).reason(), HasSubstr("budget of trials"));
}

TEST(Jobs, ABudgetOfTrialsIsOfNewOnes) {
  Desk desk;
  desk.Hello("w");
  const uint64_t first = desk.Submit({"conv2d_1"}, 3);
  auto leases = desk.Take("w", 8);
  desk.AnswerSearch({"a", "b"});
  for (const v1::Lease& lease : desk.Take("w", 8, leases)) leases.push_back(lease);
  for (const v1::Lease& lease : leases) EXPECT_TRUE(desk.Report("w", lease, Desk::Good(10)));
  ASSERT_EQ(desk.Job(first).state(), v1::JOB_DONE);
  EXPECT_EQ(desk.Job(first).trials(), 3);

  const uint64_t second = desk.Submit({"conv2d_1"}, 2);
  desk.searches.erase(desk.searches.begin(), desk.searches.end() - 1);
  desk.AnswerSearch({"c", "d", "e"});
  leases = desk.Take("w", 8);
  ASSERT_THAT(leases, SizeIs(2)) << "the three of the first job do not count";
  for (const v1::Lease& lease : leases) EXPECT_TRUE(desk.Report("w", lease, Desk::Good(20)));
  EXPECT_EQ(desk.Job(second).state(), v1::JOB_DONE);
  EXPECT_EQ(desk.Job(second).trials(), 2);
}

// What earlier jobs found out about a task does not keep the next one from its trials.
TEST(Jobs, AStalledTaskIsOpenForTheNextJob) {
  Desk desk({.batch = 4, .stall_trials = 3});
  desk.Hello("w");
  const uint64_t first = desk.Submit({"conv2d_1"});
  auto leases = desk.Take("w", 8);
  desk.AnswerSearch({"a", "b", "c", "d"});
  for (const v1::Lease& lease : desk.Take("w", 8, leases)) leases.push_back(lease);
  for (const v1::Lease& lease : leases) EXPECT_TRUE(desk.Verdict("w", lease, Desk::Good(10)).has_value());
  for (const v1::Lease& confirmation : desk.Take("w", 8)) EXPECT_TRUE(desk.Report("w", confirmation, Desk::Good(10)));
  ASSERT_EQ(desk.Job(first).state(), v1::JOB_DONE) << "stalled";
  const uint64_t second = desk.Submit({"conv2d_1"}, 2);
  EXPECT_EQ(desk.Job(second).state(), v1::JOB_RUNNING);
  EXPECT_EQ(desk.Job(second).tasks(0).state(), "open");
}

TEST(Jobs, EndAtTheirBudgetOfSecondsWithWhatIsUnderWork) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1", "dense_2"}, 0, 5);
  const auto leases = desk.Take("w", 8);
  ASSERT_THAT(leases, SizeIs(2));
  EXPECT_TRUE(desk.Report("w", leases[0], Desk::Good(10)));
  desk.Take("w", 0, {leases[1]}, v1::PHASE_MEASURING);
  desk.Wait(6 * kSecond);
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_RUNNING) << "a trial is under work";
  EXPECT_TRUE(desk.Report("w", leases[1], Desk::Good(10)));
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_DONE);
  EXPECT_EQ(desk.Job(job).trials(), 2);
}

TEST(Jobs, StopTakesBackWhatNobodyWorksOn) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1", "dense_2"});
  const auto leases = desk.Take("w", 8);
  v1::SyncRequest request = desk.SyncOf("w");
  for (int i = 0; i < 2; ++i) {
    v1::LeaseState& state = *request.add_held();
    *state.mutable_id() = leases[i].id();
    state.set_phase(i == 0 ? v1::PHASE_BUILDING : v1::PHASE_QUEUED);
  }
  const ReplyTo held = desk.Sync(request);
  EXPECT_FALSE(desk.Answered(held));
  desk.Do(StopJob{1000, job});
  EXPECT_TRUE(desk.Answered(1000));
  ASSERT_TRUE(desk.Answered(held)) << "the worker is told at once";
  ASSERT_EQ(desk.SyncReplyTo(held).keep_size(), 1);
  EXPECT_EQ(desk.SyncReplyTo(held).keep(0).trial(), leases[0].id().trial());
  EXPECT_TRUE(desk.Report("w", leases[0], Desk::Good(10)));
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_STOPPED);
  EXPECT_EQ(desk.Job(job).trials(), 1);
  EXPECT_EQ(desk.Verdict("w", leases[1], Desk::Good(10)), v1::REPORT_REFUSAL_OVER);
  EXPECT_EQ(desk.Job(job).trials(), 1);
}

TEST(Jobs, FailWhenATaskHasNoValidSchedule) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("w", 8);
  desk.Report("w", leases[0], Desk::Bad(v1::OUTCOME_WRONG_RESULT));
  desk.AnswerSearch({}, /*exhausted=*/true);
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_FAILED);
  EXPECT_THAT(desk.Job(job).reason(), HasSubstr("no valid schedule for task conv2d_1"));
}

TEST(Jobs, ATaskAtItsLimitIsLeftAlone) {
  Desk desk;
  desk.Hello("w", 2, "", /*gflops=*/100);  // a million operations: 10 us at best
  const uint64_t job = desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("w", 8);
  EXPECT_EQ(desk.Job(job).tasks(0).lower_bound_us(), 10);
  desk.Report("w", leases[0], Desk::Good(10.2));
  EXPECT_EQ(desk.Job(job).state(), v1::JOB_DONE);
  EXPECT_EQ(desk.Job(job).tasks(0).state(), "at_limit");
}

TEST(Jobs, ABoundThatIsBeatenByMuchIsNoLimit) {
  Desk desk;
  desk.Hello("w", 2, "", /*gflops=*/100);  // measured while the machine was busy
  const uint64_t job = desk.Submit({"conv2d_1"});
  const auto leases = desk.Take("w", 8);
  desk.Report("w", leases[0], Desk::Good(6));
  EXPECT_EQ(desk.Job(job).tasks(0).state(), "open");
}

TEST(Jobs, DeviceTimeIsSharedBetweenThem) {
  Desk desk({.searches = 2, .confirm_first = false});
  desk.Hello("w");
  const uint64_t big = desk.Submit({"conv2d_1"});
  desk.AnswerSearch({"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9"});
  auto leases = desk.Take("w", 4);
  for (const v1::Lease& lease : leases) desk.Report("w", lease, Desk::Good(10));
  const uint64_t small = desk.Submit({"dense_2"});
  leases = desk.Take("w", 2);
  int of_small = 0;
  for (const v1::Lease& lease : leases) of_small += lease.workload_hash() == Sha256("text of dense_2");
  EXPECT_EQ(of_small, 1) << "a newcomer starts level with the others, not behind their queue";
  EXPECT_NE(big, small);
}

TEST(Jobs, EachStepOfPriorityDoublesTheShareAndStarvesNobody) {
  Desk desk({.searches = 2, .stall_trials = 1000, .confirm_first = false});
  desk.Hello("w");
  desk.Submit({"conv2d_1"});
  desk.priority = 2;
  desk.Submit({"dense_2"});
  std::map<std::string, int> lent;
  for (int round = 0, made = 0; round < 50; ++round) {
    for (int answers = 0; answers < 4 && !desk.searches.empty(); ++answers, made += 4) {
      desk.AnswerSearch({absl::StrCat("a", made), absl::StrCat("a", made + 1), absl::StrCat("a", made + 2),
                         absl::StrCat("a", made + 3)});
    }
    const auto leases = desk.Take("w", 1);
    ASSERT_THAT(leases, testing::SizeIs(1)) << "round " << round;
    ++lent[leases[0].workload_hash()];
    desk.Report("w", leases[0], Desk::Good(10));
  }
  EXPECT_NEAR(lent[Sha256("text of dense_2")], 40, 3);
  EXPECT_NEAR(lent[Sha256("text of conv2d_1")], 10, 3);
}

TEST(Jobs, APriorityOutOfRangeIsRefused) {
  v1::SubmitRequest request;
  request.set_request_id("one");
  request.set_numeric(v1::NUMERIC_DEFAULT);
  request.set_priority(9);
  EXPECT_EQ(CheckSubmit(request).message(), "submit: priority is 9; -8 to 8 are allowed");
}

// A budget that nobody can use up is none, and its multiples do not overflow.
TEST(Budgets, MayBeAsLargeAsANumberIs) {
  Desk desk;
  desk.Hello("w");
  const uint64_t job = desk.Submit({"conv2d_1"}, int64_t{1} << 62);
  int tried = 0;
  for (int batch = 0; batch < 5; ++batch) {
    for (const v1::Lease& lease : desk.Take("w", 32)) {
      if (!lease.duel()) ++tried;
      desk.Report("w", lease, Desk::Good(1000 - tried));
    }
    std::vector<std::string> traces;
    for (int i = 0; i < 16; ++i) traces.push_back(absl::StrCat("batch ", batch, " candidate ", i));
    if (!desk.searches.empty()) desk.AnswerSearch(traces);
  }
  for (const v1::Lease& lease : desk.Take("w", 32)) tried += !lease.duel() && desk.Report("w", lease, Desk::Good(10));
  EXPECT_GT(tried, 64);
  EXPECT_TRUE(desk.dispatcher->HasJob(job)) << desk.Job(job).reason();
}

}  // namespace
}  // namespace hone
