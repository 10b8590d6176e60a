// What the core reads of its store for an answer.
#include "tuner/service/core/core.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>

#include "gtest/gtest.h"
#include "tests/database/memory_store.h"
#include "tests/database/rows_for_tests.h"

namespace hone {
namespace {

// Counts the jobs that are read of it, and those whose tasks are.
class CountingStore : public MemoryStore {
 public:
  struct Counts {
    size_t jobs = 0, tasks = 0;
  };
  explicit CountingStore(Counts& counts) : counts_(counts) {}

  absl::Status Commit(uint64_t epoch, std::span<const Write> writes) override {
    const std::lock_guard<std::mutex> guard(mutex_);  // of the core's writer
    return MemoryStore::Commit(epoch, writes);
  }
  absl::StatusOr<std::vector<JobRow>> ListJobs(uint64_t tenant, const JobFilter& filter) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    absl::StatusOr<std::vector<JobRow>> rows = MemoryStore::ListJobs(tenant, filter);
    counts_.jobs += rows->size();
    return rows;
  }
  absl::StatusOr<std::vector<TaskRow>> GetTasks(uint64_t tenant, uint64_t job) override {
    const std::lock_guard<std::mutex> guard(mutex_);
    ++counts_.tasks;
    return MemoryStore::GetTasks(tenant, job);
  }

 private:
  std::mutex mutex_;
  Counts& counts_;
};

TEST(Core, APageOfJobsReadsNoMoreThanThePage) {
  constexpr uint64_t kJobs = 1000, kOpen = 900;  // the last of them have not ended
  CountingStore::Counts counts;
  auto store = std::make_unique<CountingStore>(counts);
  std::vector<Write> writes = TestGround();
  for (uint64_t id = 1; id <= kJobs; ++id) {
    JobRow job = TestJob(id, absl::StrCat("request ", id), v1::JOB_DONE);
    job.request.set_model_name(std::string(20'000, 'm'));
    if (id >= kOpen) {  // no worker has bound it
      job.state = v1::JOB_WAITING;
      job.device_class.clear();
    }
    writes.emplace_back(PutJob{job});
    if (id >= kOpen) writes.emplace_back(PutTask{TestTask(id, id, 0, "conv2d_1")});
  }
  ASSERT_TRUE(store->Commit(*store->BeginEpoch(), writes).ok());
  CoreOptions options;
  options.search.program.path = "/nonexistent";  // nothing is searched
  const auto core = Core::Start(options, std::move(store), [](const absl::Status& status) { ADD_FAILURE() << status; });
  ASSERT_TRUE(core.ok()) << core.status();
  uint64_t after = 0, last = 0;
  int pages = 0;
  do {
    counts = {};
    const absl::StatusOr<v1::ListJobsReply> page = (*core)->ListJobs(kLocalTenant, after);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::JobSnapshot& job : page->jobs()) EXPECT_EQ(job.job_id(), ++last) << "each once, by number";
    // What was read at once with the job that no longer fits is read again for the next page.
    EXPECT_LT(counts.jobs, static_cast<size_t>(page->jobs_size()) + 80) << "after " << after;
    EXPECT_LE(counts.tasks, counts.jobs);
    after = page->next();
    ++pages;
  } while (after != 0);
  EXPECT_EQ(last, kJobs);
  EXPECT_GT(pages, 10);
  (*core)->Stop();
}

// Every commit fails, as on a disk whose sync did: what it has kept of it nobody knows.
class BrokenStore : public MemoryStore {
 public:
  explicit BrokenStore(std::atomic<int>& commits) : commits_(commits) {}

  absl::Status Commit(uint64_t, std::span<const Write>) override {
    ++commits_;
    return absl::InternalError("t.db: disk I/O error");
  }

 private:
  std::atomic<int>& commits_;
};

TEST(Core, AWriteThatFailsIsNotTriedAgainAndPromisesNothing) {
  std::atomic<int> commits = 0;
  CoreOptions options;
  options.search.program.path = "/nonexistent";
  std::promise<absl::Status> fatal;
  const auto core = Core::Start(options, std::make_unique<BrokenStore>(commits),
                                [&](const absl::Status& status) { fatal.set_value(status); });
  ASSERT_TRUE(core.ok()) << core.status();
  hone::Submit submit;
  submit.request.set_request_id("request 1");
  submit.request.set_numeric(v1::NUMERIC_DEFAULT);
  *submit.request.add_tasks()->mutable_workload() = TestWorkload("conv2d_1");
  std::promise<Message> answer;
  submit.to = (*core)->Expect([&](Message message) { answer.set_value(std::move(message)); });
  submit.created = Core::Utc();
  (*core)->Post(std::move(submit));
  std::future<absl::Status> failed = fatal.get_future();
  ASSERT_EQ(failed.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(failed.get(), absl::InternalError("t.db: disk I/O error"));
  (*core)->Stop();
  EXPECT_TRUE(std::holds_alternative<Refusal>(answer.get_future().get()));
  EXPECT_EQ(commits, 1);
}

}  // namespace
}  // namespace hone
