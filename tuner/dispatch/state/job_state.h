// One job while it waits or runs: its rows, its tasks, its clock, its accounts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "database/store/rows.h"
#include "tuner/dispatch/events/events.h"
#include "tuner/dispatch/events/options.h"
#include "tuner/dispatch/state/fleet_index.h"
#include "tuner/dispatch/state/key_state.h"

namespace hone {

inline constexpr int kMostPriority = 8;  // and the least is its negative
inline constexpr int kMostParts = 64;

struct Job {
  JobRow row;
  JobKind kind;                                                // what the row says of the workers that fit: MakeKind
  std::vector<TaskRow> tasks;                                  // in the order of the request, their ids rise
  std::map<std::string, std::vector<size_t>> tasks_of_anchor;  // of those that have one
  // Of a bound job: the key of each task, the tasks of each key (by its number), how many keys' histories are missing.
  std::vector<KeyState*> keys;
  std::map<uint64_t, std::vector<size_t>> tasks_of_key;
  int not_loaded = 0;
  mutable size_t open_task = 0;      // that was last seen to go on: looked at first
  bool limits_agreed = false;        // the facts that they follow from were agreed when it was bound in this process
  int64_t verified = 0, failed = 0;  // trials of all its tasks
  Micros clock = 0;                  // row.seconds and the seconds waited are right as of then
  Micros progress_saved = 0;         // when its row was last written for its accounts alone
  Micros last_gain = 0;              // when a champion changed, or it came to this process
  v1::HoldUp hold_up = v1::HOLD_UP_NONE;
  std::string held_up_by;
  Micros held_up_since = 0;
  std::string worker_fault;  // of the latest result: the worker's machine failed, not the candidate
  bool ending = false;       // no new trials; ends when those under work have
  std::string end_reason;
  std::map<uint64_t, int> last_duels_lost;  // by key, since it is ending: to a champion that stayed
  bool ended = false;                       // its last commit is on its way
  std::set<uint64_t> open_parts;            // jobs that are parts of it, until their end is durable: it ends after them
  double virtual_seconds = 0;               // device time charged, divided by its share: the job with the least is next
  double busy_before = 0;                   // row.busy_seconds at the start of this process
  std::map<uint64_t, double> busy_by_worker;
  double busiest = 0;                 // of these
  std::set<uint64_t> to_check;        // of one that checks records: keys, by number, whose best one it has not yet
  std::optional<double> asks_within;  // it may want candidates: where it stands among those that do

  // Brings the job's seconds up to `now`, those it was paused left out, and what the present hold-up took of them.
  void Advance(Micros now) { AdvanceRow(now, &row), clock = now; }
  // The same of a copy of its row.
  void AdvanceRow(Micros now, JobRow* copy) const;
  JobKind MakeKind() const;
  // Of the workers, as against a job of priority 0. A job of a low priority that waits is charged nothing, so its turn
  // comes however many others there are: priorities age by themselves (start-time fair queueing, Goyal et al. 1996).
  double share() const;
  // Of a bound job: the key of a task, the tuning key it has or will have, its first task of a key.
  KeyState& KeyOf(const TaskRow& task) const { return *keys.at(static_cast<size_t>(&task - tasks.data())); }
  TuningKey TuningKeyOf(const TaskRow& task) const;
  const TaskRow* TaskOf(const KeyState& key) const;        // nullptr: it has none
  const std::string& AnchorOf(const TaskRow& task) const;  // the request's word for what it is at heart; "": none
  std::vector<const TaskRow*> SiblingsOf(const TaskRow& task) const;  // the others with the same anchor
  TaskRow& TaskOfId(uint64_t id);                                     // that must be its
  bool bound() const { return !row.device_class.empty(); }
  bool checks_records() const { return !row.request.checked_against().empty(); }
  bool loaded() const { return bound() && not_loaded == 0; }  // all histories are there
};

// A request's part as a request of its own: what is not stated by the part is the whole's, its name for Submit
// included.
v1::SubmitRequest PartOf(const v1::SubmitRequest& whole, const v1::SubmitPart& part);
// What the whole is called for Submit, and which of its parts it is, from 1. No client may choose such a name.
std::string PartRequestId(const v1::SubmitRequest& whole, int number);

// Whether a request can ever work, with all its parts: InvalidArgument names the part, the task and the field.
absl::Status CheckSubmit(const v1::SubmitRequest& request);

// "open", "at_limit", "stalled" or "exhausted".
std::string TaskStateOf(const KeyState& key, double lower_bound_us, const DispatchOptions& options);

v1::TaskSnapshot MakeTaskSnapshot(const TaskRow& row);
// From the rows alone, as for a job that has ended; what lives (in_flight, workers, target) the caller adds.
v1::JobSnapshot MakeJobSnapshot(const JobRow& row, const std::vector<TaskRow>& tasks, bool with_tasks);

}  // namespace hone
