#include "tests/database/store_conformance.h"

#include "gmock/gmock.h"

namespace hone {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

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

TEST_P(StoreTest, BestAnswersExactlyFirstThenNearlyNeverLooser) {
  const auto put = [&](const TuningKey& key, const std::string& trace, double us) {
    Commit({PutRecord{TestRecord(key, trace, us, "object of " + trace)}, SetBest{key, RecordId(key, trace), us}});
  };
  EXPECT_EQ(Best("conv2d_1", 2, v1::NUMERIC_DEFAULT), std::nullopt);
  put(TestKey("conv2d_1", 2, v1::NUMERIC_DEFAULT), "default 2", 10);
  EXPECT_EQ(Best("conv2d_1", 2, v1::NUMERIC_STRICT), std::nullopt) << "a looser kernel for a stricter user";
  EXPECT_EQ(Best("conv2d_1", 2, v1::NUMERIC_DEFAULT, "fake/c64"), std::nullopt);
  put(TestKey("conv2d_1", 2, v1::NUMERIC_STRICT), "strict 2", 12);
  put(TestKey("conv2d_1", 8, v1::NUMERIC_STRICT), "strict 8", 3);

  auto best = Best("conv2d_1", 2, v1::NUMERIC_DEFAULT);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->row.record.trace(), "default 2");
  EXPECT_EQ(best->row.record.object(), "") << "readers make the code themselves";
  EXPECT_EQ(best->row.record.workload_hash(), TestWorkload("conv2d_1").hash());
  EXPECT_EQ(best->row.record.workload_text(), "") << "whoever asks has it";
  EXPECT_EQ(best->row.record.device_class(), "fake/c2");
  EXPECT_EQ(best->row.record.threads(), 2);
  EXPECT_TRUE(best->exact);

  best = Best("conv2d_1", 8, v1::NUMERIC_DEFAULT);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->row.record.trace(), "strict 8");
  EXPECT_FALSE(best->exact) << "a stricter level is near, not exact";

  best = Best("conv2d_1", 5, v1::NUMERIC_STRICT);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->row.record.trace(), "strict 8") << "of two as near, the one with more threads";
  EXPECT_FALSE(best->exact);
  EXPECT_EQ(Best("dense_3", 2, v1::NUMERIC_DEFAULT), std::nullopt);

  put(TestKey("dense_3", 2, v1::NUMERIC_BF16), "bf16 2", 5);
  for (const v1::NumericLevel stricter : {v1::NUMERIC_STRICT, v1::NUMERIC_DEFAULT})
    EXPECT_EQ(Best("dense_3", 2, stricter), std::nullopt) << v1::NumericLevel_Name(stricter);
  ASSERT_TRUE(Best("dense_3", 2, v1::NUMERIC_BF16).has_value());
  EXPECT_TRUE(Best("dense_3", 2, v1::NUMERIC_BF16)->exact);
  best = Best("conv2d_1", 2, v1::NUMERIC_BF16);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->row.record.trace(), "default 2") << "the loosest of those that are stricter";
}

TEST_P(StoreTest, TheNewestMeasuringProtocolWins) {
  for (const uint32_t protocol : {2u, 1u, 3u}) {
    const TuningKey key = TestKey("conv2d_1", 2, v1::NUMERIC_DEFAULT, "fake/c2", protocol);
    const std::string trace = absl::StrCat("protocol ", protocol);
    Commit({PutRecord{TestRecord(key, trace, 10.0 * protocol)}, SetBest{key, RecordId(key, trace), 10.0 * protocol}});
  }
  EXPECT_EQ(Best("conv2d_1", 2, v1::NUMERIC_DEFAULT)->row.record.trace(), "protocol 3");
}

TEST_P(StoreTest, WhatProvedFasterInAModelCountsInThatModelAndForThatRecord) {
  const TuningKey key = TestKey("conv2d_1");
  const auto put = [&](const std::string& trace, double us) {
    Commit({PutRecord{TestRecord(key, trace, us)}, SetBest{key, RecordId(key, trace), us}});
  };
  const auto faster_default = [&](const std::string& model) {
    v1::BestKey wanted;
    wanted.set_workload_hash(key.workload_hash);
    wanted.set_threads(key.threads);
    wanted.set_numeric(key.numeric);
    wanted.set_model_hash(model);
    return store_->Best(kLocalTenant, {&wanted, 1})->entries.at(0)->faster_default;
  };
  put("a", 10);
  const uint64_t a = RecordId(key, "a");
  EXPECT_EQ(faster_default("this model"), "");
  Commit({PutChoice{kLocalTenant, "this model", a, "digest"}, PutChoice{kLocalTenant, "this model", a + 1, "digest"},
          PutChoice{kLocalTenant + 1, "that model", a, "theirs"}});
  EXPECT_EQ(faster_default("this model"), "digest");
  EXPECT_EQ(faster_default("that model"), "") << "the record is another tenant's";
  EXPECT_EQ(faster_default(""), "");
  put("b", 9);
  EXPECT_EQ(faster_default("this model"), "") << "another record was never held against the default";
  put("a", 10);
  Commit({PutChoice{kLocalTenant, "this model", a, ""}});
  EXPECT_EQ(faster_default("this model"), "") << "the last choice counts";
}

TEST_P(StoreTest, RecordsComePageByPageAndFiltered) {
  const TuningKey conv = TestKey("conv2d_1"), dense = TestKey("dense_3");
  for (int i = 0; i < 5; ++i) Commit({PutRecord{TestRecord(i % 2 == 0 ? conv : dense, absl::StrCat("t", i), 10 - i)}});
  Commit({SetBest{conv, RecordId(conv, "t4"), 6}, SetBest{dense, RecordId(dense, "t3"), 7}});
  EXPECT_THAT(Traces({}), ElementsAre("t0", "t1", "t2", "t3", "t4"));
  EXPECT_THAT(Traces({.best_only = true}), ElementsAre("t3", "t4"));
  EXPECT_THAT(Traces({.workload_regex = "^dense"}), ElementsAre("t1", "t3"));
  EXPECT_EQ(store_->Records(kLocalTenant, {.workload_regex = "["}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Traces({.workload_regex = "conv|dense", .best_only = true}), ElementsAre("t3", "t4"));
  RecordFilter filter{.limit = 2};
  std::vector<std::string> traces;
  do {
    const auto page = store_->Records(kLocalTenant, filter);
    ASSERT_TRUE(page.ok());
    for (const RecordRow& row : page->rows) traces.push_back(row.record.trace());
    filter.after = page->last;
  } while (filter.after != 0);
  EXPECT_THAT(traces, ElementsAre("t0", "t1", "t2", "t3", "t4"));
  const auto other_tenant = store_->Records(99, {});
  EXPECT_THAT(other_tenant->rows, IsEmpty());
}

TEST_P(StoreTest, ObjectsOfLeadingRecordsAreKept) {
  const TuningKey key = TestKey("conv2d_1");
  for (int i = 0; i < 6; ++i) {
    Commit({PutRecord{TestRecord(key, absl::StrCat("t", i), 10 + i, absl::StrCat("object ", i))}});
  }
  Commit({SetBest{key, RecordId(key, "t5"), 9}, PruneObjects{key, 2}});
  std::vector<std::string> with;
  const auto page = store_->Records(kLocalTenant, {.with_objects = true});
  for (const RecordRow& row : page->rows) {
    if (!row.record.object().empty()) with.push_back(row.record.trace());
  }
  EXPECT_THAT(with, ElementsAre("t0", "t1", "t5"));
}

TEST_P(StoreTest, AnObjectIsKeptWithTheRecordThatStatesItsDigest) {
  const TuningKey key = TestKey("conv2d_1");
  RecordRow row = TestRecord(key, "a", 10);
  row.record.set_object_digest(Sha256("object"));
  const auto object = [&] { return store_->Records(kLocalTenant, {.with_objects = true})->rows[0].record.object(); };
  Commit({PutRecord{row}, PutObject{row.record.id(), Sha256("other"), "other", "set"},
          PutObject{row.record.id() + 1, Sha256("object"), "object", "set"}});
  EXPECT_EQ(object(), "");
  Commit({PutObject{row.record.id(), Sha256("object"), "object", "set"}});
  EXPECT_EQ(object(), "object");
}

TEST_P(StoreTest, WhatWasMeasuredHereReplacesWhatWasImported) {
  const TuningKey key = TestKey("conv2d_1");
  RecordRow claim = TestRecord(key, "a", 1, "their object"), ours = TestRecord(key, "a", 10, "our object");
  claim.origin = "imported";
  Commit({PutRecord{claim}, SetBest{key, claim.record.id(), 1}});
  EXPECT_TRUE(store_->LoadHistory(key)->best_claimed);
  EXPECT_TRUE(store_->LoadHistory(key)->trials.at(0).claimed);
  EXPECT_EQ(Best("conv2d_1", 2, v1::NUMERIC_DEFAULT)->row.origin, "imported");
  Commit({PutRecord{ours}});
  Commit({PutRecord{claim}});
  const auto best = Best("conv2d_1", 2, v1::NUMERIC_DEFAULT);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->row.origin, "tuned");
  EXPECT_EQ(best->row.record.median_us(), 10);
  const auto page = store_->Records(kLocalTenant, {.with_objects = true});
  ASSERT_THAT(page->rows, SizeIs(1));
  EXPECT_EQ(page->corrupt, 0);
  EXPECT_EQ(page->rows[0].origin, "tuned");
  EXPECT_EQ(page->rows[0].record.median_us(), 10);
  EXPECT_EQ(page->rows[0].record.object(), "our object");
  EXPECT_FALSE(store_->LoadHistory(key)->best_claimed);
}

// Another generator has looked: the same code holds, other code is a claim until it is measured again.
TEST_P(StoreTest, WhatAnotherGeneratorMakesOtherwiseIsMeasuredAgain) {
  const TuningKey key = TestKey("conv2d_1");
  const RecordRow same = TestRecord(key, "same", 1), other = TestRecord(key, "other", 2);
  Commit({PutTrial{TestTrial(1, key, 1, "same", TrialState::kDone, v1::OUTCOME_OK, 1)}, PutRecord{same},
          PutTrial{TestTrial(2, key, 1, "other", TrialState::kDone, v1::OUTCOME_OK, 2)}, PutRecord{other},
          SetBest{key, other.record.id(), 2}});
  Commit({CheckRecord{kLocalTenant, same.record.id(), "generator 2", same.record.object_digest()},
          CheckRecord{kLocalTenant, other.record.id(), "generator 2", "another digest"},
          CheckRecord{kLocalTenant + 1, same.record.id(), "generator 3", "another digest"},
          CheckRecord{kLocalTenant, 12345, "generator 2", "of no record"}});
  auto page = store_->Records(kLocalTenant, {});
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->rows.size(), 2u) << "nothing is thrown away";
  EXPECT_EQ(page->corrupt, 0);
  EXPECT_EQ(page->rows[0].origin, "tuned");
  EXPECT_EQ(page->rows[0].record.generator(), "generator 2");
  EXPECT_EQ(page->rows[1].origin, "stale");
  EXPECT_EQ(page->rows[1].record.object_digest(), other.record.object_digest()) << "what was measured stays on record";
  auto history = store_->LoadHistory(key);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_TRUE(history->best_claimed);
  ASSERT_EQ(history->trials.size(), 2u);
  EXPECT_FALSE(history->trials[0].claimed);
  EXPECT_EQ(history->trials[1].trace, "other");
  EXPECT_TRUE(history->trials[1].claimed);
  EXPECT_EQ(Best("conv2d_1", 2, v1::NUMERIC_DEFAULT)->row.origin, "stale");

  RecordRow again = TestRecord(key, "other", 3);
  again.record.set_object_digest("another digest");
  Commit({PutTrial{TestTrial(3, key, 1, "other", TrialState::kDone, v1::OUTCOME_OK, 3)}, PutRecord{again}});
  page = store_->Records(kLocalTenant, {});
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->rows.size(), 2u);
  EXPECT_EQ(page->rows[1].origin, "tuned");
  EXPECT_EQ(page->rows[1].record.median_us(), 3);
  EXPECT_EQ(Best("conv2d_1", 2, v1::NUMERIC_DEFAULT)->row.record.object_digest(), "another digest");
  history = store_->LoadHistory(key);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_FALSE(history->best_claimed);
}

// Page by page: the best of a key, measured here, of a key that the workers can measure, made by another generator or
// measured with another driver.
TEST_P(StoreTest, OutdatedRecordsAreFoundPageByPage) {
  const TuningKey mine = TestKey("conv2d_1"), current = TestKey("dense_2"), wide = TestKey("add_3", 8);
  const TuningKey newer = TestKey("conv2d_1", 2, v1::NUMERIC_DEFAULT, "fake/c2", 2);
  const TuningKey elsewhere = TestKey("conv2d_1", 2, v1::NUMERIC_DEFAULT, "fake/c4");
  const TuningKey claimed = TestKey("add_3"), last = TestKey("dense_2", 1);
  TuningKey theirs = mine;
  theirs.tenant = 2;
  std::vector<Write> writes = {PutDeviceClass{{"fake/c4", {}}}, PutTenant{{2, "other"}}};
  for (const char* name : {"dense_2", "add_3"}) writes.push_back(PutWorkload{TestWorkload(name)});
  for (const TuningKey& key : {mine, current, wide, newer, elsewhere, theirs, claimed, last}) {
    RecordRow row = TestRecord(key, "best", 2);
    if (key == current) row.record.set_generator("generator 2");
    if (key == claimed) row.origin = "imported";
    writes.insert(writes.end(), {PutRecord{row}, SetBest{key, row.record.id(), 2}, PutRecord{TestRecord(key, "b", 3)}});
  }
  Commit(writes);
  const auto found = [&](OutdatedFilter filter) {
    std::vector<TuningKey> keys;
    do {
      const absl::StatusOr<OutdatedPage> page = store_->Outdated(filter);
      EXPECT_TRUE(page.ok()) << page.status();
      EXPECT_LE(page->records.size(), 2u);
      for (const OutdatedRecord& record : page->records) {
        EXPECT_EQ(record.workload.hash(), record.key.workload_hash);
        EXPECT_EQ(Sha256(record.workload.text()), record.workload.hash());
        EXPECT_EQ(record.workload.flop(), TestWorkload("conv2d_1").flop());
        keys.push_back(record.key);
      }
      filter.after = page->last;
    } while (filter.after != 0);
    return keys;
  };
  OutdatedFilter filter{.device_class = "fake/c2", .most_threads = 2, .generator = "generator 2", .keys = 2};
  EXPECT_THAT(found(filter), testing::ElementsAre(mine, last));
  filter.tenant = kAllTenants;
  EXPECT_THAT(found(filter), testing::ElementsAre(mine, theirs, last));
  filter.generator = "generator 1";
  EXPECT_THAT(found(filter), testing::ElementsAre(current));
  filter.driver = "driver 1";
  EXPECT_THAT(found(filter), testing::ElementsAre(mine, current, theirs, last));
  const absl::StatusOr<KeyHistory> history = store_->LoadHistory(mine);
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->best_generator, "generator 1");
  EXPECT_EQ(history->best_digest, TestRecord(mine, "best", 2).record.object_digest());
}

// The driver of a record is stated wherever the record is, also by what a claim turns into once it is measured here.
TEST_P(StoreTest, ARecordStatesTheDriverItWasMeasuredWith) {
  const TuningKey key = TestKey("conv2d_1"), other = TestKey("dense_3");
  RecordRow row = TestRecord(key, "a", 2), claim = TestRecord(other, "b", 3);
  row.record.set_driver("550.54");
  claim.record.set_driver("theirs");
  claim.origin = "imported";
  Commit({PutRecord{row}, SetBest{key, row.record.id(), 2}, PutRecord{claim}, SetBest{other, claim.record.id(), 3}});
  const auto drivers = [&] {
    const absl::StatusOr<RecordPage> page = store_->Records(kLocalTenant, {});
    EXPECT_TRUE(page.ok() && page->rows.size() == 2 && page->corrupt == 0) << page.status();
    return std::vector<std::string>{page->rows[0].record.driver(), page->rows[1].record.driver(),
                                    Best("conv2d_1", 2, v1::NUMERIC_DEFAULT)->row.record.driver(),
                                    Best("dense_3", 2, v1::NUMERIC_DEFAULT)->row.record.driver(),
                                    store_->LoadHistory(key)->best_driver};
  };
  EXPECT_THAT(drivers(), testing::ElementsAre("550.54", "theirs", "550.54", "theirs", "550.54"));
  claim.record.set_driver("550.54");
  claim.origin = "tuned";
  Commit({PutRecord{claim}, CheckRecord{kLocalTenant, row.record.id(), "generator 2", row.record.object_digest()}});
  EXPECT_THAT(drivers(), testing::Each("550.54"));
  OutdatedFilter filter{.device_class = "fake/c2", .most_threads = 2, .generator = "generator 2", .driver = "550.54"};
  const auto outdated = [&] { return store_->Outdated(filter)->records.size(); };
  EXPECT_EQ(outdated(), 1u) << "of the generator before";
  filter.driver = "560.35";
  EXPECT_EQ(outdated(), 2u);
}

TEST_P(StoreTest, ATenantSeesItsOwnAndNothingElse) {
  constexpr uint64_t kOther = 2;
  const TuningKey mine = TestKey("conv2d_1");
  TuningKey theirs = mine;
  theirs.tenant = kOther;
  ASSERT_NE(RecordId(mine, "same trace"), RecordId(theirs, "same trace"));
  JobRow job = TestJob(2, "request 1");
  job.tenant = kOther;
  Commit({PutTenant{{kOther, "tenant 2"}}, PutJob{job}, PutTask{TestTask(3, 2, 0, "conv2d_1")},
          PutPlan{2, "hash", "their plan"}, PutRecord{TestRecord(mine, "same trace", 10, "mine")},
          PutRecord{TestRecord(theirs, "same trace", 20, "theirs")}, SetBest{mine, RecordId(mine, "same trace"), 10},
          SetBest{theirs, RecordId(theirs, "same trace"), 20}, PutCostModel{kLocalTenant, "fake/c2", "xgboost", "mine"},
          PutCostModel{kOther, "fake/c2", "xgboost", "theirs"}});
  for (const uint64_t tenant : {kLocalTenant, kOther}) {
    const bool my = tenant == kLocalTenant;
    const auto page = store_->Records(tenant, {.with_objects = true});
    ASSERT_THAT(page->rows, SizeIs(1));
    EXPECT_EQ(page->rows[0].record.median_us(), my ? 10 : 20);
    EXPECT_EQ(page->rows[0].record.object(), my ? "mine" : "theirs");
    v1::BestKey key;
    key.set_workload_hash(mine.workload_hash);
    key.set_threads(2);
    key.set_numeric(v1::NUMERIC_DEFAULT);
    const auto best = store_->Best(tenant, {&key, 1});  // the only device class that the tenant has keys of
    ASSERT_TRUE(best->entries.at(0).has_value());
    EXPECT_EQ(best->entries[0]->row.record.median_us(), my ? 10 : 20);
    EXPECT_EQ(store_->LoadHistory(my ? mine : theirs)->best_us, my ? 10 : 20);
    EXPECT_THAT(store_->LoadHistory(my ? mine : theirs)->seeds, IsEmpty());
    EXPECT_EQ(*store_->CostModel(tenant, "fake/c2", "xgboost"), my ? "mine" : "theirs");
    EXPECT_THAT(*store_->ListJobs(tenant, {}), SizeIs(1));
    EXPECT_EQ(*store_->FindJob(tenant, "request 1"), std::optional<uint64_t>(my ? 1 : 2));
    const uint64_t foreign = my ? 2 : 1;
    EXPECT_EQ(store_->GetJob(tenant, foreign).status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(store_->GetPlan(tenant, foreign).status().code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(*store_->GetTasks(tenant, foreign), IsEmpty());
  }
  // What one tenant exports becomes the other's own.
  std::string lines;
  ASSERT_TRUE(ExportRecords(*store_, kLocalTenant, [&](std::string piece) {
                lines += piece;
                return absl::OkStatus();
              }).ok());
  constexpr uint64_t kThird = 3;
  Commit({PutTenant{{kThird, "tenant 3"}}});
  const auto plan = PlanImport(*store_, kThird, lines);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->records, 1u);
  Commit(plan->writes);
  EXPECT_THAT(store_->Records(kThird, {})->rows, SizeIs(1));
  EXPECT_THAT(store_->Records(kLocalTenant, {})->rows, SizeIs(1));
}

TEST_P(StoreTest, OldTrialsLeaveAndTheirRecordsStay) {
  const TuningKey key = TestKey("conv2d_1"), other = TestKey("dense_3");
  MeasurementRow measurement{.trial = 1, .attempt = 1, .epoch = 1, .worker = "w", .outcome = {}};
  for (uint64_t id = 1; id <= 6; ++id) {
    const std::string trace = absl::StrCat("t", id);
    measurement.trial = id;
    Commit({PutTrial{TestTrial(id, key, 1, trace, TrialState::kDone, id % 2 == 0 ? v1::OUTCOME_OK : v1::OUTCOME_CRASH,
                               10.0 * static_cast<double>(id))},
            AddMeasurement{measurement}});
    if (id % 2 == 0) Commit({PutRecord{TestRecord(key, trace, 10.0 * static_cast<double>(id))}});
  }
  Commit({PutTrial{TestTrial(7, key, 1, "lent")}, PutTrial{TestTrial(8, other, 2, "other", TrialState::kDone)}});
  Commit({PruneTrials{key, 2}});
  const auto traces = [&] {
    std::vector<std::string> list;
    const KeyHistory history = *store_->LoadHistory(key);
    for (const PastTrial& trial : history.trials) list.push_back(trial.trace);
    return list;
  };
  EXPECT_THAT(traces(), ElementsAre("t5", "t6", "t2", "t4")) << "failures beyond the latest are forgotten";
  EXPECT_THAT(store_->LoadState()->leased, SizeIs(1));
  EXPECT_THAT(store_->LoadHistory(other)->trials, SizeIs(1));
  Commit({PutTrial{TestTrial(9, key, 1, "t1", TrialState::kDone, v1::OUTCOME_OK, 1)}});
  EXPECT_THAT(traces(), ElementsAre("t5", "t6", "t1", "t2", "t4")) << "and may be tried again";
  Commit({PruneTrials{key, 0}, PruneTrials{other, 0}});
  EXPECT_EQ(store_->LoadState()->last_trial, 9u) << "its number is not given to another";
}

// Ten trials of one key, of which every third failed, and one that is lent; the fifth is the best, the fourth is in a
// lock file.
std::vector<Write> TrialsUnderAQuota(const TuningKey& key) {
  std::vector<Write> writes;
  for (uint64_t id = 1; id <= 10; ++id) {
    const bool failed = id % 3 == 0;
    const double us = id == 5 ? 1 : 10.0 * static_cast<double>(id % 4 + 1);
    const std::string trace = absl::StrCat("t", id, " ", std::string(3000, 'x'));
    const v1::OutcomeKind kind = failed ? v1::OUTCOME_CRASH : v1::OUTCOME_OK;
    const uint64_t record = RecordId(key, trace);
    writes.push_back(PutTrial{TestTrial(id, key, 1, trace, TrialState::kDone, kind, us)});
    writes.push_back(AddMeasurement{{.trial = id, .attempt = 1, .epoch = 1, .worker = "w", .outcome = {}}});
    if (!failed) writes.push_back(PutRecord{TestRecord(key, trace, us, "object")});
    if (id == 5) writes.push_back(SetBest{key, record, us});
    if (id == 4) writes.push_back(LockRecord{kLocalTenant, record});
    if (id == 7) writes.push_back(LockRecord{kLocalTenant + 1, record});  // of somebody else: no effect
  }
  writes.push_back(LockRecord{kLocalTenant, 17});  // there is none
  writes.push_back(PutTrial{TestTrial(11, key, 1, "lent")});
  return writes;
}

std::vector<std::string> FirstWords(std::vector<std::string> texts) {
  for (std::string& text : texts) text.resize(std::min(text.size(), text.find(' ')));
  return texts;
}

TEST_P(StoreTest, AQuotaTakesFailuresThenTheWorstAndNeverTheBest) {
  const TuningKey key = TestKey("conv2d_1");
  Commit(TrialsUnderAQuota(key));
  const auto left = [this] { return FirstWords(Traces({})); };
  Prune prune = *store_->FirstToPrune(2);
  EXPECT_THAT(prune.trials, ElementsAre(3, 6));
  EXPECT_THAT(prune.records, IsEmpty());
  Commit({prune, *store_->FirstToPrune(10)});
  EXPECT_THAT(store_->FirstToPrune(10)->trials, IsEmpty());
  // 40 us: t7; 30 us: t2, t10; 20 us: t1; of 10 us are t4, which is locked, and t8.
  Commit({*store_->FirstToPrune(1)});
  EXPECT_THAT(left(), ElementsAre("t1", "t2", "t4", "t5", "t8", "t10"));
  Commit({*store_->FirstToPrune(2)});
  EXPECT_THAT(left(), ElementsAre("t1", "t4", "t5", "t8"));
  for (int i = 0; i < 5; ++i) Commit({*store_->FirstToPrune(100)});
  EXPECT_THAT(left(), ElementsAre("t4", "t5"));
  prune = *store_->FirstToPrune(100);
  EXPECT_THAT(prune.trials, IsEmpty());
  EXPECT_THAT(prune.records, IsEmpty());
  EXPECT_EQ(store_->LoadHistory(key)->best_us, 1);
  EXPECT_THAT(store_->LoadState()->leased, SizeIs(1));
  EXPECT_EQ(store_->LoadState()->last_trial, 11u);
  EXPECT_EQ(store_->Records(kLocalTenant, {.with_objects = true})->rows[0].record.object(), "object");
}

TEST_P(StoreTest, ACandidateThatAQuotaTookIsMeasuredAgain) {
  const TuningKey key = TestKey("conv2d_1");
  Commit(TrialsUnderAQuota(key));
  for (int i = 0; i < 5; ++i) Commit({*store_->FirstToPrune(100)});
  const std::string taken = absl::StrCat("t7 ", std::string(3000, 'x'));
  ASSERT_THAT(FirstWords(Traces({})), Not(Contains("t7")));
  Commit({PutTrial{TestTrial(12, key, 1, taken, TrialState::kDone, v1::OUTCOME_OK, 5)},
          PutRecord{TestRecord(key, taken, 5)}});
  EXPECT_THAT(FirstWords(Traces({})), Contains("t7"));
  const KeyHistory history = *store_->LoadHistory(key);
  EXPECT_THAT(history.trials, Contains(Field(&PastTrial::trace, taken)));
}

// As between the question and the answer: a record becomes the best, one gets into a lock file.
TEST_P(StoreTest, AQuotaTakesNothingThatMustStayByNow) {
  const TuningKey key = TestKey("conv2d_1");
  Commit(TrialsUnderAQuota(key));
  Commit({*store_->FirstToPrune(10)});
  const Prune prune = *store_->FirstToPrune(10);
  const std::string seventh = absl::StrCat("t7 ", std::string(3000, 'x'));
  Commit({SetBest{key, RecordId(key, seventh), 0.5}, prune});
  EXPECT_THAT(FirstWords(Traces({})), ElementsAre("t4", "t5", "t7")) << "the fifth was the best when it was asked";
  Commit({PutTrial{TestTrial(12, key, 1, "t1 again", TrialState::kDone, v1::OUTCOME_OK, 5)}});
  EXPECT_TRUE(store_->LoadHistory(key).ok());
}

TEST_P(StoreTest, BytesInUseFallWithWhatAQuotaTakes) {
  const int64_t empty = *store_->BytesInUse(0);
  Commit(TrialsUnderAQuota(TestKey("conv2d_1")));
  const int64_t grown = *store_->BytesInUse(0) - empty;
  EXPECT_GE(grown, 5000);  // a backend may keep them compressed
  for (int i = 0; i < 5; ++i) Commit({*store_->FirstToPrune(100)});
  EXPECT_LE(*store_->BytesInUse(0), empty + grown / 2);
  EXPECT_GE(*store_->BytesInUse(int64_t{1} << 40), 0);
}

TEST_P(StoreTest, CostModelsAreReplaced) {
  EXPECT_EQ(store_->CostModel(kLocalTenant, "fake/c2", "xgboost").status().code(), absl::StatusCode::kNotFound);
  Commit({PutCostModel{kLocalTenant, "fake/c2", "xgboost", "first"}});
  Commit({PutCostModel{kLocalTenant, "fake/c2", "xgboost", std::string("sec\0ond", 7)}});
  EXPECT_EQ(*store_->CostModel(kLocalTenant, "fake/c2", "xgboost"), std::string("sec\0ond", 7));
  EXPECT_EQ(store_->CostModel(kLocalTenant, "fake/c64", "xgboost").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(StoreTest, ExportThenImportGivesTheSameBest) {
  const TuningKey conv = TestKey("conv2d_1"), strict = TestKey("conv2d_1", 1, v1::NUMERIC_STRICT);
  Commit({PutRecord{TestRecord(conv, "a", 10.25, "object a")}, PutRecord{TestRecord(conv, "b", 1.0 / 3)},
          PutRecord{TestRecord(strict, "c", 1e-3)}, SetBest{conv, RecordId(conv, "a"), 10.25},
          SetBest{strict, RecordId(strict, "c"), 1e-3}});
  std::string lines;
  const auto collect = [](std::string& to) {
    return [&to](std::string piece) {
      to += piece;
      return absl::OkStatus();
    };
  };
  ASSERT_TRUE(ExportRecords(*store_, kLocalTenant, collect(lines)).ok());

  const std::unique_ptr<TuningStore> other = OpenAnother();
  const uint64_t epoch = *other->BeginEpoch();
  const auto plan = PlanImport(*other, kLocalTenant, lines);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->records, 3u);
  EXPECT_THAT(plan->refused, IsEmpty());
  ASSERT_TRUE(other->Commit(epoch, plan->writes).ok());
  std::string again;
  ASSERT_TRUE(ExportRecords(*other, kLocalTenant, collect(again)).ok());
  EXPECT_EQ(again, lines);
  // A second time everything is there.
  const auto second = PlanImport(*other, kLocalTenant, lines);
  EXPECT_EQ(second->records, 0u);
  EXPECT_EQ(second->duplicates, 3u);
  EXPECT_THAT(second->writes, IsEmpty());
}

}  // namespace
}  // namespace hone
