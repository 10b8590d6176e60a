// What every store lets go of: old trials, and what a quota takes.
#include <algorithm>
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
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace hone
