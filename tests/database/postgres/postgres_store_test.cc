// What is PostgreSQL's own: who leads, who is told, a server that goes away, databases that are none of ours.
#include "database/postgres/postgres_store.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "compiler/support/random.h"
#include "database/postgres/postgres_connection.h"
#include "database/postgres/postgres_locks.h"
#include "database/postgres/postgres_schema.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/postgres/private_server.h"
#include "tests/database/rows_for_tests.h"

namespace hone {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr absl::Duration kLong = absl::Minutes(2);  // for what happens at once on a machine that is not busy

class PostgresTest : public testing::Test {
 protected:
  void SetUp() override {
    server_ = SharedServer();
    if (server_ == nullptr && !HasFailure()) GTEST_SKIP() << "there is no server";
    ASSERT_NE(server_, nullptr);
    url_ = server_->NewDatabase();
  }
  std::unique_ptr<TuningStore> Open() {
    auto store = OpenPostgresStore(url_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::unique_ptr<PostgresConnection> Connect(const std::string& application) {
    auto connection = PostgresConnection::Open(url_, application);
    EXPECT_TRUE(connection.ok()) << connection.status();
    return connection.ok() ? *std::move(connection) : nullptr;
  }
  static bool LeadsInTime(TuningStore& store) {
    for (const absl::Time end = absl::Now() + kLong; absl::Now() < end; absl::SleepFor(absl::Milliseconds(100))) {
      const absl::StatusOr<bool> leads = store.TryLead();
      EXPECT_TRUE(leads.ok()) << leads.status();
      if (leads.ok() && *leads) return true;
    }
    return false;
  }
  static bool LosesInTime(TuningStore& store) {
    for (const absl::Time end = absl::Now() + kLong; absl::Now() < end; absl::SleepFor(absl::Milliseconds(100))) {
      const absl::StatusOr<bool> leads = store.TryLead();
      if (leads.ok() && !*leads) return true;
    }
    return false;
  }
  static std::vector<std::string> Traces(TuningStore& store) {
    std::vector<std::string> traces;
    const auto page = store.Records(kLocalTenant, {});
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return traces;
    EXPECT_EQ(page->corrupt, 0);
    for (const RecordRow& row : page->rows) traces.push_back(row.record.trace());
    return traces;
  }
  static Write RecordOf(const std::string& trace) { return PutRecord{TestRecord(TestKey("conv2d_1"), trace, 1)}; }

  PrivateServer* server_ = nullptr;
  std::string url_;
};

TEST_F(PostgresTest, OneLeadsAndWhenItIsGoneAnother) {
  auto first = Open();
  const auto second = Open();
  EXPECT_TRUE(*first->TryLead());
  EXPECT_TRUE(*first->TryLead()) << "still";
  EXPECT_FALSE(*second->TryLead());
  const uint64_t epoch = *first->BeginEpoch();
  ASSERT_TRUE(first->Commit(epoch, TestGround()).ok());
  EXPECT_TRUE(second->GetJob(kLocalTenant, 1).ok()) << "who does not lead answers look-ups";
  absl::SleepFor(absl::Seconds(5));
  EXPECT_FALSE(*second->TryLead()) << "who leads says so all the time";
  first = nullptr;
  EXPECT_TRUE(LeadsInTime(*second));
  EXPECT_EQ(*second->BeginEpoch(), epoch + 1);
}

TEST_F(PostgresTest, ALeaderThatWasOvertakenWritesNothing) {
  const auto first = Open(), second = Open();
  const uint64_t old = *first->BeginEpoch();
  ASSERT_TRUE(first->Commit(old, TestGround()).ok());
  const uint64_t now = *second->BeginEpoch();
  const Write late = RecordOf("late");
  const absl::Status refused = first->Commit(old, {&late, 1});
  EXPECT_EQ(refused.code(), absl::StatusCode::kAborted) << refused;
  EXPECT_THAT(Traces(*second), testing::IsEmpty());
  EXPECT_TRUE(second->Commit(now, {&late, 1}).ok());
}

// A process that is stopped keeps its sessions: the one with the lock, and one in the middle of a commit.
TEST_F(PostgresTest, ALeaderThatIsSilentIsEnded) {
  const auto store = Open();
  const auto lock = Connect("stopped daemon"), writer = Connect("stopped daemon"), bystander = Connect("psql");
  ASSERT_EQ(*lock->Number(absl::StrCat("SELECT 1 FROM pg_advisory_lock(", kLeaderLock, ")")), 1);
  ASSERT_TRUE(writer->Begin(SqlConnection::Access::kWrite).ok());
  ASSERT_TRUE(writer->Number("SELECT epoch FROM term FOR SHARE").ok());
  ASSERT_TRUE((*writer->Prepare("INSERT INTO tenant VALUES (77, 'late')"))->Run().ok());
  EXPECT_FALSE(*store->TryLead()) << "not at once";
  EXPECT_TRUE(LeadsInTime(*store));
  EXPECT_TRUE(store->BeginEpoch().ok());
  EXPECT_FALSE(writer->Commit().ok());
  EXPECT_FALSE(lock->Number("SELECT 1").ok());
  EXPECT_EQ(*bystander->Number("SELECT count(*) FROM tenant WHERE id = 77"), 0);
}

TEST_F(PostgresTest, ListenersAreToldOfChanges) {
  const auto leader = Open(), other = Open();
  const uint64_t epoch = *leader->BeginEpoch();
  EXPECT_FALSE(*other->WaitForChange(absl::Milliseconds(50))) << "it listens from now on";
  ASSERT_TRUE(leader->Commit(epoch, TestGround()).ok());
  EXPECT_TRUE(*other->WaitForChange(kLong));
  EXPECT_TRUE(other->GetJob(kLocalTenant, 1).ok()) << "what it is told of is there";
  const Write refused = RecordOf("a");
  EXPECT_FALSE(leader->Commit(epoch + 1, {&refused, 1}).ok());
  EXPECT_FALSE(*other->WaitForChange(absl::Milliseconds(200))) << "nothing was written";
}

TEST_F(PostgresTest, ACommitThatFailsLeavesNothing) {
  const auto store = Open();
  const uint64_t epoch = *store->BeginEpoch();
  ASSERT_TRUE(store->Commit(epoch, TestGround()).ok());
  // Many writes, so that the server has refused one before the last is sent.
  std::vector<Write> writes = {PutJob{TestJob(5, "request 5")}, PutTask{TestTask(9, /*job=*/1234, 0, "conv2d_1")}};
  for (int i = 0; i < 300; ++i) writes.push_back(RecordOf(absl::StrCat("trace ", i)));
  const absl::Status failed = store->Commit(epoch, writes);
  EXPECT_EQ(failed.code(), absl::StatusCode::kAlreadyExists) << failed;
  EXPECT_THAT(std::string(failed.message()), HasSubstr("foreign key"));
  EXPECT_FALSE(store->GetJob(kLocalTenant, 5).ok());
  EXPECT_THAT(Traces(*store), testing::IsEmpty());
  writes.erase(writes.begin() + 1);
  ASSERT_TRUE(store->Commit(epoch, writes).ok()) << "the connection is usable afterwards, keys are made again";
  EXPECT_EQ(Traces(*store).size(), 300u);
}

// Statements are sent ahead and what they give is read in portions: none is lost at the end of one.
TEST_F(PostgresTest, RowsComeBackHoweverManyStatementsWereSentBefore) {
  const auto connection = Connect("portions");
  for (int before = 0; before < 150; ++before) {
    ASSERT_TRUE(connection->Begin(SqlConnection::Access::kWrite).ok());
    for (int i = 0; i < before; ++i) ASSERT_TRUE((*connection->Prepare("SELECT 1"))->Run().ok());
    const auto query = *connection->Prepare("SELECT 7");
    ASSERT_TRUE(*query->Next()) << "after " << before;
    EXPECT_EQ(query->GetInt(0), 7);
    connection->Rollback();
  }
}

TEST_F(PostgresTest, TextsOfAnyBytesComeBack) {
  const auto store = Open();
  const uint64_t epoch = *store->BeginEpoch();
  ASSERT_TRUE(store->Commit(epoch, TestGround()).ok());
  const std::string trace("with \0 and \xff and '", 19);
  const Write write = RecordOf(trace);
  ASSERT_TRUE(store->Commit(epoch, {&write, 1}).ok());
  EXPECT_THAT(Traces(*store), testing::ElementsAre(trace));
}

TEST_F(PostgresTest, NamesOfTheLongestKindFitIntoIndexes) {
  const auto store = Open();
  Random random(1);
  std::string name;  // that does not get shorter by compression
  while (name.size() < kLongestName) name.push_back(static_cast<char>('!' + random.Below(90)));
  std::vector<Write> writes = TestGround();
  const TuningKey key = TestKey("conv2d_1", 2, v1::NUMERIC_DEFAULT, name);
  writes.push_back(PutDeviceClass{{name, {}}});
  writes.push_back(PutRecord{TestRecord(key, "a", 1)});
  writes.push_back(PutChoice{kLocalTenant, name, RecordId(key, "a"), "digest"});
  const absl::Status status = store->Commit(*store->BeginEpoch(), writes);
  EXPECT_TRUE(status.ok()) << status;
}

// A server that ends as if its machine lost power, again and again: what was acknowledged is there, once.
TEST_F(PostgresTest, NothingAcknowledgedIsLostWhenTheServerCrashes) {
  const auto store = Open();
  const uint64_t epoch = *store->BeginEpoch();
  ASSERT_TRUE(store->Commit(epoch, TestGround()).ok());
  std::vector<std::string> acknowledged;
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> up_again{false};
    std::thread writer([&] {
      const absl::Time end = absl::Now() + kLong;
      for (int i = 0; !up_again || i < 10; ++i) {
        const std::string trace = absl::StrCat("round ", round, ", ", i);
        const Write write = RecordOf(trace);
        absl::Status status;
        while (!(status = store->Commit(epoch, {&write, 1})).ok() && absl::Now() < end) {
          EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
          absl::SleepFor(absl::Milliseconds(10));
        }
        ASSERT_TRUE(status.ok()) << status;
        acknowledged.push_back(trace);
      }
    });
    absl::SleepFor(absl::Milliseconds(100 + 70 * round));
    ASSERT_TRUE(server_->Restart().ok());  // by this thread: the server ends with the one that started it
    up_again = true;
    writer.join();
    ASSERT_EQ(Traces(*store), acknowledged) << "round " << round;
  }
}

// As a proxy or an administrator does, in the middle of whatever they are at.
TEST_F(PostgresTest, NothingAcknowledgedIsLostWhenItsSessionsAreEnded) {
  const auto store = Open();
  const auto administrator = Connect("psql");
  const uint64_t epoch = *store->BeginEpoch();
  ASSERT_TRUE(store->Commit(epoch, TestGround()).ok());
  std::vector<std::string> acknowledged;
  std::atomic<bool> over{false};
  std::atomic<int> lost{0};
  std::thread writer([&] {
    const absl::Time end = absl::Now() + kLong;
    for (int i = 0; lost < 10 && absl::Now() < end; ++i) {
      const std::string trace = absl::StrCat("trace ", i);
      const Write write = RecordOf(trace);
      absl::Status status;
      while (!(status = store->Commit(epoch, {&write, 1})).ok() && absl::Now() < end) {
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
        ++lost;
      }
      if (status.ok()) acknowledged.push_back(trace);
    }
    over = true;
  });
  while (!over) {
    EXPECT_TRUE(administrator
                    ->Number("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                             "datname = current_database() AND application_name LIKE 'honed on %'")
                    .ok());
    absl::SleepFor(absl::Milliseconds(5));
  }
  writer.join();
  EXPECT_GE(lost, 10) << "commits in whose middle the session was ended";
  EXPECT_EQ(Traces(*store), acknowledged);
}

TEST_F(PostgresTest, ManyThatStartAtOnceMakeOneSchema) {
  std::vector<std::thread> threads;
  std::atomic<int> opened{0};
  for (int i = 0; i < 6; ++i) threads.emplace_back([&] { opened += OpenPostgresStore(url_).ok(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(opened, 6);
  EXPECT_EQ(*Connect("psql")->Number("SELECT count(*) FROM migration"), int64_t(Migrations().size()));
}

TEST_F(PostgresTest, MigrationsGoForwardOneByOne) {
  const auto c = Connect("test");
  const Migration steps[] = {{1, "first",
                              "CREATE TABLE migration (version INTEGER PRIMARY KEY, name TEXT, digest TEXT) STRICT;"
                              "CREATE TABLE term (epoch INTEGER NOT NULL) STRICT;"
                              "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1)"},
                             {2, "second", "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1"},
                             {3, "third", "CREATE TABLE b (z INTEGER); THIS IS NO SQL"}};
  ASSERT_TRUE(Migrate(*c, {steps, 1}).ok());
  ASSERT_TRUE(Migrate(*c, {steps, 2}).ok());
  ASSERT_TRUE(Migrate(*c, {steps, 2}).ok()) << "again is nothing";
  EXPECT_EQ(*c->Number("SELECT y FROM a"), 2);
  EXPECT_EQ(*c->Number("SELECT count(*) FROM migration"), 2);
  const absl::Status failed = Migrate(*c, {steps, 3});
  EXPECT_THAT(std::string(failed.message()), HasSubstr("migration 3 (third)"));
  EXPECT_EQ(*c->Number("SELECT count(*) FROM pg_tables WHERE tablename = 'b'"), 0) << "it never happened";
  EXPECT_EQ(Migrate(*c, {steps, 1}).code(), absl::StatusCode::kDataLoss) << "never backwards";
}

TEST_F(PostgresTest, AMigrationEndsTheTermOfAnOlderBuild) {
  const auto older = Open();
  EXPECT_TRUE(*older->TryLead());
  const uint64_t epoch = *older->BeginEpoch();
  ASSERT_TRUE(older->Commit(epoch, TestGround()).ok());
  const auto newer = Connect("newer build");
  ASSERT_TRUE(Migrate(*newer, Migrations()).ok());
  EXPECT_TRUE(older->Commit(epoch, {}).ok()) << "there was nothing to do";
  std::vector<Migration> next(Migrations().begin(), Migrations().end());
  next.push_back({next.back().version + 1, "next", "CREATE TABLE next_release (x INTEGER) STRICT"});
  ASSERT_TRUE(Migrate(*newer, next).ok());
  const Write late = RecordOf("late");
  const absl::Status refused = older->Commit(epoch, {&late, 1});
  EXPECT_EQ(refused.code(), absl::StatusCode::kAborted) << refused;
  EXPECT_TRUE(LosesInTime(*older)) << "and it finds out, though it has nothing to write";
  EXPECT_TRUE(older->GetJob(kLocalTenant, 1).ok()) << "until it ends it answers look-ups";
}

TEST_F(PostgresTest, DatabasesThatAreNoneOfOursAreRefused) {
  ASSERT_TRUE(Connect("test")->Execute("CREATE TABLE public.contacts (name TEXT)").ok());
  EXPECT_NE(Open(), nullptr) << "other tables may be beside ours";
  ASSERT_TRUE(Connect("test")->Execute("UPDATE migration SET digest = 'another' WHERE version = 2").ok());
  absl::Status status = OpenPostgresStore(url_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("its schema 2 (least_flop) is another than this program's"));
  ASSERT_TRUE(Connect("test")->Execute("INSERT INTO migration VALUES (1000, 'x', 'y')").ok());
  EXPECT_THAT(std::string(OpenPostgresStore(url_).status().message()), HasSubstr("newer Hone (schema 1000"));
  ASSERT_TRUE(Connect("test")->Execute("DROP TABLE migration").ok());
  status = OpenPostgresStore(url_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("tables of another program"));
}

TEST_F(PostgresTest, ARecordWhoseBitsChangedIsNotServed) {
  const auto store = Open();
  const uint64_t epoch = *store->BeginEpoch();
  ASSERT_TRUE(store->Commit(epoch, TestGround()).ok());
  const Write writes[] = {RecordOf("a"), RecordOf("b")};
  ASSERT_TRUE(store->Commit(epoch, writes).ok());
  ASSERT_TRUE(Connect("test")->Execute("UPDATE record SET median_us = 0.5 WHERE position = 1").ok());
  const auto page = store->Records(kLocalTenant, {});
  EXPECT_EQ(page->rows.size(), 1u);
  EXPECT_EQ(page->corrupt, 1);
}

TEST(PostgresUrl, WhatCannotBeReachedIsSaidWithoutThePassword) {
  absl::Status status = OpenPostgresStore("postgres://hone:secret@/tuning?host=/nowhere").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("postgres://hone@/nowhere"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/tuning: cannot connect"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  status = OpenPostgresStore("postgres://host/tuning?colour=blue").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("colour"));
  EXPECT_TRUE(IsPostgresUrl("postgresql://host/tuning"));
  EXPECT_FALSE(IsPostgresUrl("/srv/postgres.db"));
}

}  // namespace
}  // namespace hone
