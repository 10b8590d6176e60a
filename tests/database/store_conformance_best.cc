// What every store says is best, and by which record.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/store_conformance.h"

namespace hone {
namespace {

using ::testing::SizeIs;

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

}  // namespace
}  // namespace hone
