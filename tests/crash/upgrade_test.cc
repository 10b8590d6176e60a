// A Hone that was built anew, on the database of the one before: what it makes the same code of counts as before, what
// it does not is said to be stale and measured again, and nothing is thrown away.
#include <signal.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/sha256.h"
#include "database/sql/row_checksums.h"
#include "database/sqlite/sqlite_connection.h"
#include "database/sqlite/sqlite_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::crash_test {
namespace {

using system_test::Arguments;
using system_test::Finished;
using system_test::Hone;
using system_test::Json;
using system_test::JsonLines;
using system_test::Process;
using system_test::Service;
using system_test::TempFolder;
using testing::HasSubstr;
using testing::Not;

class Upgrade : public ::testing::Test {
 protected:
  Finished Tune(const Arguments& more) {
    Arguments arguments{"tune", model_, "--server", service_.address(), "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Hone(folder_, arguments);
  }
  std::vector<RecordRow> Best() {
    const auto store = OpenSqliteStore(service_.database(), StoreMode::kRead);
    EXPECT_TRUE(store.ok()) << store.status();
    const auto page = (*store)->Records(kLocalTenant, {.best_only = true});
    EXPECT_TRUE(page.ok() && page->corrupt == 0);
    return page->rows;
  }
  size_t Records() { return service_.Records().size(); }
  std::map<std::string, std::string> States() {  // by workload, of the best records
    const Finished list = Hone(folder_, {"records", "best", "--json", "--db", service_.database()});
    std::map<std::string, std::string> states;
    for (const Json& line : JsonLines(list.output)) states[line.at("workload")] = line.at("state");
    return states;
  }
  // As if an earlier build had measured the record: its code, or other code of the same schedule. What was faster
  // inside the model is decided by noise where two are alike, so that is forgotten.
  void MakeOfAnotherBuild(RecordRow row, bool other_code) {
    row.record.set_generator("hone-cpu-of-last-year");
    if (other_code) row.record.set_object_digest(Sha256("what last year's build made"));
    auto connection = SqliteConnection::Open(service_.database(), SqliteConnection::Mode::kWrite);
    ASSERT_TRUE(connection.ok()) << connection.status();
    ASSERT_TRUE((*connection)->Execute("DELETE FROM model_choice").ok());
    for (const char* table : {"record", "served"}) {
      auto update = (*connection)
                        ->Prepare(absl::StrCat("UPDATE ", table,
                                               " SET generator = ?, object_digest = ?, checksum = ? WHERE id = ?"));
      ASSERT_TRUE(update.ok()) << update.status();
      (*update)->Text(row.record.generator()).Blob(row.record.object_digest()).Blob(ChecksumOf(row));
      (*update)->Int(row.record.id());
      const absl::Status status = (*update)->Run();
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  // The two kernels of the model are tuned, worker and daemon end, and another daemon finds the first record's code and
  // other code than the second's as an earlier build's.
  void TuneAndUpgrade() {
    Process& worker = service_.StartWorker();
    const Finished first = Tune({"--trials", "8"});
    ASSERT_EQ(first.code, 0) << first.errors;
    before = Best();
    ASSERT_EQ(before.size(), 2u);
    records_before = Records();
    worker.Signal(SIGTERM);
    EXPECT_EQ(worker.Wait(), 0);
    service_.daemon().Signal(SIGTERM);
    EXPECT_EQ(service_.daemon().Wait(), 0);
    MakeOfAnotherBuild(before[0], false);
    MakeOfAnotherBuild(before[1], true);
    service_.StartDaemon();
  }

  std::vector<RecordRow> before;  // the upgrade: the best of each kernel,
  size_t records_before = 0;      // and how many there were of all
  const TempFolder folder_;
  const std::string model_ = system_test::SaveTiny(folder_.path());
  Service service_{folder_};
};

TEST_F(Upgrade, RecordsHoldOrAreMeasuredAgain) {
  ASSERT_NO_FATAL_FAILURE(TuneAndUpgrade());
  const std::string generator = before[0].record.generator();

  // Nobody can measure yet: what is known stays, and is not said to be more than it is.
  const Finished waits = Tune({"--trials", "4", "--detach"});
  ASSERT_EQ(waits.code, 0) << waits.errors;
  EXPECT_THAT(waits.errors, HasSubstr("1 of 2 records of another Hone"));
  EXPECT_EQ(Records(), records_before);
  std::map<std::string, std::string> states = States();
  EXPECT_EQ(states[ToHex(before[0].key.workload_hash)], "verified");
  EXPECT_EQ(states[ToHex(before[1].key.workload_hash)], "stale");
  for (const RecordRow& row : Best()) {
    const bool holds = row.record.id() == before[0].record.id();
    EXPECT_EQ(row.record.generator(), holds ? generator : "hone-cpu-of-last-year");
  }
  const Finished compile = Hone(folder_, {"compile", model_, "-o", folder_ / "m.hone", "--server", service_.address(),
                                          "--threads", "1", "--json"});
  ASSERT_EQ(compile.code, 0) << compile.errors;
  EXPECT_EQ(JsonLines(compile.output).back().at("from_records"), 1);
  EXPECT_EQ(JsonLines(compile.output).back().at("from_stale_records"), 1);

  service_.StartWorker();
  ASSERT_EQ(Hone(folder_, {"jobs", "watch", "2", "--server", service_.address()}).code, 0);
  bool measured = false;
  const auto store = OpenSqliteStore(service_.database(), StoreMode::kRead);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto page = (*store)->Records(kLocalTenant, {});
  ASSERT_TRUE(page.ok()) << page.status();
  for (const RecordRow& row : page->rows) {
    if (row.record.id() != before[1].record.id()) continue;
    measured = true;
    EXPECT_EQ(row.origin, "tuned");
    EXPECT_EQ(row.record.generator(), generator);
    EXPECT_EQ(row.record.object_digest(), before[1].record.object_digest()) << "this build makes that code";
  }
  EXPECT_TRUE(measured) << "thrown away";
  states = States();
  EXPECT_EQ(states[ToHex(before[0].key.workload_hash)], "verified");
  EXPECT_EQ(states[ToHex(before[1].key.workload_hash)], "verified");
  const Finished again = Tune({"--trials", "1", "--detach"});
  EXPECT_THAT(again.errors, Not(HasSubstr("another Hone"))) << "they are looked at once";
}

// With a worker of the new build and nothing else to do, the daemon needs no tune for it.
TEST_F(Upgrade, TheDaemonChecksRecordsByItself) {
  ASSERT_NO_FATAL_FAILURE(TuneAndUpgrade());
  const std::string generator = before[0].record.generator();
  EXPECT_EQ(Best()[0].record.generator(), "hone-cpu-of-last-year") << "nobody can build them yet";

  service_.StartWorker();
  const auto is_checked = [&] {
    const std::vector<RecordRow> now = Best();
    return now.size() == 2 && std::ranges::all_of(now, [&](const RecordRow& row) {
             return row.record.generator() == generator && row.origin == "tuned";
           });
  };
  ASSERT_TRUE(system_test::WaitUntil(is_checked, 120));
  const auto store = OpenSqliteStore(service_.database(), StoreMode::kRead);
  ASSERT_TRUE(store.ok()) << store.status();
  const auto page = (*store)->Records(kLocalTenant, {});
  ASSERT_TRUE(page.ok()) << page.status();
  for (const RecordRow& row : page->rows) {
    if (row.record.id() == before[0].record.id()) { EXPECT_EQ(row.record.median_us(), before[0].record.median_us()); }
    if (row.record.id() == before[1].record.id()) {
      EXPECT_EQ(row.record.object_digest(), before[1].record.object_digest()) << "this build makes that code";
    }
  }
  EXPECT_THAT(Hone(folder_, {"jobs", "list", "--server", service_.address()}).output,
              HasSubstr("records of an earlier build"));
  EXPECT_THAT(Tune({"--trials", "1", "--detach"}).errors, Not(HasSubstr("another Hone"))) << "they are looked at once";
}

}  // namespace
}  // namespace hone::crash_test
