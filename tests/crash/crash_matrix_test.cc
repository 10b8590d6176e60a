// Processes of a small service are ended at every crash point that the sources name, and started again (world.h: what
// must hold). Points are taken in rounds: in the first one at their first visit, in the second one at their second, and
// so on; where so many visits do not come, at one that does. Two rounds are 200 losses; more are for campaigns:
//   HONE_CRASHES=3000 crash_tests
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "database/sqlite/sqlite_connection.h"
#include "database/sqlite/sqlite_store.h"
#include "database/store/record_json.h"
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
  return asked != nullptr ? std::atoi(asked) : 200;
}

struct Loss {
  std::string point;
  int64_t visit = 1;  // that is wanted
};
constexpr int64_t kVisits = 4;  // of which each is wanted in turn

// The points of one activity, each as often as the others and once at least, and `AllCrashes` in all activities
// together.
std::vector<Loss> Schedule(Activity activity) {
  const std::vector<std::string> all = CrashPoints();
  std::vector<std::string> points;
  std::copy_if(all.begin(), all.end(), std::back_inserter(points),
               [&](const std::string& point) { return ActivityOf(point) == activity; });
  const int64_t crashes = AllCrashes(), in_a_round = static_cast<int64_t>(all.size());
  const int64_t rounds = std::max<int64_t>(1, (crashes + in_a_round - 1) / in_a_round);
  std::vector<Loss> schedule;
  std::mt19937_64 random(static_cast<uint64_t>(activity));
  for (int64_t round = 0; round < rounds; ++round) {
    std::shuffle(points.begin(), points.end(), random);
    for (const std::string& point : points) schedule.push_back({point, 1 + round % kVisits});
  }
  return schedule;
}

// At which visits the points were taken: what is wanted comes at most of them.
class Report {
 public:
  void Add(const Trigger& trigger) {
    ++losses_;
    ++visits_[trigger.point()][trigger.visit()];
  }
  int losses() const { return losses_; }
  // `kills`: with those that no trigger made.
  void Print(const std::vector<Loss>& schedule, int kills) const {
    size_t wanted_later = 0, later = 0;
    for (const Loss& loss : schedule) wanted_later += loss.visit > 1;
    for (const auto& [point, visits] : visits_) {
      std::printf("  %-28s", point.c_str());
      for (const auto& [visit, times] : visits) {
        std::printf("  %d at visit %d", times, static_cast<int>(visit));
        later += visit > 1 ? static_cast<size_t>(times) : 0;
      }
      std::printf("\n");
    }
    std::printf("%zu points, %d losses\n", visits_.size(), kills);
    EXPECT_TRUE(wanted_later == 0 || later > 0) << "no point was taken at a later visit";
  }

 private:
  std::map<std::string, std::map<int64_t, int>> visits_;
  int losses_ = 0;
};

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

using Environment = std::map<std::string, std::string>;

// How a daemon comes by a point: it is started on what `prepare` puts in its folder, up to `starts` times one after the
// other, and has come by when `passed` says so or it has ended.
struct Passage {
  std::function<void(const TempFolder&)> prepare;
  std::vector<std::string> options;
  std::function<bool(Process&)> passed;
  int starts = 1;
};

std::unique_ptr<Process> StartDaemon(const TempFolder& folder, const Passage& passage, const Environment& environment) {
  std::vector<std::string> arguments = {"--db", folder / "t.db", "--listen", "unix:" + (folder / "s")};
  arguments.insert(arguments.end(), passage.options.begin(), passage.options.end());
  return std::make_unique<Process>(folder, "honed", arguments, environment);
}

bool Passes(Process& daemon, const Passage& passage) {
  return WaitUntil([&] { return !daemon.running() || passage.passed(daemon); }, kVisited);
}

// What a daemon leaves that is lost as `loss` says or, where fewer visits come, at the last one that does. nullptr when
// none comes.
std::unique_ptr<TempFolder> Lose(const Loss& loss, const Passage& passage, Report& report) {
  for (int64_t visit = loss.visit; visit > 0;) {
    auto folder = std::make_unique<TempFolder>();
    passage.prepare(*folder);
    Trigger trigger(*folder, loss.point, visit);
    for (int start = 0; start < passage.starts && !trigger.fired(); ++start) {
      const std::unique_ptr<Process> daemon = StartDaemon(*folder, passage, trigger.environment());
      EXPECT_TRUE(Passes(*daemon, passage)) << daemon->Errors();
      daemon->Signal(SIGTERM);
      const int code = daemon->Wait(kVisited);
      EXPECT_EQ(code, trigger.fired() ? 128 + SIGKILL : 0) << daemon->Errors();
    }
    if (trigger.fired()) {
      report.Add(trigger);
      return folder;
    }
    visit = trigger.visits();
  }
  ADD_FAILURE() << "not visited";
  return nullptr;
}

// The next daemon there comes by and ends in order.
void ExpectStartsAgain(const TempFolder& folder, const Passage& passage) {
  const std::unique_ptr<Process> daemon = StartDaemon(folder, passage, {});
  EXPECT_TRUE(Passes(*daemon, passage) && daemon->running()) << daemon->Errors();
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait(), 0) << daemon->Errors();
}

bool Listens(Process& daemon) { return daemon.Output().find("listening on") != std::string::npos; }

int Records(const std::string& path) {
  const auto store = OpenSqliteStore(path, StoreMode::kRead);
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) return -1;
  const auto page = (*store)->Records(kLocalTenant, {});
  EXPECT_TRUE(page.ok() && page->corrupt == 0) << page.status();
  return page.ok() ? static_cast<int>(page->rows.size()) : -1;
}

TEST(CrashMatrix, ADaemonThatIsLostAsItStartsStartsAgain) {
  const std::vector<Loss> schedule = Schedule(Activity::kStart);
  const std::string oldest = HONE_TEST_DATA "/database/fixtures/schema_1.db";
  Report report;
  for (const Loss& loss : schedule) {
    SCOPED_TRACE(absl::StrCat(loss.point, ", visit ", loss.visit));
    const bool made = IsOf(loss.point, {"sqlite.create."});
    const Passage passage = {.prepare =
                                 [&](const TempFolder& folder) {
                                   if (!made) fs::copy_file(oldest, folder / "t.db");
                                 },
                             .options = {},
                             .passed = Listens,
                             .starts = 2};
    const std::unique_ptr<TempFolder> folder = Lose(loss, passage, report);
    if (folder == nullptr) continue;
    ExpectStartsAgain(*folder, passage);
    EXPECT_EQ(Records(*folder / "t.db"), made ? 0 : kRecordsOfFixture);
  }
  report.Print(schedule, report.losses());
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
  const std::vector<Loss> schedule = Schedule(Activity::kPrune);
  const TempFolder filled;
  FillBeyondQuota(filled / "t.db");
  const Passage passage = {
      .prepare = [&](const TempFolder& folder) { fs::copy_file(filled / "t.db", folder / "t.db"); },
      .options = {"--max-database-bytes", "1M"},
      .passed =
          [](Process& daemon) { return daemon.Errors().find("that are no best ones left") != std::string::npos; }};
  Report report;
  for (const Loss& loss : schedule) {
    SCOPED_TRACE(absl::StrCat(loss.point, ", visit ", loss.visit));
    // The last of a few steps would leave nothing to the next daemon.
    const std::unique_ptr<TempFolder> folder = Lose({loss.point, std::min<int64_t>(loss.visit, 2)}, passage, report);
    if (folder == nullptr) continue;
    ExpectStartsAgain(*folder, passage);
    ExpectWhole(*folder / "t.db");
  }
  report.Print(schedule, report.losses());
}

// ---- working ----

TEST(CrashMatrix, NothingIsLostOrDoubledWhileJobsRun) {
  const std::vector<Loss> schedule = Schedule(Activity::kJob);
  World world;
  Report report;
  for (const auto& [point, visit] : schedule) {
    SCOPED_TRACE(absl::StrCat(point, ", visit ", visit));
    // The cost model is stored once it has learnt from enough trials, and of a job's last ones no search hears: that is
    // waited for once.
    const bool of_model = IsOf(point, {"writer.model", "write.cost_model"});
    Trigger trigger(world.folder(), point, of_model ? 1 : visit);
    world.Arm(&trigger, HostOf(point));
    // What happens once in the life of its host happens again in the next one.
    const bool once = IsOf(
        point, {"worker.start", "worker.greeted", "spool.locked", "spool.read", "fleet.hello", "write.device_class"});
    for (int64_t life = 1; once && life < visit; ++life) {
      EXPECT_TRUE(WaitUntil([&] { return trigger.visits() >= life; }, kVisited)) << "not visited";
      world.Arm(&trigger, HostOf(point));
    }
    EXPECT_TRUE(world.WorkUntilFired(trigger, of_model ? 40 : 4, kVisited)) << "not visited";
    // The visit is counted before the process ends: one on its way out is not to be taken for one that serves.
    Process& host = HostOf(point) == World::Host::kWorker ? world.worker() : world.daemon();
    EXPECT_TRUE(!EndsHost(point) || WaitUntil([&] { return !host.running(); }, kVisited)) << "fired, and still runs";
    report.Add(trigger);
    if (::testing::Test::HasFatalFailure()) return;
  }
  world.FinishJobs();
  world.CheckDatabase();
  report.Print(schedule, world.kills());
}

// ---- stopping ----

TEST(CrashMatrix, NothingIsLostByAStopThatIsCutShort) {
  const std::vector<Loss> schedule = Schedule(Activity::kStop);
  World world;
  Report report;
  for (const Loss& loss : schedule) {
    SCOPED_TRACE(absl::StrCat(loss.point, ", visit ", loss.visit));
    Trigger trigger(world.folder(), loss.point, loss.visit);
    const World::Host host = HostOf(loss.point);
    // Stop after stop, until one is cut short.
    for (int64_t seen = -1; !trigger.fired() && seen < trigger.visits();) {
      seen = trigger.visits();
      world.Arm(&trigger, host);
      if (world.OpenJobs() == 0) world.Submit(6);
      Process& process = host == World::Host::kWorker ? world.worker() : world.daemon();
      EXPECT_TRUE(WaitUntil(
          [&] {
            return world.worker().Errors().find("trial has a result") != std::string::npos || world.OpenJobs() == 0;
          },
          kVisited));
      process.Signal(SIGTERM);
      const int code = process.Wait(kVisited);
      EXPECT_EQ(code, trigger.fired() ? 128 + SIGKILL : 0) << process.Errors();
    }
    EXPECT_TRUE(trigger.fired()) << "not visited";
    report.Add(trigger);
  }
  world.FinishJobs();
  world.CheckDatabase();
  report.Print(schedule, world.kills() + report.losses());
}

// ---- what clients ask for ----

// A command of a client's, as often as it takes for a loss to come, and once more where it has failed by it.
class Commands : public ::testing::Test {
 protected:
  using MakeArguments = std::function<system_test::Arguments()>;

  // What the last run printed. `make` gives the arguments of a run.
  Finished Run(Trigger& trigger, const MakeArguments& make) {
    const bool of_client = absl::StartsWith(trigger.point(), "client.");
    world_.Arm(of_client ? nullptr : &trigger, of_client ? World::Host::kNone : World::Host::kDaemon);
    for (int64_t seen = -1; seen < trigger.visits();) {
      seen = trigger.visits();
      system_test::Arguments arguments = make();
      arguments.insert(arguments.end(), {"--server", world_.address()});
      Process run(world_.folder(), "hone", arguments, of_client ? trigger.environment() : Environment());
      EXPECT_TRUE(WaitUntil([&] { return trigger.fired() || !run.running(); }, kVisited));
      if (trigger.fired()) return AfterLoss(of_client, run, arguments);
      EXPECT_EQ(run.Wait(), 0) << run.Errors();
    }
    ADD_FAILURE() << "not visited";
    return {};
  }

  int ClaimedRecords() {
    const Finished list = system_test::Hone(world_.folder(), {"records", "list", "--json", "--db", world_.database()});
    return static_cast<int>(system_test::JsonLines(list.output).size());
  }

  // A job of many trials, so that it does not end by itself, which `verb` is said to.
  void RunOnJobs(Trigger& trigger, const std::string& verb) {
    std::vector<std::string> jobs;
    Run(trigger, [&] {
      jobs.push_back(std::to_string(world_.Submit(1000)));
      return system_test::Arguments{"jobs", verb, jobs.back()};
    });
    for (const std::string& job : jobs) {
      if (verb != "stop") {
        EXPECT_EQ(system_test::Hone(world_.folder(), {"jobs", "stop", job, "--server", world_.address()}).code, 0);
      }
      const int number = std::stoi(job);
      EXPECT_TRUE(WaitUntil([&] { return world_.StateOf(number) == 4; }, kVisited)) << world_.StateOf(number);
      world_.AcknowledgeStop(number);
    }
  }

  World world_;

 private:
  Finished AfterLoss(bool of_client, Process& run, const system_test::Arguments& arguments) {
    if (!of_client) {
      world_.daemon().Wait(kVisited);
      world_.Arm(nullptr, World::Host::kNone);
    }
    if (run.Wait(kVisited) == 0) return {0, run.Output(), run.Errors()};
    const Finished again = system_test::Hone(world_.folder(), arguments);
    EXPECT_EQ(again.code, 0) << again.errors;
    return again;
  }
};

TEST_F(Commands, AreRepeatedAfterALoss) {
  const std::vector<Loss> schedule = Schedule(Activity::kCommand);
  Report report;
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
  for (const auto& [point, visit] : schedule) {
    SCOPED_TRACE(absl::StrCat(point, ", visit ", visit));
    Trigger trigger(world_.folder(), point, visit);
    if (IsOf(point, {"tune.import", "write.tenant", "write.check", "client.imported"})) {
      Run(trigger, [&] { return system_test::Arguments{"records", "import", lines}; });
    } else if (IsOf(point, {"tune.export"})) {
      EXPECT_FALSE(Run(trigger, [] { return system_test::Arguments{"records", "export"}; }).output.empty());
    } else if (IsOf(point, {"tune.stop"})) {
      RunOnJobs(trigger, "stop");
    } else if (IsOf(point, {"tune.pause"})) {
      RunOnJobs(trigger, "pause");
    } else {
      Run(trigger, [&] {
        return system_test::Arguments{"tune", world_.NewModel(), "--trials", "2", "--threads", "1", "--json"};
      });
    }
    report.Add(trigger);
  }
  world_.FinishJobs();
  world_.CheckDatabase();
  EXPECT_GT(ClaimedRecords(), 0);
  report.Print(schedule, world_.kills() + report.losses());
}

}  // namespace
}  // namespace hone::crash_test
