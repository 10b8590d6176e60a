#include "tests/crash/world.h"

#include <signal.h>

#include <map>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "database/sqlite/sqlite_connection.h"
#include "gtest/gtest.h"
#include "hone/v1/common.pb.h"
#include "hone/v1/fleet.pb.h"
#include "hone/v1/tune.pb.h"
#include "tests/system/tiny_model.h"
#include "tuner/dispatch/events/options.h"

namespace hone::crash_test {

using system_test::Finished;
using system_test::Json;
using system_test::Process;
using system_test::WaitUntil;

namespace {

constexpr double kStarts = 60;   // seconds in which a program on a loaded machine has started
constexpr double kPatience = 6;  // for the visit that was drawn; then the next one will do

// A connection of its own for every look: one that stays open would spare the next daemon the recovery of the log.
std::unique_ptr<SqliteConnection> Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<SqliteConnection>> connection =
      SqliteConnection::Open(path, SqliteConnection::Mode::kRead);
  EXPECT_TRUE(connection.ok()) << connection.status();
  return connection.ok() ? *std::move(connection) : nullptr;
}

std::unique_ptr<SqlQuery> Query(SqliteConnection& connection, const std::string& sql) {
  absl::StatusOr<std::unique_ptr<SqlQuery>> query = connection.Prepare(sql);
  EXPECT_TRUE(query.ok()) << query.status();
  return query.ok() ? *std::move(query) : nullptr;
}

std::string HowItIs(Process& process, const char* name) {
  return process.running() ? absl::StrCat(name, " runs") : absl::StrCat(name, " ended with ", process.Wait());
}

bool Next(SqlQuery& query) {
  const absl::StatusOr<bool> row = query.Next();
  EXPECT_TRUE(row.ok()) << row.status();
  return row.ok() && *row;
}

}  // namespace

World::World() {
  StartDaemon(nullptr);
  StartWorker(nullptr);
}

void World::StartDaemon(const Trigger* trigger) {
  daemon_ = std::make_unique<Process>(
      folder_, "honed",
      system_test::Arguments{"--db", database(), "--listen", address(), "--lease", "1", "--searches", "1"},
      trigger == nullptr ? std::map<std::string, std::string>() : trigger->environment());
  EXPECT_TRUE(WaitUntil(
      [&] { return daemon_->Output().find("listening on") != std::string::npos || !daemon_->running(); }, kStarts));
  EXPECT_TRUE(daemon_->running() || (trigger != nullptr && trigger->fired())) << daemon_->Errors();
}

// The device is taken for what its core usually is, since to probe it takes longer than a job does here.
void World::StartWorker(const Trigger* trigger) {
  worker_ = std::make_unique<Process>(
      folder_, "hone-worker",
      system_test::Arguments{"--server", address(), "--threads", "1", "--spool", folder_ / "spool", "--target",
                             "cpu:native", "--runner", HONE_BIN "/hone-runner", "--verbose", "--log-format", "json"},
      trigger == nullptr ? std::map<std::string, std::string>() : trigger->environment());
  read_ = 0;
}

void World::Arm(const Trigger* trigger, Host host) {
  const auto end = [&](std::unique_ptr<Process>& process) {
    if (process->running()) ++kills_;
    process->Signal(SIGKILL);
    process->Wait();
  };
  const bool at_daemon = host == Host::kDaemon, at_worker = host == Host::kWorker;
  if (at_worker) end(worker_);
  if (at_daemon) end(daemon_);
  CheckAcknowledged();  // before another daemon may lend again what this one had lent
  if (!daemon_->running()) StartDaemon(at_daemon ? trigger : nullptr);
  if (!worker_->running()) StartWorker(at_worker ? trigger : nullptr);
}

std::string World::NewModel() {
  const int64_t rows = 2 + models_ % 16, in = 16 + models_ / 16, out = 24;
  ++models_;
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("one");
  system_test::SetType(*graph.add_input(), "x", {rows, in});
  system_test::SetType(*graph.add_output(), "y", {rows, out});
  system_test::AddInitializer(graph, "w", {in, out}, std::vector<float>(static_cast<size_t>(in * out), 0.5f));
  system_test::AddNode(graph, "MatMul", {"x", "w"}, "y");
  const std::string path = folder_ / absl::StrCat("model", models_, ".onnx");
  system_test::Save(model, path);
  return path;
}

int World::Submit(int trials) {
  BeginSubmit(trials);
  client_->Wait(kStarts);
  return TakeSubmitted();
}

void World::BeginSubmit(int trials) {
  client_ = std::make_unique<Process>(folder_, "hone",
                                      system_test::Arguments{"tune", NewModel(), "--server", address(), "--trials",
                                                             absl::StrCat(trials), "--threads", "1", "--detach"});
}

int World::TakeSubmitted() {
  int job = 0;
  const bool told = client_->Wait() == 0 && absl::SimpleAtoi(client_->Output(), &job);
  client_ = nullptr;
  if (told) jobs_.insert(job);
  return told ? job : 0;
}

void World::KeepJobsOpen(int trials) {
  if (client_ != nullptr && !client_->running()) TakeSubmitted();
  if (client_ == nullptr && OpenJobs() == 0) BeginSubmit(trials);
}

bool World::WorkUntilFired(Trigger& trigger, int trials, double seconds) {
  const auto over = [&] {
    CheckAcknowledged();
    if (!trigger.fired()) KeepJobsOpen(trials);
    return trigger.fired() || !daemon_->running() || !worker_->running();
  };
  if (!WaitUntil(over, kPatience)) trigger.FireAtNextVisit();
  WaitUntil(over, seconds);
  EXPECT_TRUE(trigger.fired() || (daemon_->running() && worker_->running()))
      << "ended by itself, before " << trigger.point() << ": " << HowItIs(*daemon_, "honed") << ", "
      << HowItIs(*worker_, "hone-worker") << "\n"
      << daemon_->Errors() << worker_->Errors().substr(0, 4000);
  if (trigger.fired()) ++kills_;
  return trigger.fired();
}

void World::FinishJobs() {
  EXPECT_TRUE(WaitUntil(
      [&] {
        Arm(nullptr, Host::kNone);
        if (client_ != nullptr && !client_->running()) TakeSubmitted();
        return client_ == nullptr && OpenJobs() == 0;
      },
      120))
      << OpenJobs() << " jobs do not end\n"
      << daemon_->Errors() << worker_->Errors().substr(0, 4000);
}

void World::CheckAcknowledged() {
  const std::string log = worker_->Errors();
  const std::unique_ptr<SqliteConnection> connection = Open(database());
  if (connection == nullptr) return;
  for (size_t end; (end = log.find('\n', read_)) != std::string::npos; read_ = end + 1) {
    const Json line = Json::parse(log.substr(read_, end - read_), nullptr, false);
    if (!line.is_object() || line.value("message", "") != "result is acknowledged") continue;
    const Token token(line.at("trial"), line.at("attempt"), line.at("epoch"));
    const auto [trial, attempt, epoch] = token;
    const std::unique_ptr<SqlQuery> query =
        Query(*connection,
              "SELECT t.state, t.attempt, t.epoch, (SELECT count(*) FROM measurement m WHERE m.trial = t.id AND "
              "m.attempt = ? AND m.epoch = ?) FROM trial t WHERE t.id = ?");
    query->Int(attempt).Int(epoch).Int(trial);
    if (!Next(*query)) {
      ADD_FAILURE() << "trial " << trial << " is acknowledged, and is not there";
      continue;
    }
    // Of an attempt that was superseded nothing is kept: then the trial has another lease or has ended.
    const bool superseded = query->GetInt(0) != 1 || query->GetInt(1) != attempt || query->GetInt(2) != epoch;
    if (query->GetInt(3) == 1) durable_.insert(token);
    EXPECT_TRUE(query->GetInt(3) == 1 || superseded)
        << "the result of trial " << trial << ", attempt " << attempt << " is acknowledged, and is not there";
  }
}

void World::CheckDatabase() {
  CheckAcknowledged();
  worker_->Signal(SIGKILL);
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0) << daemon_->Errors();
  const std::unique_ptr<SqliteConnection> connection = Open(database());
  ASSERT_NE(connection, nullptr);
  const std::unique_ptr<SqlQuery> check = Query(*connection, "PRAGMA integrity_check");
  EXPECT_TRUE(Next(*check));
  EXPECT_EQ(check->GetText(0), "ok");
  for (const auto& [trial, attempt, epoch] : durable_) {
    EXPECT_EQ(Number(absl::StrCat("SELECT count(*) FROM measurement WHERE trial = ", trial, " AND attempt = ", attempt,
                                  " AND epoch = ", epoch)),
              1)
        << "an acknowledged result is lost";
  }
  for (const int job : jobs_) EXPECT_NE(StateOf(job), 0) << "job " << job << " was acknowledged, and is lost";
  for (const int job : stopped_) EXPECT_EQ(StateOf(job), v1::JOB_STOPPED) << job;
  CheckTrials();
  CheckCounts();
}

// Every trial ends once: of its attempts the last alone has an outcome that is a result. What is quarantined, since so
// many workers were lost under it, and what was given up after so many attempts, has no result.
void World::CheckTrials() const {
  const std::unique_ptr<SqliteConnection> connection = Open(database());
  const std::unique_ptr<SqlQuery> query =
      Query(*connection,
            "SELECT t.id, t.state, t.kind, t.lost_workers, t.attempt, m.outcome FROM trial t LEFT JOIN measurement m "
            "ON m.trial = t.id");
  std::map<int64_t, int> results;
  while (Next(*query)) {
    const int64_t trial = query->GetInt(0), kind = query->GetInt(2);
    EXPECT_NE(query->GetInt(1), 1) << "trial " << trial << " is lent and no job is open";
    if (query->GetInt(1) != 2) continue;
    if (kind == v1::OUTCOME_CRASH && query->GetInt(3) >= DispatchOptions().quarantine_after) continue;
    if (kind == v1::OUTCOME_INFRA && query->GetInt(4) >= DispatchOptions().max_attempts) continue;
    v1::Outcome outcome;
    EXPECT_TRUE(outcome.ParseFromString(query->GetText(5)));
    results[trial] += outcome.kind() == kind ? 1 : 0;
    if (outcome.kind() == kind) continue;
    EXPECT_TRUE(outcome.kind() == v1::OUTCOME_INFRA || outcome.kind() == v1::OUTCOME_CANCELLED)
        << "trial " << trial << " had a result before it was tried again";
  }
  for (const auto& [trial, count] : results) EXPECT_GE(count, 1) << "trial " << trial << " ended without a result";
  EXPECT_EQ(Number("SELECT count(*) FROM (SELECT 1 FROM measurement GROUP BY trial, attempt HAVING count(*) > 1)"), 0);
}

// What jobs count is what there is.
void World::CheckCounts() const {
  EXPECT_EQ(
      Number("SELECT count(*) FROM task k WHERE k.trials <> (SELECT count(*) FROM trial t WHERE t.task = k.id AND "
             "t.state = 2 AND t.kind = 1 AND t.duel = 0)"),
      0)
      << "tasks count other trials than there are";
  EXPECT_EQ(
      Number("SELECT count(*) FROM record WHERE origin = 'tuned'"),
      Number("SELECT count(*) FROM (SELECT DISTINCT key, trace FROM trial WHERE state = 2 AND kind = 1 AND duel = "
             "0)"))
      << "records are lost or there twice";
  EXPECT_EQ(Number("SELECT count(*) FROM (SELECT 1 FROM trial WHERE duel = 0 AND state <> 3 GROUP BY key, trace HAVING "
                   "count(*) > 1)"),
            0)
      << "a candidate was measured twice";
  EXPECT_EQ(Number("SELECT count(*) FROM job WHERE state IN (1, 2)"), 0);
}

int World::OpenJobs() const { return static_cast<int>(Number("SELECT count(*) FROM job WHERE state IN (1, 2)")); }

int World::StateOf(int job) const {
  return static_cast<int>(Number(absl::StrCat("SELECT coalesce(max(state), 0) FROM job WHERE id = ", job)));
}

int64_t World::Number(const std::string& sql) const {
  const std::unique_ptr<SqliteConnection> connection = Open(database());
  if (connection == nullptr) return -1;
  const std::unique_ptr<SqlQuery> query = Query(*connection, sql);
  return query != nullptr && Next(*query) ? query->GetInt(0) : -1;
}

}  // namespace hone::crash_test
