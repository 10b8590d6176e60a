// What every store keeps of jobs and trials, and what a writer that was overtaken may do.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/store_conformance.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(StoreTest, AnOvertakenWriterChangesNothing) {
  const uint64_t next = *store_->BeginEpoch();
  EXPECT_EQ(next, epoch_ + 1);
  const Write write = PutJob{TestJob(2, "late")};
  EXPECT_EQ(store_->Commit(epoch_, {&write, 1}).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(store_->GetJob(kLocalTenant, 2).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store_->Commit(next, {&write, 1}).ok());
  EXPECT_TRUE(store_->GetJob(kLocalTenant, 2).ok());
}

// However many statements a store sends at once.
TEST_P(StoreTest, ACommitHasAnyNumberOfWrites) {
  for (size_t count = 1; count <= 130; ++count) {
    const std::vector<Write> writes(count, PutJob{TestJob(2, "job 2")});
    ASSERT_TRUE(store_->Commit(epoch_, writes).ok()) << count;
  }
}
TEST_P(StoreTest, JobsTasksAndPlansComeBackAsTheyWere) {
  const auto job = store_->GetJob(kLocalTenant, 1);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->request.request_id(), "request 1");
  EXPECT_EQ(job->request.max_trials(), 100);
  EXPECT_EQ(job->state, v1::JOB_RUNNING);
  EXPECT_EQ(job->seconds, 1.5);
  EXPECT_EQ(job->build_seconds, 0.25);
  EXPECT_EQ(job->busy_seconds, 0.5);
  EXPECT_EQ(job->judged_batches, 4);
  EXPECT_EQ(job->draft_first, 2.5);
  EXPECT_EQ(job->model_first, 3.5);
  const auto tasks = store_->GetTasks(kLocalTenant, 1);
  ASSERT_TRUE(tasks.ok());
  ASSERT_THAT(*tasks, SizeIs(2));
  EXPECT_EQ(tasks->at(0).name, "conv2d_1");
  EXPECT_EQ(tasks->at(1).name, "dense_3");
  EXPECT_EQ(tasks->at(1).failed, (FailureCounts{{"crash", 2}, {"wrong_result", 1}}));
  EXPECT_EQ(tasks->at(1).best_us, 12.5);
  EXPECT_EQ(*store_->GetPlan(kLocalTenant, 1), std::string("plan\0bytes", 10));
  EXPECT_EQ(store_->GetPlan(kLocalTenant, 2).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(*store_->FindJob(kLocalTenant, "request 1"), std::optional<uint64_t>(1));
  EXPECT_EQ(*store_->FindJob(kLocalTenant, "request 2"), std::nullopt);
  EXPECT_EQ(store_->GetWorkload(TestWorkload("dense_3").hash())->name(), "dense_3");
  EXPECT_EQ(store_->GetWorkload("no such hash").status().code(), absl::StatusCode::kNotFound);

  JobRow changed = *job;
  changed.state = v1::JOB_DONE;
  changed.reason = "the budget of trials is used up";
  Commit({PutJob{changed}});
  EXPECT_EQ(store_->GetJob(kLocalTenant, 1)->state, v1::JOB_DONE);
  EXPECT_EQ(store_->GetJob(kLocalTenant, 1)->reason, changed.reason);
  EXPECT_THAT(*store_->ListJobs(kLocalTenant, {}), SizeIs(1));
}

TEST_P(StoreTest, JobsAreListedPageByPage) {
  for (uint64_t id = 2; id <= 9; ++id) {
    JobRow job = TestJob(id, absl::StrCat("request ", id), v1::JOB_DONE);
    if (id % 4 == 0) job.tenant = 7;
    Commit({PutTenant{{7, "vision"}}, PutJob{job}});
  }
  const auto page = [&](uint64_t after, int limit) {
    const std::vector<JobRow> rows = *store_->ListJobs(kLocalTenant, {.after = after, .limit = limit});
    std::vector<uint64_t> ids;
    for (const JobRow& row : rows) ids.push_back(row.id);
    return ids;
  };
  EXPECT_THAT(page(0, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(page(3, 3), ElementsAre(5, 6, 7));
  EXPECT_THAT(page(7, 3), ElementsAre(9));
  EXPECT_THAT(page(9, 3), IsEmpty());
  EXPECT_THAT(page(5, 0), ElementsAre(6, 7, 9)) << "no limit: all of them";
}

TEST_P(StoreTest, ARestartFindsOpenJobsAndLentTrials) {
  const TuningKey key = TestKey("conv2d_1");
  Commit({PutJob{TestJob(2, "request 2", v1::JOB_DONE)}, PutTask{TestTask(3, 2, 0, "conv2d_2")},
          PutTrial{TestTrial(1, key, 1, "a", TrialState::kDone, v1::OUTCOME_OK, 10)},
          PutTrial{TestTrial(2, key, 1, "b")}, PutTrial{TestTrial(7, key, 1, "c", TrialState::kDropped)}});
  const auto state = store_->LoadState();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->last_job, 2u);
  EXPECT_EQ(state->last_task, 3u);
  EXPECT_EQ(state->last_trial, 7u);
  ASSERT_THAT(state->jobs, SizeIs(1));
  EXPECT_EQ(state->jobs[0].id, 1u);
  EXPECT_THAT(state->tasks, SizeIs(2));
  EXPECT_THAT(state->workloads, SizeIs(2));
  EXPECT_THAT(state->device_classes, SizeIs(2));
  ASSERT_THAT(state->leased, SizeIs(1));
  const TrialRow& trial = state->leased[0];
  EXPECT_EQ(trial.id, 2u);
  EXPECT_EQ(trial.key, key);
  EXPECT_EQ(trial.trace, "b");
  EXPECT_EQ(trial.source, "template");
  EXPECT_EQ(trial.attempt, 1u);
}

TEST_P(StoreTest, HistoryIsInTheOrderTrialsEnded) {
  const TuningKey key = TestKey("conv2d_1"), other = TestKey("conv2d_1", 1);
  EXPECT_THAT(store_->LoadHistory(key)->trials, IsEmpty());
  TrialRow duel = TestTrial(6, key, 1, "b", TrialState::kDone, v1::OUTCOME_OK, 8);
  duel.duel = true;
  Commit({PutTrial{TestTrial(1, key, 1, "a")}, PutTrial{TestTrial(2, key, 1, "b")}});
  Commit({PutTrial{TestTrial(2, key, 1, "b", TrialState::kDone, v1::OUTCOME_OK, 8)}, PutRecord{TestRecord(key, "b", 8)},
          PutTrial{duel}});
  Commit({PutTrial{TestTrial(1, key, 1, "a", TrialState::kDone, v1::OUTCOME_CRASH)},
          PutRecord{TestRecord(key, "imported", 9)}, SetBest{key, RecordId(key, "b"), 7.5},
          PutRecord{TestRecord(other, "one thread", 20)}, SetBest{other, RecordId(other, "one thread"), 20}});
  const auto history = store_->LoadHistory(key);
  ASSERT_TRUE(history.ok()) << history.status();
  ASSERT_THAT(history->trials, SizeIs(3));
  EXPECT_EQ(history->trials[0].trace, "b");
  EXPECT_EQ(history->trials[0].median_us, 8);
  EXPECT_EQ(history->trials[1].trace, "a");
  EXPECT_EQ(history->trials[1].kind, v1::OUTCOME_CRASH);
  EXPECT_EQ(history->trials[2].trace, "imported");
  EXPECT_EQ(history->best_trace, "b");
  EXPECT_EQ(history->best_us, 7.5);
  EXPECT_EQ(history->best_record, RecordId(key, "b"));
  EXPECT_THAT(history->duelled, ElementsAre("b"));
  EXPECT_THAT(history->seeds, ElementsAre("one thread"));
}

// By the attempt that ended it: earlier ones were lost, or failed for reasons of their worker's own.
TEST_P(StoreTest, HistorySaysWhoMeasuredATrial) {
  const TuningKey key = TestKey("conv2d_1");
  const auto measured = [](uint64_t trial, uint32_t attempt, const std::string& worker) {
    return AddMeasurement{{.trial = trial, .attempt = attempt, .epoch = 1, .worker = worker, .outcome = {}}};
  };
  TrialRow second = TestTrial(2, key, 1, "b", TrialState::kDone, v1::OUTCOME_OK, 8);
  second.attempt = 2;
  TrialRow duel = TestTrial(4, key, 1, "a", TrialState::kDone, v1::OUTCOME_OK, 9);
  duel.duel = true;
  Commit({PutTrial{TestTrial(1, key, 1, "a", TrialState::kDone, v1::OUTCOME_OK, 9)}, measured(1, 1, "one")});
  Commit({PutTrial{second}, measured(2, 1, "one"), measured(2, 2, "two")});
  Commit({PutTrial{TestTrial(3, key, 1, "c", TrialState::kDone, v1::OUTCOME_CRASH)}});
  Commit({PutTrial{duel}, measured(4, 1, "who fought a duel")});
  Commit({PutRecord{TestRecord(key, "of a trial that was pruned", 9)}});
  const auto history = store_->LoadHistory(key);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_THAT(history->trials, ElementsAre(Field(&PastTrial::worker, "one"), Field(&PastTrial::worker, "two"),
                                           Field(&PastTrial::worker, ""), Field(&PastTrial::worker, "")));
  EXPECT_EQ(history->trials[1].median_us, 8) << "one row a trial, however often it was tried";
}

TEST_P(StoreTest, ADroppedCandidateMayBeTriedAgain) {
  const TuningKey key = TestKey("conv2d_1");
  Commit({PutTrial{TestTrial(1, key, 1, "a")}});
  Commit({PutTrial{TestTrial(1, key, 1, "a", TrialState::kDropped)}});
  Commit({PutTrial{TestTrial(2, key, 1, "a")}});
  EXPECT_THAT(store_->LoadState()->leased, SizeIs(1));
}

TEST_P(StoreTest, ASecondReportOfAnAttemptAndASecondRecordChangeNothing) {
  const TuningKey key = TestKey("conv2d_1");
  MeasurementRow measurement{.trial = 1, .attempt = 1, .epoch = 1, .worker = "w", .outcome = {}};
  measurement.outcome.set_kind(v1::OUTCOME_OK);
  Commit({PutTrial{TestTrial(1, key, 1, "a")}, AddMeasurement{measurement}, PutRecord{TestRecord(key, "a", 10)}});
  Commit({AddMeasurement{measurement}, PutRecord{TestRecord(key, "a", 11)}});
  const auto page = store_->Records(kLocalTenant, {});
  ASSERT_THAT(page->rows, SizeIs(1));
  EXPECT_EQ(page->rows[0].record.median_us(), 10);
}

}  // namespace
}  // namespace hone
