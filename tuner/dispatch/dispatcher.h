// Every rule of the tuning service: which candidate is lent to whom, when a lease ends, what a result means, where the
// next trials go, when a job has ended. A deterministic state machine: the same events at the same times give the same
// effects, on any machine, so that a simulation runs hours of fleet life in milliseconds and a failing seed is the bug
// report.
//
// Rules, each in its file: key_state.h (candidates, what is known of a key, champion and duels), lease_table.h (leases,
// attempts, quarantine), task_scheduler.h (where the next batch goes), job_state.h (budgets and accounts),
// outcome_check.h (what a worker may claim), roofline.h (the limit of a kernel). A reply that promises something leaves
// only after the commit that makes it true.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tuner/dispatch/events/counts.h"
#include "tuner/dispatch/events/events.h"
#include "tuner/dispatch/events/options.h"

namespace hone {

class Dispatcher {
 public:
  // `epoch` from TuningStore::BeginEpoch, `state` from LoadState: an empty state for a new database. The first event is
  // Start.
  Dispatcher(const DispatchOptions& options, uint64_t epoch, StoredState state);
  ~Dispatcher();

  std::vector<Effect> Step(Micros now, Event event);

  // ---- views, for look-ups and tests; they change nothing ----
  bool HasJob(uint64_t job) const;  // ended jobs are forgotten once their end is committed: ask the store
  bool HasJob(uint64_t tenant, uint64_t job) const;
  v1::JobSnapshot Snapshot(uint64_t job, bool with_tasks = true) const;
  // By number, those above `after`, in the time of what is returned.
  std::vector<uint64_t> Jobs(uint64_t tenant, uint64_t after = 0, size_t most = SIZE_MAX) const;
  std::vector<v1::WorkerInfo> Workers(uint64_t tenant, Micros now) const;
  // Of a job that is there. Its snapshot is as Snapshot gives it.
  v1::JobExplanation Explain(uint64_t job) const;
  FleetCounts Counts() const;                 // of all tenants
  FleetCounts Counts(uint64_t tenant) const;  // of one
  const DispatchCounters& counters() const;
  const v1::Workload* FindWorkload(uint64_t tenant, const std::string& hash) const;  // of an open job of the tenant
  uint64_t JobOfTask(uint64_t task) const;                                           // 0: of no open job
  uint64_t TaskOfTrial(uint64_t trial) const;                                        // 0: it has ended
  bool Idle() const;                                                                 // no job of a user's waits or runs
  void CheckInvariants() const;  // ends the process when one does not hold
  std::string DebugString() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone
