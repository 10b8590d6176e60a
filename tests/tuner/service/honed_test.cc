// The daemon as a program: jobs through real sockets, and what is kept of them.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "absl/time/clock.h"
#include "compiler/support/sha256.h"
#include "database/sqlite/sqlite_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tuner/service/fake_worker.h"
#include "tests/tuner/service/honed_fixture.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

TEST_F(HonedTest, TunesAJobAndKeepsWhatItFound) {
  HonedProcess honed(Arguments());
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  struct stat info {};
  ASSERT_EQ(stat((folder_ / "s").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(AddressOfDaemon(folder_ / "t.db"), honed.address());
  const auto client = Connect(honed);
  const FakeWorker worker("w", honed.address());
  const uint64_t job = Submit(*client, Request("one", {"conv2d_1", "dense_2"}, 50));
  const v1::JobSnapshot end = WaitForEnd(*client, job);
  EXPECT_EQ(end.state(), v1::JOB_DONE) << end.reason();
  EXPECT_EQ(end.trials(), 50);
  EXPECT_GT(end.measure_seconds(), 0);
  ASSERT_EQ(end.tasks_size(), 2);
  for (const v1::TaskSnapshot& task : end.tasks()) {
    EXPECT_GT(task.best_us(), 0);
    EXPECT_DOUBLE_EQ(task.default_us(), FakeTime(task.name() + " default"));
    EXPECT_LE(task.best_us(), task.default_us());
    EXPECT_NE(task.record_id(), 0u);
  }
  // Look-up over the wire, and straight from the file while the daemon runs.
  v1::BestRecordsRequest request;
  v1::BestKey& key = *request.add_keys();
  key.set_workload_hash(Sha256("text of conv2d_1"));
  key.set_threads(2);
  key.set_numeric(v1::NUMERIC_DEFAULT);
  v1::BestRecordsReply reply;
  ASSERT_TRUE(client->tune().BestRecords(client->Context().get(), request, &reply).ok());
  ASSERT_TRUE(reply.answers(0).has_record());
  EXPECT_TRUE(reply.answers(0).exact());
  auto store = OpenSqliteStore(folder_ / "t.db", StoreMode::kRead);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto best = (*store)->Best(kLocalTenant, {&key, 1});
  ASSERT_TRUE(best.ok() && best->entries.at(0).has_value());
  EXPECT_EQ(best->entries[0]->row.record.trace(), reply.answers(0).record().trace());
  honed.Signal(SIGTERM);
  EXPECT_EQ(honed.Wait(), 0) << honed.Errors();
  EXPECT_EQ(AddressOfDaemon(folder_ / "t.db"), "");
}

// Whatever a worker sends along: the daemon looks before anything is kept.
TEST_F(HonedTest, KeepsNoObjectButTheOneThatWasMeasured) {
  HonedProcess honed(Arguments());
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  const FakeWorker worker("w", honed.address(), {}, [](const v1::Lease& lease) {
    v1::Outcome outcome = GoodOutcome(lease);
    outcome.set_object_digest(Sha256("object of " + lease.trace()));
    outcome.set_object((FakeTime(lease.trace()) > 600 ? "another object of " : "object of ") + lease.trace());
    return outcome;
  });
  WaitForEnd(*client, Submit(*client, Request("one", {"conv2d_1"}, 20)));
  honed.Signal(SIGTERM);
  EXPECT_EQ(honed.Wait(), 0) << honed.Errors();
  auto store = OpenSqliteStore(folder_ / "t.db", StoreMode::kRead);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto page = (*store)->Records(kLocalTenant, {.with_objects = true});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_GE(page->rows.size(), 20u);
  int kept = 0;
  for (const RecordRow& row : page->rows) {
    const std::string& object = row.record.object();
    kept += !object.empty();
    EXPECT_TRUE(object.empty() || object == "object of " + row.record.trace()) << object;
    EXPECT_TRUE(object.empty() || FakeTime(row.record.trace()) <= 600) << object;
  }
  EXPECT_GT(kept, 0);
}

TEST_F(HonedTest, AFullQuotaTakesTrialsWhileAJobRunsAndNeverTheBest) {
  constexpr int64_t kMost = 1 << 20;
  HonedProcess honed(Arguments({"--max-database-bytes", "1M", "--stall", "1000000", "--search-argument", "none",
                                "--search-argument", "1000000"}));
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  const FakeWorker worker("w", honed.address(), {}, [](const v1::Lease& lease) {
    v1::Outcome outcome = GoodOutcome(lease);
    if (FakeTime(lease.trace()) > 600) {
      outcome.Clear();
      outcome.set_kind(v1::OUTCOME_CRASH);
      outcome.set_detail(std::string(2000, 'x'));
    }
    return outcome;
  });
  const uint64_t job = Submit(*client, Request("one", {"conv2d_1", "dense_2"}, 1000));
  const v1::JobSnapshot end = WaitForEnd(*client, job);
  EXPECT_EQ(end.state(), v1::JOB_DONE) << end.reason();
  EXPECT_EQ(end.trials(), 1000);
  v1::ServiceStatus status;
  const absl::Time began = absl::Now();
  do {  // it looks once a second
    absl::SleepFor(absl::Milliseconds(100));
    ASSERT_TRUE(client->tune().Status(client->Context().get(), {}, &status).ok());
  } while ((status.quota().bytes() > kMost || status.quota().pruned_trials() == 0) &&
           absl::Now() - began < absl::Seconds(60));
  EXPECT_EQ(status.quota().most_bytes(), kMost);
  EXPECT_LE(status.quota().bytes(), kMost);
  EXPECT_GT(status.quota().pruned_trials(), 0);
  honed.Signal(SIGTERM);
  EXPECT_EQ(honed.Wait(), 0) << honed.Errors();
  EXPECT_THAT(honed.Errors(), HasSubstr("its quota is 1.0 MiB"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "t.db-wal")) << "a file that is closed is whole by itself";
  auto store = OpenSqliteStore(folder_ / "t.db", StoreMode::kRead);
  ASSERT_TRUE(store.ok()) << store.status();
  for (const v1::TaskSnapshot& task : end.tasks()) {
    v1::BestKey key;
    key.set_workload_hash(task.workload_hash());
    key.set_threads(2);
    key.set_numeric(v1::NUMERIC_DEFAULT);
    const auto best = (*store)->Best(kLocalTenant, {&key, 1});
    ASSERT_TRUE(best.ok() && best->entries.at(0).has_value()) << task.name();
    EXPECT_EQ(best->entries[0]->row.record.id(), task.record_id());
  }
}

TEST_F(HonedTest, ASecondJobMeasuresNothingTwice) {
  HonedProcess honed(Arguments());
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  FakeWorker::Reset();
  const FakeWorker worker("w", honed.address());
  WaitForEnd(*client, Submit(*client, Request("one", {"conv2d_1", "dense_2"}, 0)));
  const std::multiset<std::string> first = FakeWorker::Tried();
  const v1::JobSnapshot second = WaitForEnd(*client, Submit(*client, Request("two", {"conv2d_1", "dense_2"}, 0)));
  EXPECT_EQ(second.state(), v1::JOB_DONE) << second.reason();
  EXPECT_EQ(second.trials(), 0);
  EXPECT_GT(second.tasks(0).best_us(), 0);
  EXPECT_EQ(FakeWorker::Tried(), first);
  for (const std::string& trace : first) EXPECT_EQ(first.count(trace), 1u) << trace;
}

// A model outlives the process that learnt it, and the daemon.
TEST_F(HonedTest, KeepsTheModelOfADeviceClassAndGivesItToTheNextSearch) {
  std::string first, device_class;
  for (const char* id : {"one", "two"}) {
    FakeWorker::Reset();
    HonedProcess honed(Arguments({"--searches", "1"}));
    ASSERT_TRUE(honed.ready()) << honed.Errors();
    const auto client = Connect(honed);
    const FakeWorker worker("w", honed.address());
    const std::string task = std::string("learn_") + id;
    const v1::JobSnapshot end = WaitForEnd(*client, Submit(*client, Request(id, {task}, 20)));
    EXPECT_EQ(end.state(), v1::JOB_DONE) << end.reason();
    EXPECT_GE(end.judged_batches(), 1);
    EXPECT_DOUBLE_EQ(end.draft_top1(), 0.5);
    EXPECT_DOUBLE_EQ(end.model_top1(), 1);
    device_class = end.device_class();
    honed.Signal(SIGTERM);
    EXPECT_EQ(honed.Wait(), 0) << honed.Errors();
    const auto store = OpenSqliteStore(folder_ / "t.db", StoreMode::kRead);
    ASSERT_TRUE(store.ok()) << store.status();
    const absl::StatusOr<std::string> model = (*store)->CostModel(kLocalTenant, device_class, "search");
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_THAT(*model, ::testing::MatchesRegex("x+"));
    EXPECT_GT(model->size(), first.size()) << "it goes on from the stored one";
    if (!first.empty()) { EXPECT_GE(model->size(), first.size() + static_cast<size_t>(end.judged_batches())); }
    first = *model;
  }
}

TEST_F(HonedTest, WithoutASearchProgramTheDefaultsAreMeasured) {
  HonedProcess honed(
      {"--db", folder_ / "t.db", "--listen", "unix:" + (folder_ / "s"), "--search-program", folder_ / "none"});
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  const FakeWorker worker("w", honed.address());
  const v1::JobSnapshot end = WaitForEnd(*client, Submit(*client, Request("one", {"conv2d_1"}, 20)));
  EXPECT_EQ(end.state(), v1::JOB_DONE);
  EXPECT_EQ(end.trials(), 1);
  EXPECT_THAT(end.reason(), HasSubstr("cannot start"));
}

TEST_F(HonedTest, StopKeepsWhatWasMeasured) {
  HonedProcess honed(Arguments());
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  const FakeWorker worker("w", honed.address(), {}, [](const v1::Lease& lease) {
    absl::SleepFor(absl::Milliseconds(20));
    return GoodOutcome(lease);
  });
  const uint64_t job = Submit(*client, Request("one", {"conv2d_1", "dense_2"}, 0));
  while (worker.done() < 12) absl::SleepFor(absl::Milliseconds(5));  // two confirm the first results
  v1::StopRequest stop;
  stop.set_job_id(job);
  v1::JobSnapshot snapshot;
  ASSERT_TRUE(client->tune().Stop(client->Context().get(), stop, &snapshot).ok());
  const v1::JobSnapshot end = WaitForEnd(*client, job);
  EXPECT_EQ(end.state(), v1::JOB_STOPPED);
  EXPECT_GE(end.trials(), 10);
  EXPECT_LT(end.trials(), 82);
  // Stopping it again is no error, and it is listed.
  EXPECT_TRUE(client->tune().Stop(client->Context().get(), stop, &snapshot).ok());
  EXPECT_EQ(snapshot.state(), v1::JOB_STOPPED);
  v1::ListJobsReply jobs;
  ASSERT_TRUE(client->tune().ListJobs(client->Context().get(), {}, &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).trials(), end.trials());
}

TEST_F(HonedTest, AJobWithoutWorkersWaitsAndSaysWhy) {
  HonedProcess honed(Arguments());
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  const uint64_t job = Submit(*client, Request("one", {"conv2d_1"}, 5));
  EXPECT_EQ(Submit(*client, Request("one", {"conv2d_1"}, 5)), job) << "a request is one job";
  v1::GetJobRequest get;
  get.set_job_id(job);
  v1::JobSnapshot snapshot;
  ASSERT_TRUE(client->tune().GetJob(client->Context().get(), get, &snapshot).ok());
  EXPECT_EQ(snapshot.state(), v1::JOB_WAITING);
  EXPECT_THAT(snapshot.reason(), HasSubstr("no worker is connected"));
  get.set_job_id(99);
  EXPECT_EQ(client->tune().GetJob(client->Context().get(), get, &snapshot).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(HonedTest, ExportsAndImportsOverTheWire) {
  std::string lines;
  {
    HonedProcess honed(Arguments());
    ASSERT_TRUE(honed.ready()) << honed.Errors();
    const auto client = Connect(honed);
    const FakeWorker worker("w", honed.address());
    WaitForEnd(*client, Submit(*client, Request("one", {"conv2d_1", "dense_2"}, 30)));
    const auto context = client->Context();
    const auto reader = client->tune().ExportRecords(context.get(), {});
    for (v1::ExportChunk chunk; reader->Read(&chunk);) lines += chunk.lines();
    ASSERT_TRUE(reader->Finish().ok());
  }
  HonedProcess honed({"--db", folder_ / "new.db", "--listen", "unix:" + (folder_ / "s2")});
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  for (int round = 0; round < 2; ++round) {
    v1::ImportReply reply;
    const auto context = client->Context();
    const auto writer = client->tune().ImportRecords(context.get(), &reply);
    for (size_t at = 0; at < lines.size(); at += 1000) {  // pieces that end in the middle of lines
      v1::ExportChunk chunk;
      chunk.set_lines(lines.substr(at, 1000));
      writer->Write(chunk);
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(reply.records(), round == 0 ? 30u : 0u);
    EXPECT_EQ(reply.duplicates(), round == 0 ? 0u : 30u);
    EXPECT_EQ(reply.refused_size(), 0);
  }
  std::string again;
  const auto context = client->Context();
  const auto reader = client->tune().ExportRecords(context.get(), {});
  for (v1::ExportChunk chunk; reader->Read(&chunk);) again += chunk.lines();
  ASSERT_TRUE(reader->Finish().ok());
  EXPECT_EQ(again, lines);
}

}  // namespace
}  // namespace hone
