// One job while it waits or runs: its rows, its tasks, its clock, its accounts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "database/rows.h"
#include "tuner/dispatch/events.h"
#include "tuner/dispatch/key_state.h"
#include "tuner/dispatch/options.h"

namespace hone {

struct Job {
  JobRow row;
  std::vector<TaskRow> tasks;  // in the order of the request
  bool lent = false;           // something of it was, ever
  Micros clock = 0;            // row.seconds is right as of then
  Micros last_gain = 0;        // when a champion changed, or it came to this process
  v1::HoldUp hold_up = v1::HOLD_UP_NONE;
  std::string held_up_by;
  Micros held_up_since = 0;
  Micros waits_counted = 0;  // row.request.waited_seconds is right as of then
  std::string worker_fault;  // of the latest result: the worker's machine failed, not the candidate
  bool ending = false;       // no new trials; ends when those under work have
  std::string end_reason;
  bool ended = false;          // its last commit is on its way
  double virtual_seconds = 0;  // device time charged, for fairness between jobs
  double busy_before = 0;      // row.busy_seconds at the start of this process
  std::map<uint64_t, double> busy_by_worker;

  // Brings row.seconds up to `now`: the time it was paused is left out.
  void Advance(Micros now);
  // The same for the seconds that the present hold-up takes.
  void CountWait(Micros now);
  // Of a bound job: the key of its task, and its first task of a key, nullptr when it has none.
  TuningKey KeyOf(const TaskRow& task) const;
  const TaskRow* TaskOf(const TuningKey& key) const;
  bool bound() const { return !row.device_class.empty(); }
};

// Whether a request can ever work: InvalidArgument names the task and the field.
absl::Status CheckSubmit(const v1::SubmitRequest& request);

// "open", "at_limit", "stalled" or "exhausted".
std::string TaskStateOf(const KeyState& key, double lower_bound_us, const DispatchOptions& options);

v1::TaskSnapshot MakeTaskSnapshot(const TaskRow& row);
// From the rows alone, as for a job that has ended; what lives (in_flight, workers, target) the caller adds.
v1::JobSnapshot MakeJobSnapshot(const JobRow& row, const std::vector<TaskRow>& tasks, bool with_tasks);

}  // namespace hone
