// What a tenant sees of every store.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/store_conformance.h"

namespace hone {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace hone
