// Processes of a small service are ended at every crash point that the sources name, as often as there are visits to
// draw from, and started again (world.h: what must hold). Each point is visited once, which finds what is wrong with a
// point; that the losses before matter is for campaigns:
//   HONE_CRASHES=3000 crash_tests        so many losses in place of one at each point
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "database/record_json.h"
#include "database/sqlite_connection.h"
#include "database/sqlite_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/crash/crash_points.h"
#include "tests/crash/world.h"
#include "tests/database/rows_for_tests.h"

namespace hone::crash_test {
namespace {

using system_test::Finished;
using system_test::Process;
using system_test::TempFolder;
using system_test::WaitUntil;
namespace fs = std::filesystem;

constexpr size_t kLeastPoints = 60;
constexpr int kRecordsOfFixture = 20;  // database/fixtures/schema_1.db
constexpr double kVisited = 180;       // seconds in which a point is passed, on a loaded machine

// What makes a process come by a point.
enum class Activity { kStart, kStop, kJob, kCommand, kPrune };

bool IsOf(const std::string& point, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const char* prefix) { return absl::StartsWith(point, prefix); });
}

Activity ActivityOf(const std::string& point) {
  if (IsOf(point, {"daemon.stop.", "core.stop.", "worker.stop."})) return Activity::kStop;
  if (IsOf(point, {"daemon.", "sqlite.", "migrate.", "core.epoch", "core.state", "core.leads", "store.epoch"})) {
    return Activity::kStart;
  }
  if (IsOf(point, {"tune.", "client.", "write.tenant", "write.check"})) return Activity::kCommand;
  if (IsOf(point, {"quota.", "write.prune."})) return Activity::kPrune;
  return Activity::kJob;
}

World::Host HostOf(const std::string& point) {
  const bool at_worker = IsOf(point, {"worker.", "builder.", "oracle.", "runner.", "spool.", "file."});
  return at_worker ? World::Host::kWorker : World::Host::kDaemon;
}

// True where the process that ends is the daemon or the worker itself, not a process of theirs.
bool EndsHost(const std::string& point) { return !IsOf(point, {"builder.", "oracle.", "runner.", "search."}); }

int AllCrashes() {
  const char* asked = std::getenv("HONE_CRASHES");
  return asked != nullptr ? std::atoi(asked) : 0;
}

// The points of one activity, each as often as the others and once at least, and `AllCrashes` in all activities
// together.
std::vector<std::string> Schedule(Activity activity) {
  const std::vector<std::string> all = CrashPoints();
  std::vector<std::string> points;
  std::copy_if(all.begin(), all.end(), std::back_inserter(points),
               [&](const std::string& point) { return ActivityOf(point) == activity; });
  const size_t rounds = std::max<size_t>(1, (static_cast<size_t>(AllCrashes()) + all.size() - 1) / all.size());
  std::vector<std::string> schedule;
  std::mt19937_64 random(static_cast<uint64_t>(activity));
  for (size_t round = 0; round < rounds; ++round) {
    std::shuffle(points.begin(), points.end(), random);
    schedule.insert(schedule.end(), points.begin(), points.end());
  }
  return schedule;
}

void Report(const std::vector<std::string>& schedule, int kills) {
  const std::set<std::string> points(schedule.begin(), schedule.end());
  for (const std::string& point : points) {
    std::printf("  %-28s %3d\n", point.c_str(), static_cast<int>(std::count(schedule.begin(), schedule.end(), point)));
  }
  std::printf("%zu points, %d losses\n", points.size(), kills);
}

TEST(CrashMatrix, HasPointsInEveryProgram) {
  const std::vector<std::string> points = CrashPoints();
  std::printf("%zu points\n", points.size());
  EXPECT_GE(points.size(), kLeastPoints);
  for (const char* prefix : {"daemon.", "worker.", "builder.", "runner.", "oracle.", "search.", "client."}) {
    EXPECT_TRUE(std::any_of(points.begin(), points.end(), [&](const std::string& point) {
      return absl::StartsWith(point, prefix);
    })) << prefix;
  }
}

// ---- starting ----

Process StartDaemon(const TempFolder& folder, const std::map<std::string, std::string>& environment) {
  return Process(folder, "honed", {"--db", folder / "t.db", "--listen", "unix:" + (folder / "s")}, environment);
}

bool Listens(Process& daemon) {
  return WaitUntil([&] { return !daemon.running() || daemon.Output().find("listening on") != std::string::npos; },
                   kVisited) &&
         daemon.running();
}

int Records(const std::string& path) {
  const auto store = OpenSqliteStore(path, StoreMode::kRead);
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) return -1;
  const auto page = (*store)->Records(kLocalTenant, {});
  EXPECT_TRUE(page.ok() && page->corrupt == 0) << page.status();
  return page.ok() ? static_cast<int>(page->rows.size()) : -1;
}

TEST(CrashMatrix, ADaemonThatIsLostAsItStartsStartsAgain) {
  const std::vector<std::string> schedule = Schedule(Activity::kStart);
  const std::string oldest = HONE_TEST_DATA "/database/fixtures/schema_1.db";
  for (size_t i = 0; i < schedule.size(); ++i) {
    SCOPED_TRACE(schedule[i]);
    const TempFolder folder;
    const bool made = IsOf(schedule[i], {"sqlite.create."});
    if (!made) fs::copy_file(oldest, folder / "t.db");
    Trigger trigger(folder, schedule[i], IsOf(schedule[i], {"migrate.before", "migrate.committed"}) ? 1 + i % 4 : 1);
    {
      Process daemon = StartDaemon(folder, trigger.environment());
      EXPECT_EQ(daemon.Wait(kVisited), 128 + SIGKILL) << daemon.Errors();
      EXPECT_TRUE(trigger.fired()) << "not visited";
    }
    Process daemon = StartDaemon(folder, {});
    EXPECT_TRUE(Listens(daemon)) << daemon.Errors();
    daemon.Signal(SIGTERM);
    EXPECT_EQ(daemon.Wait(), 0) << daemon.Errors();
    EXPECT_EQ(Records(folder / "t.db"), made ? 0 : kRecordsOfFixture);
  }
  Report(schedule, static_cast<int>(schedule.size()));
}

// ---- pruning ----

// Beyond the least quota, by failed trials and by records of which one is the best.
constexpr int kTrials = 900, kBest = 500;
void FillBeyondQuota(const std::string& path) {
  const auto store = OpenSqliteStore(path, StoreMode::kWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  const uint64_t epoch = *(*store)->BeginEpoch();
  const TuningKey key = TestKey("conv2d_1");
  std::vector<Write> writes = TestGround();
  for (int i = 1; i <= kTrials; ++i) {
    const std::string trace = absl::StrCat("trace ", i, std::string(2000, 't'));
    const bool failed = i % 3 == 0 && i != kBest;
    const double us = i == kBest ? 5 : 10 + i;
    const v1::OutcomeKind kind = failed ? v1::OUTCOME_CRASH : v1::OUTCOME_OK;
    writes.push_back(PutTrial{TestTrial(static_cast<uint64_t>(i), key, 1, trace, TrialState::kDone, kind, us)});
    MeasurementRow measurement{
        .trial = static_cast<uint64_t>(i), .attempt = 1, .epoch = 1, .worker = "w", .outcome = {}};
    measurement.outcome.set_kind(kind);
    writes.push_back(AddMeasurement{measurement});
    if (failed) continue;
    writes.push_back(PutRecord{TestRecord(key, trace, us)});
    if (i == kBest) writes.push_back(SetBest{key, RecordId(key, trace), us});
  }
  ASSERT_TRUE((*store)->Commit(epoch, writes).ok());
}

int64_t Number(const std::string& path, const std::string& sql) {
  const auto connection = SqliteConnection::Open(path, SqliteConnection::Mode::kRead);
  EXPECT_TRUE(connection.ok()) << connection.status();
  const absl::StatusOr<int64_t> number = (*connection)->Number(sql);
  EXPECT_TRUE(number.ok()) << number.status();
  return number.value_or(-1);
}

// Whole, with its best record, and nothing left of what has gone.
void ExpectWhole(const std::string& path) {
  EXPECT_EQ(Number(path, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
  EXPECT_EQ(Number(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
  EXPECT_EQ(Number(path, "SELECT count(*) FROM best b JOIN record r ON r.id = b.record WHERE r.median_us = 5"), 1);
  EXPECT_EQ(Number(path, "SELECT count(*) FROM measurement WHERE trial NOT IN (SELECT id FROM trial)"), 0);
  EXPECT_EQ(Number(path, "SELECT max(id) FROM trial"), kTrials) << "its number may be given to another";
}

TEST(CrashMatrix, APruneThatIsCutShortIsFinishedByTheNext) {
  const std::vector<std::string> schedule = Schedule(Activity::kPrune);
  const TempFolder filled;
  FillBeyondQuota(filled / "t.db");
  for (size_t i = 0; i < schedule.size(); ++i) {
    SCOPED_TRACE(schedule[i]);
    const TempFolder folder;
    fs::copy_file(filled / "t.db", folder / "t.db");
    const auto start = [&](const std::map<std::string, std::string>& environment) {
      return Process(folder, "honed",
                     {"--db", folder / "t.db", "--listen", "unix:" + (folder / "s"), "--max-database-bytes", "1M"},
                     environment);
    };
    Trigger trigger(folder, schedule[i], IsOf(schedule[i], {"quota.planned"}) ? 1 : 1 + static_cast<int64_t>(i % 2));
    {
      Process daemon = start(trigger.environment());
      EXPECT_EQ(daemon.Wait(kVisited), 128 + SIGKILL) << daemon.Errors();
      EXPECT_TRUE(trigger.fired()) << "not visited";
    }
    Process daemon = start({});
    EXPECT_TRUE(
        WaitUntil([&] { return daemon.Errors().find("that are no best ones left") != std::string::npos; }, kVisited))
        << daemon.Errors();
    daemon.Signal(SIGTERM);
    EXPECT_EQ(daemon.Wait(), 0) << daemon.Errors();
    ExpectWhole(folder / "t.db");
  }
  Report(schedule, static_cast<int>(schedule.size()));
}

// ---- working ----

TEST(CrashMatrix, NothingIsLostOrDoubledWhileJobsRun) {
  const std::vector<std::string> schedule = Schedule(Activity::kJob);
  World world;
  std::mt19937_64 random(1);
  for (const std::string& point : schedule) {
    SCOPED_TRACE(point);
    // What happens once in the life of a process is not waited for again.
    const bool once = IsOf(point, {"worker.start", "worker.greeted", "spool.locked", "spool.read", "fleet.hello",
                                   "write.device_class", "search.start"});
    // The cost model is stored once it has learnt from enough trials, and of a job's last ones no search hears: that is
    // waited for once.
    const bool of_model = IsOf(point, {"writer.model", "write.cost_model"});
    const int trials = of_model ? 40 : 4;
    Trigger trigger(world.folder(), point, once || of_model ? 1 : 1 + static_cast<int64_t>(random() % 3));
    world.Arm(&trigger, HostOf(point));
    EXPECT_TRUE(world.WorkUntilFired(trigger, trials, kVisited)) << "not visited";
    // The visit is counted before the process ends: one on its way out is not to be taken for one that serves.
    Process& host = HostOf(point) == World::Host::kWorker ? world.worker() : world.daemon();
    EXPECT_TRUE(!EndsHost(point) || WaitUntil([&] { return !host.running(); }, kVisited)) << "fired, and still runs";
    if (HasFatalFailure()) return;
  }
  world.FinishJobs();
  world.CheckDatabase();
  Report(schedule, world.kills());
}

// ---- stopping ----

TEST(CrashMatrix, NothingIsLostByAStopThatIsCutShort) {
  const std::vector<std::string> schedule = Schedule(Activity::kStop);
  World world;
  for (const std::string& point : schedule) {
    SCOPED_TRACE(point);
    Trigger trigger(world.folder(), point, 1);
    const World::Host host = HostOf(point);
    world.Arm(&trigger, host);
    if (world.OpenJobs() == 0) world.Submit(6);
    Process& process = host == World::Host::kWorker ? world.worker() : world.daemon();
    EXPECT_TRUE(WaitUntil(
        [&] {
          return world.worker().Errors().find("trial has a result") != std::string::npos || world.OpenJobs() == 0;
        },
        kVisited));
    process.Signal(SIGTERM);
    EXPECT_EQ(process.Wait(kVisited), 128 + SIGKILL) << process.Errors();
    EXPECT_TRUE(trigger.fired()) << "not visited";
  }
  world.FinishJobs();
  world.CheckDatabase();
  Report(schedule, world.kills() + static_cast<int>(schedule.size()));
}

// ---- what clients ask for ----

// One command of a client's that is repeated until it succeeds, with a loss in its first run.
class Commands : public ::testing::Test {
 protected:
  Finished Run(Trigger& trigger, system_test::Arguments arguments) {
    arguments.insert(arguments.end(), {"--server", world_.address()});
    const bool of_client = absl::StartsWith(trigger.point(), "client.");
    world_.Arm(of_client ? nullptr : &trigger, of_client ? World::Host::kNone : World::Host::kDaemon);
    Process first(world_.folder(), "hone", arguments,
                  of_client ? trigger.environment() : std::map<std::string, std::string>());
    EXPECT_TRUE(WaitUntil([&] { return trigger.fired() || !first.running(); }, kVisited));
    EXPECT_TRUE(trigger.fired()) << "not visited: " << first.Errors();
    if (!of_client) {
      world_.daemon().Wait(kVisited);
      world_.Arm(nullptr, World::Host::kNone);
    }
    if (first.Wait(kVisited) == 0) return {0, first.Output(), first.Errors()};
    const Finished again = system_test::Hone(world_.folder(), arguments);
    EXPECT_EQ(again.code, 0) << again.errors;
    return again;
  }
  int ClaimedRecords() {
    const Finished list = system_test::Hone(world_.folder(), {"records", "list", "--json", "--db", world_.database()});
    return static_cast<int>(system_test::JsonLines(list.output).size());
  }

  World world_;
};

TEST_F(Commands, AreRepeatedAfterALoss) {
  const std::vector<std::string> schedule = Schedule(Activity::kCommand);
  const std::string lines = world_.folder() / "records.jsonl";
  {
    fs::copy_file(HONE_TEST_DATA "/database/fixtures/schema_1.db", world_.folder() / "old.db");
    const auto migrated = OpenSqliteStore(world_.folder() / "old.db", StoreMode::kWrite);
    ASSERT_TRUE(migrated.ok()) << migrated.status();
  }
  ASSERT_EQ(
      system_test::Hone(world_.folder(), {"records", "export", "--db", world_.folder() / "old.db", "-o", lines}).code,
      0);
  system_test::WriteAll(lines, system_test::ReadAll(lines) + ToJsonLine(CheckRecord{.record = 1}) + "\n");
  for (const std::string& point : schedule) {
    SCOPED_TRACE(point);
    Trigger trigger(world_.folder(), point, 1);
    if (IsOf(point, {"tune.import", "write.tenant", "write.check", "client.imported"})) {
      Run(trigger, {"records", "import", lines});
    } else if (IsOf(point, {"tune.export"})) {
      const Finished exported = Run(trigger, {"records", "export"});
      EXPECT_FALSE(exported.output.empty());
    } else if (IsOf(point, {"tune.stop", "tune.pause"})) {
      world_.Arm(nullptr, World::Host::kNone);
      const int job = world_.Submit(1000);
      ASSERT_GT(job, 0);
      const bool stop = IsOf(point, {"tune.stop"});
      Run(trigger, {"jobs", stop ? "stop" : "pause", std::to_string(job)});
      if (!stop) {
        EXPECT_EQ(
            system_test::Hone(world_.folder(), {"jobs", "stop", std::to_string(job), "--server", world_.address()})
                .code,
            0);
      }
      EXPECT_TRUE(WaitUntil([&] { return world_.StateOf(job) == 4; }, kVisited)) << world_.StateOf(job);
      world_.AcknowledgeStop(job);
    } else {
      Run(trigger, {"tune", world_.NewModel(), "--trials", "2", "--threads", "1", "--json"});
    }
  }
  world_.FinishJobs();
  world_.CheckDatabase();
  EXPECT_GT(ClaimedRecords(), 0);
  Report(schedule, world_.kills() + static_cast<int>(schedule.size()));
}

}  // namespace
}  // namespace hone::crash_test
