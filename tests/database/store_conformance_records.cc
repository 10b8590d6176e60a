// Records in every store: their pages, objects, generators and drivers, and what they are exported as.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/store_conformance.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
