// What one commit with many writes leaves, whatever the writer knows of the rows before it.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/store_conformance.h"

namespace hone {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

// Some traces are there, of which a new term knows nothing, and each comes with several writes.
TEST_P(StoreTest, EveryTrialOfACommitHasItsOwnTrace) {
  constexpr int kTrials = 100;
  const TuningKey key = TestKey("conv2d_1");
  const auto trace = [](int i) { return absl::StrCat("trace ", i); };
  std::vector<Write> earlier, writes;
  std::vector<std::string> traces;
  for (int i = 0; i < kTrials; i += 3) earlier.push_back(PutRecord{TestRecord(key, trace(i), 20)});
  Commit(earlier);
  epoch_ = *store_->BeginEpoch();
  for (int i = 0; i < kTrials; ++i) {
    const uint64_t id = i + 1;
    writes.push_back(PutTrial{TestTrial(id, key, 1, trace(i))});
    writes.push_back(PutTrial{TestTrial(id, key, 1, trace(i), TrialState::kDone, v1::OUTCOME_OK, 10 + i)});
    writes.push_back(PutRecord{TestRecord(key, trace(i), 10 + i)});
    traces.push_back(trace(i));
  }
  Commit(writes);
  const KeyHistory history = *store_->LoadHistory(key);
  ASSERT_THAT(history.trials, SizeIs(kTrials));
  for (int i = 0; i < kTrials; ++i) {
    EXPECT_EQ(history.trials[i].trace, trace(i));
    EXPECT_EQ(history.trials[i].median_us, 10 + i);
  }
  EXPECT_THAT(Traces({}), UnorderedElementsAreArray(traces));
}

// A quota took the trace earlier in the same commit.
TEST_P(StoreTest, ATraceIsMadeAgainInTheCommitThatTakesIt) {
  const TuningKey key = TestKey("conv2d_1");
  Commit({PutTrial{TestTrial(1, key, 1, "fails", TrialState::kDone, v1::OUTCOME_CRASH)},
          PutTrial{TestTrial(2, key, 1, "latest")}});
  const Prune prune = *store_->FirstToPrune(100);
  ASSERT_THAT(prune.trials, SizeIs(1));
  epoch_ = *store_->BeginEpoch();
  Commit({PutTrial{TestTrial(3, key, 1, "another")}, prune,
          PutTrial{TestTrial(4, key, 1, "fails", TrialState::kDone, v1::OUTCOME_OK, 5)}});
  EXPECT_THAT(store_->LoadHistory(key)->trials, Contains(Field(&PastTrial::trace, "fails")));
}

// Whether the term that changes it wrote its row before, or an earlier one did.
TEST_P(StoreTest, ATaskThatIsWrittenAgainIsAsItWasWrittenLast) {
  for (int64_t trials = 1; trials < 5; ++trials) {
    if (trials == 3) epoch_ = *store_->BeginEpoch();
    TaskRow row = TestTask(2, 1, 1, "dense_3");
    row.trials = trials;
    row.failed = {{"timeout", trials}};
    row.default_us = 20.5 + static_cast<double>(trials);
    row.best_us = 10.5 + static_cast<double>(trials);
    row.lower_bound_us = 0.5 + static_cast<double>(trials);
    row.record = 100 + trials;
    row.state = absl::StrCat("state ", trials);
    Commit({PutTask{row}});
    const std::vector<TaskRow> tasks = *store_->GetTasks(kLocalTenant, 1);
    ASSERT_THAT(tasks, SizeIs(2));
    const TaskRow& stored = tasks[1];
    EXPECT_EQ(stored.trials, trials);
    EXPECT_EQ(stored.failed, row.failed);
    EXPECT_EQ(stored.default_us, row.default_us);
    EXPECT_EQ(stored.best_us, row.best_us);
    EXPECT_EQ(stored.lower_bound_us, row.lower_bound_us);
    EXPECT_EQ(stored.record, row.record);
    EXPECT_EQ(stored.state, row.state);
    EXPECT_EQ(stored.name, "dense_3");
    EXPECT_EQ(stored.workload_hash, row.workload_hash);
    EXPECT_EQ(stored.default_trace, "default");
    EXPECT_EQ(stored.least_flop, 5e5);
    EXPECT_EQ(tasks[0].best_us, 12.5) << "another task";
  }
}

// Whether the term that lent it wrote its row, or an earlier one did.
TEST_P(StoreTest, ATrialThatIsLentAgainAndAgainIsOneAndKeepsWhatItIsOf) {
  const TuningKey key = TestKey("conv2d_1");
  TrialRow row = TestTrial(1, key, 1, "a");
  row.duel = true;
  Commit({PutTrial{row}});
  row.task = 2;
  for (uint32_t attempt = 2; attempt < 6; ++attempt) {
    row.attempt = attempt;
    row.epoch = epoch_;
    row.lost_workers = attempt - 1;
    row.secret = absl::StrCat("secret ", attempt);
    if (attempt == 4) epoch_ = *store_->BeginEpoch();
    Commit({PutTrial{row}});
    const StoredState state = *store_->LoadState();
    ASSERT_THAT(state.leased, SizeIs(1));
    const TrialRow& stored = state.leased[0];
    EXPECT_EQ(stored.task, 2u);
    EXPECT_EQ(stored.attempt, attempt);
    EXPECT_EQ(stored.epoch, row.epoch);
    EXPECT_EQ(stored.lost_workers, attempt - 1);
    EXPECT_EQ(stored.secret, row.secret);
    EXPECT_EQ(stored.trace, "a");
    EXPECT_EQ(stored.source, "template");
    EXPECT_TRUE(stored.duel);
    EXPECT_EQ(stored.key, key);
  }
  Commit({PutTrial{TestTrial(2, key, 1, "b", TrialState::kDone, v1::OUTCOME_OK, 7)}});
  row.state = TrialState::kDone;
  row.kind = v1::OUTCOME_OK;
  row.median_us = 8;
  Commit({PutTrial{row}, PutTrial{row}, PutTrial{TestTrial(3, key, 1, "c", TrialState::kDone, v1::OUTCOME_OK, 9)}});
  EXPECT_THAT(store_->LoadState()->leased, SizeIs(0));
  const KeyHistory history = *store_->LoadHistory(key);
  EXPECT_THAT(history.duelled, ElementsAre("a"));
  ASSERT_THAT(history.trials, SizeIs(2));
  EXPECT_EQ(history.trials[0].median_us, 7);
  EXPECT_EQ(history.trials[1].median_us, 9);
}

TEST_P(StoreTest, ARecordThatIsWrittenIsServedWhereItIsTheBestAlone) {
  const TuningKey key = TestKey("conv2d_1");
  const auto claim = [&](const std::string& trace, double us) {
    RecordRow row = TestRecord(key, trace, us);
    row.origin = "imported";
    return row;
  };
  const auto best = [&] { return Best("conv2d_1", 2, v1::NUMERIC_DEFAULT)->row.record; };
  Commit({PutRecord{claim("a", 1)}, PutRecord{claim("b", 2)}, SetBest{key, RecordId(key, "a"), 1}});
  Commit({PutRecord{TestRecord(key, "b", 3)}});
  EXPECT_EQ(best().trace(), "a");
  Commit({PutRecord{TestRecord(key, "a", 4)}});
  EXPECT_EQ(best().median_us(), 4) << "what was measured replaces the claim, also where it is served";
  Commit({PutRecord{claim("c", 2)}, SetBest{key, RecordId(key, "c"), 2}, PutRecord{TestRecord(key, "c", 2.5)}});
  EXPECT_EQ(best().median_us(), 2.5);
  epoch_ = *store_->BeginEpoch();
  Commit({SetBest{key, RecordId(key, "b"), 3}, PutRecord{TestRecord(key, "d", 1)}});
  EXPECT_EQ(best().median_us(), 3) << "the row of the best, which was written when another one was";
}

}  // namespace
}  // namespace hone
