// What the writer makes of many commits: one transaction, and of each row that they put again its last state alone.
#include "tuner/service/core/store_writer.h"

#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/memory_store.h"
#include "tests/database/rows_for_tests.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Keeps what is committed, and holds the first commit until it is let go.
class HeldStore : public MemoryStore {
 public:
  absl::Status Commit(uint64_t epoch, std::span<const Write> writes) override {
    if (commits.empty()) {
      began.set_value();
      let_go.get_future().wait();
    }
    commits.emplace_back(writes.begin(), writes.end());
    return MemoryStore::Commit(epoch, writes);
  }

  std::promise<void> began, let_go;
  std::vector<std::vector<Write>> commits;
};

TaskRow TaskWithTrials(uint64_t id, int64_t trials) {
  TaskRow row = TestTask(id, 1, static_cast<int>(id) - 1, "conv2d_1");
  row.trials = trials;
  return row;
}

JobRow JobWithSeconds(double seconds) {
  JobRow row = TestJob(1, "request 1");
  row.seconds = seconds;
  return row;
}

TEST(StoreWriter, OfARowThatManyCommitsPutTheLastStateIsWrittenWhereTheFirstWas) {
  HeldStore store;
  const uint64_t epoch = *store.BeginEpoch();
  std::vector<uint64_t> durable;
  const auto post = [&](Event event) { durable.push_back(std::get<Committed>(event).commit); };
  const TuningKey key = TestKey("conv2d_1");
  {
    StoreWriter writer(store, epoch, post, [](const absl::Status& status) { ADD_FAILURE() << status; });
    writer.Put({Commit{1, TestGround()}});
    store.began.get_future().wait();
    writer.Put({Commit{2, {PutTask{TaskWithTrials(3, 0)}, PutTrial{TestTrial(1, key, 3, "a")}}}});
    writer.Put({Commit{3, {PutJob{JobWithSeconds(2)}, PutTask{TaskWithTrials(3, 1)}, PutTask{TaskWithTrials(1, 4)}}}});
    writer.Put({Commit{4, {PutTrial{TestTrial(2, key, 3, "b")}, PutTask{TaskWithTrials(3, 2)}}},
                Commit{5, {PutJob{JobWithSeconds(3)}}}});
    store.let_go.set_value();
  }
  EXPECT_THAT(durable, ElementsAre(1, 2, 3, 4, 5));
  ASSERT_THAT(store.commits, SizeIs(2));
  const std::vector<Write>& writes = store.commits[1];
  ASSERT_THAT(writes, SizeIs(5));
  EXPECT_EQ(std::get<PutTask>(writes[0]).row.trials, 2) << "before the trials that are of it";
  EXPECT_EQ(std::get<PutTrial>(writes[1]).row.id, 1u);
  EXPECT_EQ(std::get<PutJob>(writes[2]).row().seconds, 3);
  EXPECT_EQ(std::get<PutTask>(writes[3]).row.trials, 4) << "another task";
  EXPECT_EQ(std::get<PutTrial>(writes[4]).row.id, 2u);
}

}  // namespace
}  // namespace hone
