// Daemons that share a PostgreSQL database, as programs: one leads, the others answer look-ups, and take over from a
// leader that was killed, or stopped and woken up later.
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/sha256.h"
#include "database/postgres/postgres_connection.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/postgres/private_server.h"
#include "tests/slowdown.h"
#include "tests/tuner/fake_task.h"
#include "tests/tuner/service/fake_worker.h"
#include "tests/tuner/service/honed_process.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Minutes(2);  // for what takes seconds on a machine that is not busy

class SharedDatabaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = SharedServer();
    if (server_ == nullptr && !HasFailure()) GTEST_SKIP() << "there is no server";
    ASSERT_NE(server_, nullptr);
    url_ = server_->NewDatabase();
  }
  std::vector<std::string> Arguments(const std::string& socket) {
    return {"--db",    url_, "--listen",         "unix:" + (folder_ / socket),
            "--lease", "2",  "--search-program", HONE_BIN "/hone-fake-search"};
  }
  std::unique_ptr<DaemonClient> Connect(const HonedProcess& honed) {
    auto client = DaemonClient::Connect(honed.address(), {}, absl::Seconds(30));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  static v1::SubmitRequest Request(const std::string& id, int64_t max_trials) {
    v1::SubmitRequest request;
    request.set_request_id(id);
    request.set_model_name("model");
    request.set_target("cpu:native");
    request.set_threads(2);
    request.set_numeric(v1::NUMERIC_DEFAULT);
    request.set_max_trials(max_trials);
    *request.add_tasks() = FakeTask(id);
    return request;
  }
  static grpc::Status Submit(DaemonClient& client, const v1::SubmitRequest& request, uint64_t* job) {
    const absl::StatusOr<v1::SubmitReply> reply = client.Submit(request, absl::Seconds(10));
    *job = reply.ok() ? reply->job_id() : 0;
    return ToGrpc(reply.status());
  }
  // Submits to a daemon that will lead; how long it took until it did.
  absl::Duration TakesOver(DaemonClient& client, const v1::SubmitRequest& request, uint64_t* job) {
    const absl::Time begin = absl::Now();
    while (absl::Now() - begin < kLong) {
      const grpc::Status status = Submit(client, request, job);
      if (status.ok()) return absl::Now() - begin;
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
      absl::SleepFor(absl::Milliseconds(20));
    }
    ADD_FAILURE() << "nobody took over";
    return kLong;
  }
  static v1::JobState WaitForEnd(DaemonClient& client, uint64_t job) {
    const auto last = client.Watch(job, absl::Milliseconds(50),
                                   [](const DaemonClient::Sight& sight) { return sight.silence < kLong; });
    EXPECT_TRUE(last.ok()) << last.status();
    return last.ok() ? last->state() : v1::JOB_FAILED;
  }
  static int Answers(DaemonClient& client, const std::string& workload) {
    v1::BestRecordsRequest request;
    v1::BestKey& key = *request.add_keys();
    key.set_workload_hash(Sha256("text of " + workload));
    key.set_threads(2);
    key.set_numeric(v1::NUMERIC_DEFAULT);
    v1::BestRecordsReply reply;
    const grpc::Status status = client.tune().BestRecords(client.Context(absl::Seconds(10)).get(), request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.answers_size() == 1 && reply.answers(0).has_record() ? 1 : 0;
  }
  int64_t Number(const std::string& sql) {
    auto connection = PostgresConnection::Open(url_, "test");
    EXPECT_TRUE(connection.ok()) << connection.status();
    return connection.ok() ? *(*connection)->Number(sql) : -1;
  }

  PrivateServer* server_ = nullptr;
  std::string url_;
  TempFolder folder_;
};

TEST_F(SharedDatabaseTest, OneLeadsAllAnswerAndTheNextTakesOverFromAKilledOne) {
  HonedProcess first(Arguments("a")), second(Arguments("b"));
  ASSERT_TRUE(first.ready() && second.ready());
  const auto leader = Connect(first), other = Connect(second);
  uint64_t job = 0, open_job = 0;
  const grpc::Status refused = Submit(*other, Request("one", 30), &job);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("another daemon leads this database"));
  {
    FakeWorker worker("w", first.address());
    ASSERT_TRUE(Submit(*leader, Request("one", 30), &job).ok());
    EXPECT_EQ(WaitForEnd(*other, job), v1::JOB_DONE) << "the other tells of it as it ends";
  }
  EXPECT_EQ(Answers(*leader, "one"), 1);
  EXPECT_EQ(Answers(*other, "one"), 1);
  ASSERT_TRUE(Submit(*leader, Request("two", 30), &open_job).ok());

  const double before = Slowdown();
  first.Signal(SIGKILL);
  uint64_t third_job = 0;
  const absl::Duration took = TakesOver(*other, Request("three", 30), &third_job);
  const double slowdown = std::max(before, Slowdown());
  std::printf("took over %.1f s after the leader was killed, on a machine %.1f times slower than a free one\n",
              absl::ToDoubleSeconds(took), slowdown);
  EXPECT_LE(took, absl::Seconds(5) * slowdown);
  EXPECT_GT(third_job, open_job);
  FakeWorker worker("w", second.address());
  EXPECT_EQ(WaitForEnd(*other, open_job), v1::JOB_DONE) << "what the first had begun goes on";
  EXPECT_EQ(WaitForEnd(*other, third_job), v1::JOB_DONE);
}

TEST_F(SharedDatabaseTest, ALeaderThatWasStoppedAndWakesUpWritesNothing) {
  HonedProcess first(Arguments("a")), second(Arguments("b"));
  ASSERT_TRUE(first.ready() && second.ready());
  const auto leader = Connect(first), other = Connect(second);
  uint64_t job = 0, next_job = 0;
  FakeWorker busy("busy", first.address());
  ASSERT_TRUE(Submit(*leader, Request("one", 1'000'000), &job).ok());
  while (busy.done() < 20) absl::SleepFor(absl::Milliseconds(10));
  first.Signal(SIGSTOP);  // amid its writes
  const absl::Duration took = TakesOver(*other, Request("two", 30), &next_job);
  std::printf("took over %.1f s after the leader was stopped\n", absl::ToDoubleSeconds(took));
  FakeWorker worker("w", second.address());
  EXPECT_EQ(WaitForEnd(*other, next_job), v1::JOB_DONE);
  const int64_t measured = Number("SELECT count(*) FROM measurement WHERE epoch = 1");
  EXPECT_GE(measured, 20);
  first.Signal(SIGCONT);
  EXPECT_EQ(first.Wait(), 5);
  EXPECT_THAT(first.Errors(), HasSubstr("another daemon has taken over this database"));
  EXPECT_EQ(Number("SELECT count(*) FROM measurement WHERE epoch = 1"), measured);
  EXPECT_EQ(Number("SELECT epoch FROM term"), 2);
  EXPECT_EQ(Answers(*other, "two"), 1) << "the second goes on";
}

// Two daemons of this build are replaced by two of the next one, which has a migration more, while workers work on a
// job. Workers know a name that follows the leader.
TEST_F(SharedDatabaseTest, ARollingUpgradeLosesNoTrial) {
  constexpr int kTrials = 400;
  const auto arguments = [&](const std::string& socket) {
    std::vector<std::string> all = Arguments(socket);
    for (const char* more : {"--search-argument", "none", "--search-argument", "1000000", "--stall", "1000000"}) {
      all.push_back(more);
    }
    return all;
  };
  const std::string leader_name = folder_ / "leader";
  const auto name_leader = [&](const std::string& socket) {
    std::filesystem::remove(leader_name);
    std::filesystem::create_symlink(folder_ / socket, leader_name);
  };
  HonedProcess leader(arguments("a")), other(arguments("b"));
  ASSERT_TRUE(leader.ready() && other.ready());
  name_leader("a");
  uint64_t job = 0;
  ASSERT_TRUE(Submit(*Connect(leader), Request("one", kTrials), &job).ok());
  const auto slowly = [](const v1::Lease& lease) {
    absl::SleepFor(absl::Milliseconds(5));
    return GoodOutcome(lease);
  };
  FakeWorker one("one", "unix:" + leader_name, {}, slowly), two("two", "unix:" + leader_name, {}, slowly);
  while (one.done() + two.done() < 40) absl::SleepFor(absl::Milliseconds(5));

  other.Signal(SIGTERM);
  EXPECT_EQ(other.Wait(), 0);
  HonedProcess next(arguments("b"), "hone-next-honed");
  ASSERT_TRUE(next.ready()) << next.Errors();
  name_leader("b");
  const auto client = Connect(next);
  uint64_t next_job = 0;
  TakesOver(*client, Request("two", 20), &next_job);
  EXPECT_EQ(leader.Wait(), 5);
  EXPECT_THAT(leader.Errors(), HasSubstr("another daemon has taken over this database"));
  HonedProcess late(arguments("a"));
  EXPECT_EQ(late.Wait(), 9);
  EXPECT_THAT(late.Errors(), HasSubstr("written by a newer Hone"));
  HonedProcess next_other(arguments("a"), "hone-next-honed");
  ASSERT_TRUE(next_other.ready()) << next_other.Errors();

  EXPECT_EQ(WaitForEnd(*Connect(next_other), job), v1::JOB_DONE);
  EXPECT_EQ(WaitForEnd(*client, next_job), v1::JOB_DONE);
  EXPECT_EQ(Number("SELECT count(*) FROM trial t JOIN next_release n ON t.id > n.last_trial WHERE t.epoch < n.term"), 0)
      << "the older build lent something after the migration";
  EXPECT_GE(Number("SELECT count(*) FROM measurement m JOIN next_release n ON m.epoch < n.term"), 40)
      << "what was measured for the older build";
  EXPECT_EQ(Number("SELECT count(*) FROM trial WHERE state = 1"), 0) << "still lent";
  EXPECT_GE(Number("SELECT count(*) FROM trial WHERE state = 2 AND duel = 0"), kTrials);
  EXPECT_EQ(Number("SELECT count(*) FROM trial t WHERE t.state = 2 AND NOT EXISTS "
                   "(SELECT 1 FROM measurement m WHERE m.trial = t.id)"),
            0);
  EXPECT_EQ(Answers(*client, "one"), 1);
}

TEST_F(SharedDatabaseTest, WhatCannotBeUsedIsSaidAndEndsWithItsCode) {
  HonedProcess nowhere({"--db", "postgres://hone:secret@/hone?host=/nowhere", "--listen", "unix:" + (folder_ / "a")});
  EXPECT_FALSE(nowhere.ready());
  EXPECT_EQ(nowhere.Wait(), 5);
  EXPECT_THAT(nowhere.Errors(), HasSubstr("cannot connect"));
  EXPECT_THAT(nowhere.Errors(), ::testing::Not(HasSubstr("secret")));
  HonedProcess silent({"--db", url_});
  EXPECT_FALSE(silent.ready());
  EXPECT_EQ(silent.Wait(), 2);
  EXPECT_THAT(silent.Errors(), HasSubstr("--listen: give an address"));
}

}  // namespace
}  // namespace hone
