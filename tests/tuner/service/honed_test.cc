// The daemon as a program: jobs through real sockets, processes that die, files and tokens that are wrong.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/file.h"
#include "compiler/support/sanitized.h"
#include "compiler/support/sha256.h"
#include "database/sqlite_connection.h"
#include "database/sqlite_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/rows_for_tests.h"
#include "tests/tuner/service/fake_worker.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

const char kFakeSearch[] = HONE_BIN "/hone-fake-search";

v1::SubmitRequest Request(const std::string& id, const std::vector<std::string>& tasks, int64_t max_trials) {
  v1::SubmitRequest request;
  request.set_request_id(id);
  request.set_model_name("model");
  request.set_target("cpu:native");
  request.set_threads(2);
  request.set_numeric(v1::NUMERIC_DEFAULT);
  request.set_max_trials(max_trials);
  for (const std::string& name : tasks) {
    v1::TaskSpec& task = *request.add_tasks();
    task.mutable_workload()->set_name(name);
    task.mutable_workload()->set_text("text of " + name);
    task.mutable_workload()->set_hash(Sha256(task.workload().text()));
    task.mutable_workload()->set_flop(1e6);
    task.set_weight(2);
    task.set_default_trace(name + " default");
  }
  return request;
}

class HonedTest : public ::testing::Test {
 protected:
  std::vector<std::string> Arguments(std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"--db", folder_ / "t.db",   "--listen", "unix:" + (folder_ / "s"), "--lease",
                                    "2",    "--search-program", kFakeSearch};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::unique_ptr<DaemonClient> Connect(const HonedProcess& honed, const std::string& token = "") {
    auto client = DaemonClient::Connect(honed.address(), {token, {}}, absl::Seconds(5));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  uint64_t Submit(DaemonClient& client, const v1::SubmitRequest& request) {
    const absl::StatusOr<v1::SubmitReply> reply = client.Submit(request, absl::Seconds(10));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? reply->job_id() : 0;
  }
  v1::JobSnapshot WaitForEnd(DaemonClient& client, uint64_t job) {
    const auto last = client.Watch(job, absl::Milliseconds(50),
                                   [](const DaemonClient::Sight& sight) { return sight.silence < absl::Seconds(20); });
    EXPECT_TRUE(last.ok()) << last.status();
    return last.ok() ? *last : v1::JobSnapshot();
  }

  TempFolder folder_;
};

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

// The descriptors of a process that are sockets of the network, by the inode numbers in the kernel's tables.
int NetworkSockets(pid_t pid) {
  std::string tables;
  for (const char* name : {"tcp", "tcp6", "udp", "udp6"}) {
    tables += ReadFile(absl::StrCat("/proc/", pid, "/net/", name)).value_or("");
  }
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd"))) {
    const std::string link = std::filesystem::read_symlink(entry.path()).string();
    if (link.rfind("socket:[", 0) != 0) continue;
    count += tables.find(absl::StrCat(" ", link.substr(8, link.size() - 9), " ")) != std::string::npos;
  }
  return count;
}

// Without --listen it is there for the owner of the database, who finds it without an address, and for nobody else.
TEST_F(HonedTest, TheDefaultIsASocketOfTheOwners) {
  HonedProcess honed({"--db", folder_ / "t.db"});
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  EXPECT_EQ(honed.address(), "unix:" + (folder_ / "t.db.sock"));
  EXPECT_EQ(AddressOfDaemon(folder_ / "t.db"), honed.address());
  EXPECT_EQ(NetworkSockets(honed.pid()), 0);
  v1::ListJobsReply jobs;
  const auto client = Connect(honed);
  EXPECT_TRUE(client->tune().ListJobs(client->Context().get(), {}, &jobs).ok());
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

TEST_F(HonedTest, APrivateDaemonEndsWithItsWorkers) {
  HonedProcess honed(Arguments({"--exit-when-idle", "0.5"}));
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  const auto client = Connect(honed);
  FakeWorker worker("w", honed.address());
  WaitForEnd(*client, Submit(*client, Request("one", {"conv2d_1"}, 5)));
  EXPECT_EQ(honed.Wait(), 0) << honed.Errors();
  EXPECT_TRUE(worker.told_to_shut_down());
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

TEST_F(HonedTest, WantsTheTokenOnTheNetwork) {
  std::ofstream(folder_ / "token") << "secret\n";
  chmod((folder_ / "token").c_str(), 0600);
  HonedProcess honed(
      {"--db", folder_ / "t.db", "--listen", "127.0.0.1:0", "--insecure", "--token-file", folder_ / "token"});
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  EXPECT_EQ(NetworkSockets(honed.pid()), 1);
  struct Case {
    const char* token;
    grpc::StatusCode code;
  };
  for (const Case& c : {Case{"secret", grpc::StatusCode::OK}, Case{"wrong", grpc::StatusCode::PERMISSION_DENIED},
                        Case{"", grpc::StatusCode::UNAUTHENTICATED}}) {
    const auto client = Connect(honed, c.token);
    v1::ListJobsReply jobs;
    EXPECT_EQ(client->tune().ListJobs(client->Context().get(), {}, &jobs).error_code(), c.code) << c.token;
    v1::SyncRequest sync;
    v1::SyncReply reply;
    EXPECT_EQ(client->fleet().Sync(client->Context().get(), sync, &reply).error_code(), c.code) << c.token;
    const auto watch =
        client->Watch(1, absl::Milliseconds(50), [](const auto& sight) { return sight.silence < absl::Seconds(1); });
    EXPECT_EQ(static_cast<int>(watch.status().code()),
              static_cast<int>(c.code == grpc::StatusCode::OK ? grpc::StatusCode::NOT_FOUND : c.code));
  }
}

// Whoever may open the Unix socket is the owner, and needs none; who shows one all the same is held to it.
TEST_F(HonedTest, TheOwnersSocketWantsNoToken) {
  std::ofstream(folder_ / "token") << "secret\n";
  chmod((folder_ / "token").c_str(), 0600);
  HonedProcess honed({"--db", folder_ / "t.db", "--token-file", folder_ / "token"});
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  for (const auto& [token, code] : {std::pair{"", grpc::StatusCode::OK}, std::pair{"secret", grpc::StatusCode::OK},
                                    std::pair{"wrong", grpc::StatusCode::PERMISSION_DENIED}}) {
    const auto client = Connect(honed, token);
    v1::ListJobsReply jobs;
    EXPECT_EQ(client->tune().ListJobs(client->Context().get(), {}, &jobs).error_code(), code) << token;
  }
}

struct RefusalCase {
  const char* name;
  std::vector<std::string> arguments;
  int code;
  const char* message;
};
class HonedRefuses : public HonedTest, public ::testing::WithParamInterface<RefusalCase> {};
TEST_P(HonedRefuses, WithOneMessageAndItsCode) {
  std::ofstream(folder_ / "text") << std::string(5000, 'x');
  std::ofstream(folder_ / "empty") << "";
  std::ofstream(folder_ / "open_token") << "secret";
  chmod((folder_ / "open_token").c_str(), 0644);
  std::vector<std::string> arguments = GetParam().arguments;
  for (std::string& argument : arguments) {
    const size_t at = argument.find('@');
    if (at != std::string::npos) argument.replace(at, 1, folder_ / "");
  }
  HonedProcess honed(arguments);
  EXPECT_FALSE(honed.ready());
  EXPECT_EQ(honed.Wait(), GetParam().code);
  EXPECT_THAT(honed.Errors(), HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(
    Cases, HonedRefuses,
    ::testing::Values(
        RefusalCase{"NoOptions", {}, 2, "--db"},
        RefusalCase{"UnknownOption", {"--db", "@t", "--listen", "unix:@s", "--what"}, 2, "--what"},
        RefusalCase{"NotADatabase", {"--db", "@text", "--listen", "unix:@s"}, 9, "not a Hone database"},
        RefusalCase{"EmptyDatabase", {"--db", "@empty", "--listen", "unix:@s"}, 9, "an empty file"},
        RefusalCase{"DatabaseIsAFolder", {"--db", "@", "--listen", "unix:@s"}, 2, "a folder"},
        RefusalCase{"NoSuchFolder", {"--db", "@none/t", "--listen", "unix:@s"}, 8, "No such file"},
        RefusalCase{"NoTls", {"--db", "@t", "--listen", "127.0.0.1:0"}, 2, "needs TLS"},
        RefusalCase{"NoToken", {"--db", "@t", "--listen", "127.0.0.1:0", "--insecure"}, 2, "needs a token"},
        RefusalCase{"OpenToken",
                    {"--db", "@t", "--listen", "127.0.0.1:0", "--insecure", "--token-file", "@open_token"},
                    2,
                    "chmod 600"},
        RefusalCase{"NotAnAddress", {"--db", "@t", "--listen", "somewhere"}, 2, "not an address"},
        RefusalCase{"SocketIsAFile", {"--db", "@t", "--listen", "unix:@text"}, 2, "no socket"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(HonedTest, ASecondDaemonOnTheSameDatabaseIsRefused) {
  HonedProcess honed(Arguments());
  ASSERT_TRUE(honed.ready()) << honed.Errors();
  HonedProcess second({"--db", folder_ / "t.db", "--listen", "unix:" + (folder_ / "other")});
  EXPECT_FALSE(second.ready());
  EXPECT_EQ(second.Wait(), 5);
  EXPECT_THAT(second.Errors(), HasSubstr("listens on unix:"));
  HonedProcess third({"--db", folder_ / "u.db", "--listen", "unix:" + (folder_ / "s")});
  EXPECT_FALSE(third.ready());
  EXPECT_EQ(third.Wait(), 5);
  EXPECT_THAT(third.Errors(), HasSubstr("another program listens there"));
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
