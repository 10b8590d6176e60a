// A job as people and programs read it: the progress line, the table of tasks, the JSON forms.
#pragma once

#include <string>
#include <vector>

#include "hone/v1/tune.pb.h"
#include "nlohmann/json_fwd.hpp"

namespace hone {

// The model's time by the sum of its kernels'.
struct EstimatedTimes {
  int tasks = 0, measured = 0;  // measured: those that have a best time
  // Of the tasks measured with their default schedule too: what the ratio of the two says.
  double default_ms = 0, best_ms = 0;
  double model_ms = 0;  // of all tasks with a best time: the model's once `measured` is `tasks`, and never less before
  bool whole() const { return tasks > 0 && measured == tasks; }
  double speed_up() const { return best_ms > 0 ? default_ms / best_ms : 0; }  // 0: not known
};
EstimatedTimes Estimate(const v1::JobSnapshot& job);

// A job with its parts as one: trials, limits, failures and tasks of all; what holds it up and how long it takes is the
// job's own account.
v1::JobSnapshot Together(const v1::JobSnapshot& job, const std::vector<v1::JobSnapshot>& parts);

// "trials 120/500  tasks 12/48  best 12.310 ms (2.40x)  left 41s  gain 12s ago  31.2/s  failed 3  conv2d_3x3", without
// a line feed; what matters least comes last, for it is cut off first. The model's time appears when every task has
// been measured, so that it never rises.
std::string ProgressLine(const v1::JobSnapshot& job);
// "trials 120/500": what the job's own trials came to.
std::string TrialsText(const v1::JobSnapshot& job);
// "first picks: draft 71 %, cost model 93 % of a batch's best (14 batches)": how fast the candidate that each put first
// was, the fastest of its batch being 100 %. Empty while no batch was judged.
std::string FirstPicks(const v1::JobSnapshot& job);
// A row a task, the largest share of the model's time first, and what the columns mean.
std::string TaskTable(const v1::JobSnapshot& job);

// What `tune --json` prints last, without the assembled times. {"event":"result","job":...}
nlohmann::ordered_json ResultJson(const v1::JobSnapshot& job);
nlohmann::ordered_json ProgressJson(const v1::JobSnapshot& job);
std::string StateName(v1::JobState state);  // "running"

}  // namespace hone
