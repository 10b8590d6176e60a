// The daemon as a program, where something fails: it is killed, workers vanish, searches crash, memory ends, files are
// damaged or removed.
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/sanitized.h"
#include "compiler/support/sha256.h"
#include "database/sqlite/sqlite_connection.h"
#include "database/sqlite/sqlite_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/rows_for_tests.h"
#include "tests/tuner/service/fake_worker.h"
#include "tests/tuner/service/honed_fixture.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

TEST_F(HonedTest, SurvivesBeingKilledInTheMiddle) {
  const auto slow = [](const v1::Lease& lease) {
    absl::SleepFor(absl::Milliseconds(10));
    return GoodOutcome(lease);
  };
  auto honed = std::make_unique<HonedProcess>(Arguments());
  ASSERT_TRUE(honed->ready()) << honed->Errors();
  const FakeWorker worker("w", honed->address(), {}, slow);
  auto client = Connect(*honed);
  const uint64_t job = Submit(*client, Request("one", {"conv2d_1", "dense_2"}, 60));
  while (worker.done() < 20) absl::SleepFor(absl::Milliseconds(5));
  const int64_t acknowledged = worker.done();
  honed->Signal(SIGKILL);
  EXPECT_EQ(honed->Wait(), 128 + SIGKILL);
  honed = std::make_unique<HonedProcess>(Arguments());
  ASSERT_TRUE(honed->ready()) << honed->Errors();
  client = Connect(*honed);
  const v1::JobSnapshot end = WaitForEnd(*client, job);
  EXPECT_EQ(end.state(), v1::JOB_DONE) << end.reason();
  EXPECT_EQ(end.trials(), 60);
  EXPECT_GE(end.trials(), acknowledged);
}

TEST_F(HonedTest, AWorkerThatVanishesCostsItsLeasesOnly) {
  HonedProcess honed(Arguments());
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  const auto slow = [](const v1::Lease& lease) {
    absl::SleepFor(absl::Milliseconds(20));
    return GoodOutcome(lease);
  };
  auto first = std::make_unique<FakeWorker>("first", honed.address(), Credentials(), slow);
  const uint64_t job = Submit(*client, Request("one", {"conv2d_1", "dense_2"}, 50));
  while (first->done() < 10) absl::SleepFor(absl::Milliseconds(5));
  const FakeWorker second("second", honed.address(), {}, slow);
  first = nullptr;
  const v1::JobSnapshot end = WaitForEnd(*client, job);
  EXPECT_EQ(end.state(), v1::JOB_DONE) << end.reason();
  EXPECT_EQ(end.trials(), 50);
}

TEST_F(HonedTest, SearchProcessesMayCrash) {
  HonedProcess honed(Arguments({"--searches", "1", "--search-argument", folder_ / "crashes"}));
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  const FakeWorker worker("w", honed.address());
  const v1::JobSnapshot end = WaitForEnd(*client, Submit(*client, Request("one", {"crash_1"}, 20)));
  EXPECT_EQ(end.state(), v1::JOB_DONE) << end.reason();
  EXPECT_EQ(end.trials(), 20);
  honed.Signal(SIGINT);
  EXPECT_EQ(honed.Wait(), 0);
  EXPECT_THAT(honed.Errors(), HasSubstr("killed by signal"));
}

// Where the system gives it no more memory it refuses, or ends and is started again: what it acknowledged is there.
TEST_F(HonedTest, RunsOutOfMemoryAndLosesNothing) {
  if (kSanitized) GTEST_SKIP() << "a program with a sanitizer takes the address space that it likes";
  std::map<std::string, uint64_t> acknowledged;
  // Each job brings its own workloads, of a megabyte each, which the daemon keeps while it is open.
  const auto submit = [&](DaemonClient& client, int number, int tasks) {
    v1::SubmitRequest request = Request(absl::StrCat("request ", number), {}, 1);
    for (int i = 0; i < tasks; ++i) {
      v1::Workload& workload = *request.add_tasks()->mutable_workload();
      workload.set_name("conv2d_1");
      workload.set_text(absl::StrCat(number, " ", i, std::string(1 << 20, 'w')));
      workload.set_hash(Sha256(workload.text()));
    }
    const absl::StatusOr<v1::SubmitReply> reply = client.Submit(request, absl::Seconds(20));
    if (reply.ok()) acknowledged[request.request_id()] = reply->job_id();
    return reply.ok();
  };
  {
    HonedProcess honed(Arguments());
    ASSERT_TRUE(honed.ready()) << honed.Errors();
    const auto client = Connect(honed);
    for (int number = 0; number < 3; ++number) ASSERT_TRUE(submit(*client, number, 1));
    uint64_t pages = 0;
    std::ifstream(absl::StrCat("/proc/", honed.pid(), "/statm")) >> pages;
    const rlim_t bytes = pages * 4096 + (8 << 20);
    const rlimit all{bytes, bytes};
    ASSERT_EQ(prlimit(honed.pid(), RLIMIT_AS, &all, nullptr), 0);
    int number = 3;
    while (number < 40 && submit(*client, number, 8)) ++number;
    EXPECT_LT(number, 40) << "it got more memory than there was";
    honed.Signal(SIGKILL);  // where it lives
    honed.Wait();
  }
  HonedProcess honed(Arguments());
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  for (const auto& [id, job] : acknowledged) EXPECT_EQ(client->GetJob(job).status(), absl::OkStatus()) << id;
}

// Whoever deletes a database and starts anew gets a daemon for the new file, at the same address.
TEST_F(HonedTest, EndsWhenItsDatabaseIsRemovedAndLeavesItsAddressToTheNext) {
  HonedProcess old(Arguments());
  ASSERT_TRUE(old.ready()) << old.Errors();
  for (const char* file : {"t.db", "t.db-wal", "t.db-shm", "t.db.lock", "s"}) std::filesystem::remove(folder_ / file);
  HonedProcess next(Arguments());
  ASSERT_TRUE(next.ready()) << next.Errors();
  EXPECT_EQ(old.Wait(), 9);
  EXPECT_THAT(old.Errors(), ::testing::HasSubstr("t.db: the database was removed or replaced"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "s"));
  v1::ListJobsReply jobs;
  const auto client = Connect(next);
  EXPECT_TRUE(client->tune().ListJobs(client->Context().get(), {}, &jobs).ok());
}

TEST_F(HonedTest, SaysHowManyRowsAreDamaged) {
  const TuningKey key = TestKey("conv2d_1");
  {
    const std::unique_ptr<TuningStore> store = *OpenSqliteStore(folder_ / "t.db", StoreMode::kWrite);
    const uint64_t epoch = *store->BeginEpoch();
    std::vector<Write> writes = TestGround();
    writes.push_back(PutRecord{TestRecord(key, "whole", 10)});
    writes.push_back(PutRecord{TestRecord(key, "damaged", 9)});
    writes.push_back(SetBest{key, RecordId(key, "damaged"), 9});
    ASSERT_TRUE(store->Commit(epoch, writes).ok());
  }
  {
    auto connection = SqliteConnection::Open(folder_ / "t.db", SqliteConnection::Mode::kWrite);
    for (const char* table : {"record", "served"})
      ASSERT_TRUE(
          (*connection)->Execute(absl::StrCat("UPDATE ", table, " SET median_us = 1 WHERE median_us = 9")).ok());
  }
  HonedProcess honed(Arguments());
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  v1::BestRecordsRequest request;
  v1::BestKey& wanted = *request.add_keys();
  wanted.set_workload_hash(key.workload_hash);
  wanted.set_threads(2);
  wanted.set_numeric(v1::NUMERIC_DEFAULT);
  v1::BestRecordsReply reply;
  ASSERT_TRUE(client->tune().BestRecords(client->Context().get(), request, &reply).ok());
  EXPECT_FALSE(reply.answers(0).has_record());
  EXPECT_EQ(reply.corrupt(), 1u);
  const auto corrupt_of = [](const grpc::ClientContext& context) {
    const auto& trailing = context.GetServerTrailingMetadata();
    const auto found = trailing.find(kCorruptRows);
    return found == trailing.end() ? "none" : std::string(found->second.data(), found->second.size());
  };
  const auto listing = client->Context();
  const auto records = client->tune().ListRecords(listing.get(), {});
  int listed = 0;
  for (v1::Record record; records->Read(&record);) ++listed;
  ASSERT_TRUE(records->Finish().ok());
  EXPECT_EQ(listed, 1);
  EXPECT_EQ(corrupt_of(*listing), "1");
  const auto exporting = client->Context();
  const auto exported = client->tune().ExportRecords(exporting.get(), {});
  for (v1::ExportChunk chunk; exported->Read(&chunk);) {}
  ASSERT_TRUE(exported->Finish().ok());
  EXPECT_EQ(corrupt_of(*exporting), "1");
}

}  // namespace
}  // namespace hone
