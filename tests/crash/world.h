// A daemon and a worker that lose processes again and again, the jobs they work on, and what must hold nevertheless:
//   - what was acknowledged is in the database: a result before its worker forgets it, a job before its client is told;
//   - nothing is there twice: a trial ends once, is counted once, makes one record;
//   - every job ends.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "tests/crash/crash_points.h"
#include "tests/system/harness.h"

namespace hone::crash_test {

class World {
 public:
  World();

  const system_test::TempFolder& folder() const { return folder_; }
  std::string address() const { return "unix:" + (folder_ / "s"); }
  std::string database() const { return folder_ / "tuning.db"; }

  // Starts what has ended; what hosts the trigger's point is ended first, where it runs, and started under the trigger.
  enum class Host { kNone, kDaemon, kWorker };
  void Arm(const Trigger* trigger, Host host);
  // Keeps jobs open, of so many trials each, until `trigger` has fired; false after that long.
  bool WorkUntilFired(Trigger& trigger, int trials, double seconds);
  // Has all jobs end, without further losses.
  void FinishJobs();
  // Ends the daemon in order and holds the database against all that is promised.
  void CheckDatabase();

  // A job on a kernel of its own, without waiting for it. Its number; 0 when the client was not told of one.
  int Submit(int trials);
  std::string NewModel();
  void AcknowledgeStop(int job) { stopped_.insert(job); }
  system_test::Process& daemon() { return *daemon_; }
  system_test::Process& worker() { return *worker_; }
  int OpenJobs() const;
  int StateOf(int job) const;  // 0: no such job
  int kills() const { return kills_; }

 private:
  using Token = std::tuple<int64_t, int64_t, int64_t>;  // trial, attempt, epoch
  void StartDaemon(const Trigger* trigger);
  void StartWorker(const Trigger* trigger);
  // A client that is on its way when the daemon is lost asks the next one, and must not make two jobs of its request.
  void BeginSubmit(int trials);
  int TakeSubmitted();
  void KeepJobsOpen(int trials);
  void CheckAcknowledged();  // what the worker was told since the last look
  void CheckTrials() const;
  void CheckCounts() const;
  int64_t Number(const std::string& sql) const;

  system_test::TempFolder folder_;
  std::unique_ptr<system_test::Process> daemon_, worker_, client_;
  size_t read_ = 0;  // of the worker's log
  std::set<Token> durable_;
  std::set<int> jobs_, stopped_;  // acknowledged
  int models_ = 0, kills_ = 0;
};

}  // namespace hone::crash_test
