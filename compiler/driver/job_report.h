// A job as people and programs read it: the progress line, the table of tasks, the JSON forms.
#pragma once

#include <string>

#include "hone/v1/tune.pb.h"
#include "nlohmann/json_fwd.hpp"

namespace hone {

// The model's time by the sum of its kernels': of the tasks that have both figures. 0 when nothing is measured.
struct EstimatedTimes {
  double default_ms = 0, best_ms = 0;
};
EstimatedTimes Estimate(const v1::JobSnapshot& job);

// "trials 120/500  31.2/s  best 12.31 ms (2.4x)  failed 3  left 41s", without a line feed.
std::string ProgressLine(const v1::JobSnapshot& job);
// A row a task: share, trials, default and best time, rate, how far from the lower bound.
std::string TaskTable(const v1::JobSnapshot& job);

// What `tune --json` prints last, without the assembled times. {"event":"result","job":...}
nlohmann::ordered_json ResultJson(const v1::JobSnapshot& job);
nlohmann::ordered_json ProgressJson(const v1::JobSnapshot& job);
std::string StateName(v1::JobState state);  // "running"

}  // namespace hone
