// What is SQLite's own: files that are none, damage, locks, migrations, readers beside a writer, a killed writer.
#include "database/sqlite/sqlite_store.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "compiler/support/random.h"
#include "database/sqlite/sqlite_schema.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/database/fault_vfs.h"
#include "tests/database/rows_for_tests.h"

// In place of the C library's: a folder called on_nfs is said to be on such a file system, others are what they are.
extern "C" int statfs(const char* path, struct statfs* info) {
  const long result = ::syscall(SYS_statfs, path, info);
  if (result == 0 && std::string(path).find("on_nfs") != std::string::npos) info->f_type = 0x6969;
  return static_cast<int>(result);
}

namespace hone {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SqliteTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hone_sqlite_XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/t.db";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<TuningStore> Open(StoreMode mode = StoreMode::kWrite) {
    auto store = OpenSqliteStore(path_, mode);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  // A database with twenty records, closed.
  void Fill() {
    const auto store = Open();
    const uint64_t epoch = *store->BeginEpoch();
    std::vector<Write> writes = TestGround();
    const TuningKey key = TestKey("conv2d_1");
    for (int i = 0; i < 20; ++i) {
      writes.push_back(PutRecord{TestRecord(key, absl::StrCat("trace ", i, std::string(300, 'x')), 10 + i, "object")});
    }
    writes.push_back(SetBest{key, RecordId(key, absl::StrCat("trace 3", std::string(300, 'x'))), 13});
    ASSERT_TRUE(store->Commit(epoch, writes).ok());
  }
  std::string Bytes() {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void WriteBytes(const std::string& bytes) {
    fs::remove(path_ + "-wal");
    fs::remove(path_ + "-shm");
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::string folder_, path_;
};

TEST_F(SqliteTest, ANewFileIsOursAndItsOwnersAlone) {
  Open();
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_THAT(entry.path().string(), testing::AnyOf(path_, path_ + ".lock")) << "left over";
  }
  Fill();
  EXPECT_EQ(Bytes().substr(0, 15), "SQLite format 3");
}

TEST_F(SqliteTest, AReaderWorksBesideTheWriterAndAfterIt) {
  EXPECT_EQ(OpenSqliteStore(path_, StoreMode::kRead).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(fs::exists(path_));
  Fill();
  {
    const auto writer = Open();
    const auto reader = Open(StoreMode::kRead);
    const uint64_t epoch = *writer->BeginEpoch();
    EXPECT_EQ(reader->Records(kLocalTenant, {})->rows.size(), 20u);
    const Write more = PutRecord{TestRecord(TestKey("dense_3"), "more", 1)};
    ASSERT_TRUE(writer->Commit(epoch, {&more, 1}).ok());
    EXPECT_EQ(reader->Records(kLocalTenant, {})->rows.size(), 21u);
    EXPECT_EQ(reader->BeginEpoch().status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(reader->Commit(epoch, {&more, 1}).code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(Open(StoreMode::kRead)->Records(kLocalTenant, {})->rows.size(), 21u);
}

// Another program holds the file with a transaction that wrote; the store's own commit waits for it. Readers do not.
TEST_F(SqliteTest, LookUpsWaitForNoWriter) {
  Fill();
  const auto store = Open();
  const uint64_t epoch = *store->BeginEpoch();
  auto other = SqliteConnection::Open(path_, SqliteConnection::Mode::kWrite);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)->Begin(SqlConnection::Access::kWrite).ok());
  ASSERT_TRUE((*other)->Execute("UPDATE best SET median_us = 1").ok());
  std::atomic<bool> committed{false};
  std::thread commit([&] {
    const Write more = PutRecord{TestRecord(TestKey("dense_3"), "more", 1)};
    absl::Status status;
    do {
      status = store->Commit(epoch, {&more, 1});
    } while (absl::IsUnavailable(status));  // on a machine so slow that the wait for the lock ends first
    EXPECT_TRUE(status.ok()) << status;
    committed = true;
  });
  v1::BestKey key;
  key.set_workload_hash(TestWorkload("conv2d_1").hash());
  key.set_threads(2);
  key.set_numeric(v1::NUMERIC_DEFAULT);
  std::vector<std::thread> readers;
  for (int i = 0; i < 20; ++i) {  // more than there are connections
    readers.emplace_back([&] {
      for (int n = 0; n < 10; ++n) EXPECT_TRUE(store->Best(kLocalTenant, {&key, 1})->entries.at(0).has_value());
      EXPECT_EQ(store->Records(kLocalTenant, {})->rows.size(), 20u);
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_FALSE(committed) << "all that was answered while the writer waited";
  ASSERT_TRUE((*other)->Commit().ok());
  commit.join();
  EXPECT_EQ(store->Records(kLocalTenant, {})->rows.size(), 21u);
}

TEST_F(SqliteTest, ASecondWriterIsRefused) {
  const auto writer = Open();
  EXPECT_EQ(AddressOfDaemon(path_), "");
  ASSERT_TRUE(PublishAddress(path_, "unix:/somewhere").ok());
  EXPECT_EQ(AddressOfDaemon(path_), "unix:/somewhere");
  const absl::Status refused = OpenSqliteStore(path_, StoreMode::kWrite).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("its daemon listens on unix:/somewhere"));
}

TEST_F(SqliteTest, AnAddressCountsOnlyWhileItsDaemonLives) {
  {
    const auto writer = Open();
    ASSERT_TRUE(PublishAddress(path_, "unix:/somewhere").ok());
  }
  EXPECT_EQ(AddressOfDaemon(path_), "");
  std::ofstream(path_ + ".lock") << "unix:/stale";
  EXPECT_EQ(AddressOfDaemon(path_), "");
}

TEST_F(SqliteTest, FilesThatAreNoneOfOursStayAsTheyWere) {
  struct Case {
    const char* bytes;
    const char* message;
  };
  for (const Case& c :
       {Case{"", "an empty file"}, Case{"hello, I am a text of more than sixteen bytes", "not a Hone database"},
        Case{"SQLite format 3", "not a Hone database"}}) {
    for (const StoreMode mode : {StoreMode::kRead, StoreMode::kWrite}) {
      WriteBytes(c.bytes);
      const absl::Status status = OpenSqliteStore(path_, mode).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << c.bytes << ": " << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
      EXPECT_EQ(Bytes(), c.bytes);
    }
  }
  EXPECT_EQ(OpenSqliteStore(folder_, StoreMode::kRead).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SqliteTest, ADatabaseOfAnotherProgramIsRefused) {
  {
    auto connection = SqliteConnection::Open(path_, SqliteConnection::Mode::kCreate);
    ASSERT_TRUE((*connection)->Execute("CREATE TABLE contacts (name TEXT)").ok());
  }
  const absl::Status status = OpenSqliteStore(path_, StoreMode::kWrite).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another program"));
}

TEST_F(SqliteTest, ANewerSchemaIsRefused) {
  Fill();
  {
    auto connection = SqliteConnection::Open(path_, SqliteConnection::Mode::kWrite);
    ASSERT_TRUE((*connection)->Execute("PRAGMA user_version = 1000").ok());
  }
  for (const StoreMode mode : {StoreMode::kRead, StoreMode::kWrite}) {
    const absl::Status status = OpenSqliteStore(path_, mode).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("newer Hone (schema 1000"));
  }
}

// Cut anywhere, or with a page of it gone: refused, or served without a wrong row. Never a crash.
TEST_F(SqliteTest, DamageIsNoticed) {
  Fill();
  const std::string good = Bytes();
  ASSERT_GT(good.size(), 40'000u);
  Random random(1);
  int refused = 0, served = 0;
  for (int i = 0; i < 150; ++i) {
    std::string bad = good;
    const size_t page = random.Below(good.size() / 4096) * 4096;
    switch (i % 4) {
      case 0: bad.resize(random.Below(good.size())); break;
      case 1: bad.replace(page, 4096, std::string(4096, '\0')); break;
      case 2: bad[random.Below(good.size())] ^= static_cast<char>(1 << random.Below(8)); break;
      case 3: bad.replace(page, 4096, good.substr(random.Below(good.size() / 4096) * 4096, 4096)); break;
    }
    WriteBytes(bad);
    const auto store = OpenSqliteStore(path_, i % 2 == 0 ? StoreMode::kWrite : StoreMode::kRead);
    if (!store.ok()) {
      EXPECT_EQ(store.status().code(), absl::StatusCode::kDataLoss) << store.status();
      ++refused;
      continue;
    }
    const auto page_read = (*store)->Records(kLocalTenant, {.with_objects = true});
    if (!page_read.ok()) {
      ++refused;
      continue;
    }
    ++served;
    for (const RecordRow& row : page_read->rows) {
      const std::string& trace = row.record.trace();
      ASSERT_EQ(trace.substr(0, 6), "trace ");
      EXPECT_EQ(row.record.median_us(), 10 + std::atoi(trace.c_str() + 6));
      EXPECT_TRUE(row.record.object().empty() || row.record.object() == "object");
    }
  }
  EXPECT_GT(refused, 30);
  EXPECT_GT(served, 10);
}

TEST_F(SqliteTest, ARecordWhoseBitsChangedIsNotServed) {
  Fill();
  {
    auto connection = SqliteConnection::Open(path_, SqliteConnection::Mode::kWrite);
    ASSERT_TRUE((*connection)
                    ->Execute("UPDATE record SET median_us = 1 WHERE median_us = 13; UPDATE served SET median_us = 1")
                    .ok());
  }
  const auto store = Open(StoreMode::kRead);
  const auto page = store->Records(kLocalTenant, {});
  EXPECT_EQ(page->rows.size(), 19u);
  EXPECT_EQ(page->corrupt, 1);
  v1::BestKey key;
  key.set_workload_hash(TestWorkload("conv2d_1").hash());
  key.set_threads(2);
  key.set_numeric(v1::NUMERIC_DEFAULT);
  key.set_device_class("fake/c2");
  const auto best = store->Best(kLocalTenant, {&key, 1});
  EXPECT_FALSE(best->entries.at(0).has_value());
  EXPECT_EQ(best->corrupt, 1) << "and it is said";
  EXPECT_EQ(store->LoadHistory(TestKey("conv2d_1"))->best_record, 0u);
  EXPECT_EQ(store->LoadHistory(TestKey("conv2d_1"))->corrupt, 2) << "as a record and as the best";
}

TEST_F(SqliteTest, DamagedRowsAreCountedNotSkipped) {
  Fill();
  {
    auto connection = SqliteConnection::Open(path_, SqliteConnection::Mode::kWrite);
    ASSERT_TRUE((*connection)
                    ->Execute("UPDATE object SET object = x'00' WHERE record IN (SELECT record FROM object "
                              "LIMIT 3); UPDATE job SET request = x'0AFF'; "
                              "UPDATE device_class SET profile = x'0AFF' WHERE name = 'fake/c64'")
                    .ok());
  }
  const auto store = Open();
  const auto page = store->Records(kLocalTenant, {.with_objects = true});
  EXPECT_EQ(page->rows.size(), 20u) << "the records are whole";
  EXPECT_EQ(page->corrupt, 3);
  EXPECT_EQ(*ExportRecords(*store, kLocalTenant, [](const std::string&) { return absl::OkStatus(); }), 3);
  const auto state = store->LoadState();
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->jobs.size(), 0u);
  EXPECT_EQ(state->corrupt, 2);
  const auto jobs = store->ListJobs(kLocalTenant, {});
  ASSERT_EQ(jobs->size(), 1u) << "it is still listed";
  EXPECT_THAT(jobs->at(0).reason, HasSubstr("what job 1 asked for is damaged"));
  EXPECT_EQ(store->GetJob(kLocalTenant, 1).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SqliteTest, AFileOnANetworkFileSystemIsRefused) {
  Fill();
  fs::create_directory(folder_ + "/on_nfs");
  fs::copy_file(path_, folder_ + "/on_nfs/t.db");
  for (const StoreMode mode : {StoreMode::kRead, StoreMode::kWrite}) {
    for (const char* name : {"/on_nfs/t.db", "/on_nfs/new.db"}) {
      const absl::Status status = OpenSqliteStore(folder_ + name, mode).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
      EXPECT_THAT(std::string(status.message()), HasSubstr("on a network file system (NFS)"));
      EXPECT_THAT(std::string(status.message()), HasSubstr("--db"));
    }
  }
  EXPECT_FALSE(fs::exists(folder_ + "/on_nfs/new.db"));
  EXPECT_FALSE(fs::exists(folder_ + "/on_nfs/t.db.lock")) << "nothing is made there";
}

TEST_F(SqliteTest, AnEmptyDeviceClassStandsForTheOnlyOne) {
  const auto store = Open();
  const uint64_t epoch = *store->BeginEpoch();
  const TuningKey key = TestKey("conv2d_1");
  std::vector<Write> writes = {PutWorkload{TestWorkload("conv2d_1")}, PutDeviceClass{{"fake/c2", {}}},
                               PutRecord{TestRecord(key, "a", 1)}, SetBest{key, RecordId(key, "a"), 1}};
  ASSERT_TRUE(store->Commit(epoch, writes).ok());
  v1::BestKey wanted;
  wanted.set_workload_hash(key.workload_hash);
  wanted.set_threads(2);
  wanted.set_numeric(v1::NUMERIC_DEFAULT);
  EXPECT_TRUE(store->Best(kLocalTenant, {&wanted, 1})->entries.at(0).has_value());
  const TuningKey elsewhere = TestKey("conv2d_1", 2, v1::NUMERIC_DEFAULT, "fake/c64");
  writes = {PutDeviceClass{{"fake/c64", {}}}, PutRecord{TestRecord(elsewhere, "a", 1)}};
  ASSERT_TRUE(store->Commit(epoch, writes).ok());
  EXPECT_FALSE(store->Best(kLocalTenant, {&wanted, 1})->entries.at(0).has_value());
}

TEST_F(SqliteTest, ACommitThatFailsLeavesNothing) {
  const auto store = Open();
  const uint64_t epoch = *store->BeginEpoch();
  ASSERT_TRUE(store->Commit(epoch, TestGround()).ok());
  const TuningKey unknown = TestKey("never written");
  const std::vector<Write> writes = {PutJob{TestJob(5, "request 5")}, PutRecord{TestRecord(unknown, "a", 1)}};
  EXPECT_FALSE(store->Commit(epoch, writes).ok());
  EXPECT_FALSE(store->GetJob(kLocalTenant, 5).ok());
  const Write fine = PutJob{TestJob(6, "request 6")};
  EXPECT_TRUE(store->Commit(epoch, {&fine, 1}).ok()) << "the connection is usable afterwards";
}

// A writer that is killed loses nothing it was told is written.
TEST_F(SqliteTest, WhatWasCommittedSurvivesAKill) {
  for (int round = 0; round < 8; ++round) {
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
      auto store = OpenSqliteStore(path_, StoreMode::kWrite);
      if (!store.ok()) {
        std::fprintf(stderr, "%s\n", store.status().ToString().c_str());
        _exit(3);
      }
      const uint64_t epoch = *(*store)->BeginEpoch();
      if (!(*store)->Commit(epoch, TestGround()).ok()) _exit(4);
      for (int i = 0;; ++i) {
        const int number = round * 100'000 + i;
        const Write next = PutRecord{TestRecord(TestKey("conv2d_1"), absl::StrCat("trace ", number), 1 + number)};
        if (!(*store)->Commit(epoch, {&next, 1}).ok()) _exit(5);
        if (::write(pipes[1], &number, sizeof(number)) != sizeof(number)) _exit(6);
      }
    }
    close(pipes[1]);
    usleep(40'000 + 17'000 * round);
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    int acknowledged = -1;
    for (int number; read(pipes[0], &number, sizeof(number)) == sizeof(number);) acknowledged = number;
    close(pipes[0]);
    if (acknowledged < 0) continue;  // killed before it had written anything
    const auto store = Open();
    const auto page = store->Records(kLocalTenant, {});
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_EQ(page->corrupt, 0);
    int last = -1;
    for (const RecordRow& row : page->rows) last = std::max(last, std::atoi(row.record.trace().c_str() + 6));
    EXPECT_GE(last, acknowledged);
    EXPECT_LE(last, acknowledged + 1);
  }
}

// ---- migrations ----

constexpr Migration kSteps[] = {
    {1, "first", "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1)"},
    {2, "second", "ALTER TABLE a ADD COLUMN y INTEGER; UPDATE a SET y = x + 1"},
    {3, "third", "CREATE TABLE b (z INTEGER); INSERT INTO b SELECT y FROM a; THIS IS NO SQL"},
};
const char kJournal[] = "CREATE TABLE IF NOT EXISTS migration (version INTEGER PRIMARY KEY, name TEXT, digest TEXT)";

TEST_F(SqliteTest, MigrationsGoForwardOneByOneWithACopyFirst) {
  auto connection = SqliteConnection::Open(path_, SqliteConnection::Mode::kCreate);
  ASSERT_TRUE(connection.ok());
  SqliteConnection& c = **connection;
  const std::string first = absl::StrCat(kJournal, ";", kSteps[0].sql);
  const Migration begin[] = {{1, "first", first.c_str()}};
  ASSERT_TRUE(Migrate(c, begin).ok());
  EXPECT_EQ(*c.Number("PRAGMA user_version"), 1);
  const Migration two[] = {begin[0], kSteps[1]};
  ASSERT_TRUE(Migrate(c, two).ok());
  EXPECT_EQ(*c.Number("PRAGMA user_version"), 2);
  EXPECT_EQ(*c.Number("SELECT y FROM a"), 2);
  EXPECT_TRUE(fs::exists(path_ + ".before-v2"));
  ASSERT_TRUE(Migrate(c, two).ok()) << "again is nothing";
  EXPECT_EQ(*c.Number("SELECT count(*) FROM migration"), 2);

  const Migration three[] = {begin[0], kSteps[1], kSteps[2]};
  const absl::Status failed = Migrate(c, three);
  EXPECT_FALSE(failed.ok());
  EXPECT_THAT(std::string(failed.message()), HasSubstr("migration 3 (third)"));
  EXPECT_EQ(*c.Number("PRAGMA user_version"), 2) << "a failed step never happened";
  EXPECT_EQ(*c.Number("SELECT count(*) FROM sqlite_schema WHERE name = 'b'"), 0);

  EXPECT_EQ(Migrate(c, begin).code(), absl::StatusCode::kDataLoss) << "never backwards";
  auto copy = SqliteConnection::Open(path_ + ".before-v2", SqliteConnection::Mode::kRead);
  EXPECT_EQ(*(*copy)->Number("PRAGMA user_version"), 1);
  EXPECT_EQ(*(*copy)->Number("SELECT x FROM a"), 1);
}

TEST_F(SqliteTest, CopiesAreTheirOwnersAlone) {
  auto connection = SqliteConnection::Open(path_, SqliteConnection::Mode::kCreate);
  ASSERT_TRUE(connection.ok());
  ASSERT_TRUE((*connection)->Execute("CREATE TABLE a (x INTEGER)").ok());
  const std::string copy = path_ + ".copy";
  std::ofstream(copy) << "";  // left by an earlier attempt, for everybody to read
  fs::permissions(copy, fs::perms::owner_all | fs::perms::group_read | fs::perms::others_read);
  ASSERT_TRUE((*connection)->BackUpTo(copy).ok());
  EXPECT_EQ(fs::status(copy).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE((*connection)->BackUpTo(path_ + ".second").ok());
  EXPECT_EQ(fs::status(path_ + ".second").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(SqliteTest, AFileOfAnotherHistoryIsRefused) {
  Fill();
  {
    auto connection = SqliteConnection::Open(path_, SqliteConnection::Mode::kWrite);
    ASSERT_TRUE((*connection)->Execute("UPDATE migration SET digest = 'another' WHERE version = 2").ok());
  }
  for (const StoreMode mode : {StoreMode::kRead, StoreMode::kWrite}) {
    const absl::Status status = OpenSqliteStore(path_, mode).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("its schema 2 (least_flop) is another than this program's"));
  }
  {
    auto connection = SqliteConnection::Open(path_, SqliteConnection::Mode::kWrite);
    ASSERT_TRUE((*connection)->Execute("DELETE FROM migration WHERE version = 2").ok());
  }
  EXPECT_THAT(std::string(OpenSqliteStore(path_, StoreMode::kWrite).status().message()),
              HasSubstr("its schema 2 (least_flop) is not noted"));
}

TEST_F(SqliteTest, MigrationsAreNumberedWithoutGaps) {
  int expected = 1;
  for (const Migration& migration : Migrations()) EXPECT_EQ(migration.version, expected++);
}

TEST_F(SqliteTest, AClosedFileIsWholeByItself) {
  Fill();
  {
    const auto store = Open();
    EXPECT_EQ(store->Records(kLocalTenant, {})->rows.size(), 20u);  // by a connection of a reader's
    const Write more = PutRecord{TestRecord(TestKey("dense_3"), "more", 1)};
    ASSERT_TRUE(store->Commit(*store->BeginEpoch(), {&more, 1}).ok());
  }
  EXPECT_FALSE(fs::exists(path_ + "-wal"));
  fs::copy_file(path_, path_ + ".copy");
  EXPECT_EQ((*OpenSqliteStore(path_ + ".copy", StoreMode::kRead))->Records(kLocalTenant, {})->rows.size(), 21u);
}

// Nothing of the file is in SQLite's memory yet. Keys are as many; what else is recorded of them is not looked at.
TEST_F(SqliteTest, ALookUpReadsAsManyPagesAmongManyRecords) {
  constexpr int kKeys = 20;
  const auto reads_among = [&](int records_of_key) {
    path_ = absl::StrCat(folder_, "/", records_of_key, ".db");
    {
      const auto store = Open();
      const uint64_t epoch = *store->BeginEpoch();
      std::vector<Write> writes = TestGround();
      for (int k = 0; k < kKeys; ++k) {
        const std::string name = absl::StrCat("kernel ", k);
        writes.push_back(PutWorkload{TestWorkload(name)});
        for (int i = 0; i < records_of_key; ++i) {
          writes.push_back(PutRecord{TestRecord(TestKey(name), absl::StrCat(k, " ", i, std::string(300, 'x')), 10)});
        }
        const uint64_t last = std::get<PutRecord>(writes.back()).row.record.id();
        writes.push_back(SetBest{TestKey(name), last, 10});
      }
      EXPECT_TRUE(store->Commit(epoch, writes).ok());
    }
    const FaultVfs vfs;
    const auto reader = Open(StoreMode::kRead);
    v1::BestKey key;
    key.set_workload_hash(TestWorkload("kernel 7").hash());
    key.set_threads(2);
    key.set_numeric(v1::NUMERIC_DEFAULT);
    const int64_t before = vfs.reads();
    EXPECT_TRUE(reader->Best(kLocalTenant, {&key, 1})->entries.at(0).has_value());
    return vfs.reads() - before;
  };
  const int64_t among_few = reads_among(2);
  EXPECT_GT(among_few, 3);
  EXPECT_EQ(reads_among(500), among_few);
}

// A file written by each released schema, opened by today's code. `HONE_UPDATE_GOLDEN=1` writes that of the newest.
TEST_F(SqliteTest, FilesOfEveryReleasedSchemaOpen) {
  const fs::path fixtures = fs::path(HONE_TEST_DATA) / "database/fixtures";
  const fs::path newest = fixtures / absl::StrCat("schema_", Migrations().back().version, ".db");
  if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr && !fs::exists(newest)) {
    Fill();
    fs::create_directories(fixtures);
    fs::copy_file(path_, newest);
  }
  ASSERT_TRUE(fs::exists(newest));
  for (const auto& entry : fs::directory_iterator(fixtures)) {
    fs::copy_file(entry.path(), path_, fs::copy_options::overwrite_existing);
    const auto store = Open();
    ASSERT_NE(store, nullptr) << entry.path();
    const auto page = store->Records(kLocalTenant, {.with_objects = true});
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_EQ(page->rows.size(), 20u);
    EXPECT_EQ(page->corrupt, 0);
    EXPECT_EQ(page->rows[0].record.object(), "object");
    EXPECT_TRUE(store->LoadState().ok());
    EXPECT_EQ(store->LoadHistory(TestKey("conv2d_1"))->best_us, 13);
    v1::BestKey key;
    key.set_workload_hash(TestKey("conv2d_1").workload_hash);
    key.set_threads(2);
    key.set_numeric(v1::NUMERIC_DEFAULT);
    const auto best = store->Best(kLocalTenant, {&key, 1});
    ASSERT_TRUE(best.ok() && best->entries.at(0).has_value()) << entry.path() << ": " << best.status();
    EXPECT_EQ(best->entries[0]->row.record.median_us(), 13);
  }
}

}  // namespace
}  // namespace hone
