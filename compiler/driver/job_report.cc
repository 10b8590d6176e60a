#include "compiler/driver/job_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/driver/duration.h"
#include "nlohmann/json.hpp"

namespace hone {
namespace {

int64_t Failed(const v1::JobSnapshot& job) {
  int64_t total = 0;
  for (const auto& [kind, count] : job.failed()) total += count;
  return total;
}

double Rate(const v1::JobSnapshot& job) {
  return job.seconds() > 0 ? static_cast<double>(job.trials()) / job.seconds() : 0;
}

// Whichever limit comes first; negative when there is none.
double SecondsLeft(const v1::JobSnapshot& job) {
  double left = -1;
  if (job.max_seconds() > 0) left = std::max(0.0, job.max_seconds() - job.seconds());
  if (job.max_trials() > 0 && Rate(job) > 0) {
    const double by_trials = static_cast<double>(std::max<int64_t>(0, job.max_trials() - job.trials())) / Rate(job);
    left = left < 0 ? by_trials : std::min(left, by_trials);
  }
  return left;
}

nlohmann::ordered_json FailedJson(const v1::JobSnapshot& job) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  std::map<std::string, int64_t> sorted(job.failed().begin(), job.failed().end());
  for (const auto& [kind, count] : sorted) json[kind] = count;
  return json;
}

nlohmann::ordered_json OrNull(double value) {
  return value > 0 ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

}  // namespace

EstimatedTimes Estimate(const v1::JobSnapshot& job) {
  EstimatedTimes times;
  for (const v1::TaskSnapshot& task : job.tasks()) {
    if (task.default_us() <= 0 || task.best_us() <= 0) continue;
    times.default_ms += task.weight() * task.default_us() / 1e3;
    times.best_ms += task.weight() * task.best_us() / 1e3;
  }
  return times;
}

std::string ProgressLine(const v1::JobSnapshot& job) {
  std::string line = absl::StrCat("trials ", job.trials());
  if (job.max_trials() > 0) absl::StrAppend(&line, "/", job.max_trials());
  absl::StrAppendFormat(&line, "  %.1f/s", Rate(job));
  if (const EstimatedTimes times = Estimate(job); times.best_ms > 0) {
    absl::StrAppendFormat(&line, "  best %.3f ms (%.2fx)", times.best_ms, times.default_ms / times.best_ms);
  }
  if (Failed(job) > 0) absl::StrAppend(&line, "  failed ", Failed(job));
  if (job.state() == v1::JOB_WAITING) absl::StrAppend(&line, "  waiting: ", job.reason());
  if (const double left = SecondsLeft(job); left >= 0) absl::StrAppend(&line, "  left ", ShortDuration(left));
  return line;
}

std::string TaskTable(const v1::JobSnapshot& job) {
  const double total_ms = Estimate(job).best_ms;
  std::string table = absl::StrFormat("%6s %7s %7s %11s %11s %8s %9s %7s  %s\n", "share", "weight", "trials",
                                      "default us", "best us", "speed-up", "GFLOP/s", "limit", "task");
  for (const v1::TaskSnapshot& task : job.tasks()) {
    const bool known = task.best_us() > 0;
    const double share = known && total_ms > 0 ? task.weight() * task.best_us() / 1e3 / total_ms : 0;
    absl::StrAppendFormat(&table, "%5.1f%% %7.0f %7d %11.1f %11.1f %7.2fx %9.1f %6.0f%%  %s\n", share * 100,
                          task.weight(), task.trials(), task.default_us(), task.best_us(),
                          known && task.default_us() > 0 ? task.default_us() / task.best_us() : 1.0,
                          known ? task.flop() / task.best_us() / 1e3 : 0.0,
                          known ? 100 * task.lower_bound_us() / task.best_us() : 0.0, task.name());
  }
  return table;
}

std::string StateName(v1::JobState state) {
  switch (state) {
    case v1::JOB_WAITING: return "waiting";
    case v1::JOB_RUNNING: return "running";
    case v1::JOB_DONE: return "done";
    case v1::JOB_STOPPED: return "stopped";
    case v1::JOB_FAILED: return "failed";
    default: return "unknown";
  }
}

nlohmann::ordered_json ProgressJson(const v1::JobSnapshot& job) {
  const EstimatedTimes times = Estimate(job);
  return {{"event", "progress"},
          {"job", job.job_id()},
          {"state", StateName(job.state())},
          {"trials", job.trials()},
          {"failed", FailedJson(job)},
          {"in_flight", job.in_flight()},
          {"seconds", job.seconds()},
          {"best_ms", OrNull(times.best_ms)},
          {"speed_up", times.best_ms > 0 ? nlohmann::ordered_json(times.default_ms / times.best_ms) : nullptr}};
}

nlohmann::ordered_json ResultJson(const v1::JobSnapshot& job) {
  nlohmann::ordered_json json = {{"event", "result"},
                                 {"job", job.job_id()},
                                 {"state", StateName(job.state())},
                                 {"trials", job.trials()},
                                 {"failed", FailedJson(job)},
                                 {"seconds", job.seconds()},
                                 {"search_seconds", job.search_seconds()},
                                 {"build_seconds", job.build_seconds()},
                                 {"verify_seconds", job.verify_seconds()},
                                 {"measure_seconds", job.measure_seconds()},
                                 {"trials_per_hour", Rate(job) * 3600}};
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (const v1::TaskSnapshot& task : job.tasks()) {
    const bool known = task.best_us() > 0;
    tasks.push_back(
        {{"name", task.name()},
         {"weight", task.weight()},
         {"flop", task.flop()},
         {"trials", task.trials()},
         {"default_us", OrNull(task.default_us())},
         {"best_us", OrNull(task.best_us())},
         {"gflops", known ? nlohmann::ordered_json(task.flop() / task.best_us() / 1e3) : nullptr},
         {"lower_bound_us", OrNull(task.lower_bound_us())},
         {"record", task.record_id() != 0 ? nlohmann::ordered_json(std::to_string(task.record_id())) : nullptr},
         {"verified", task.record_id() != 0}});
  }
  json["tasks"] = std::move(tasks);
  return json;
}

}  // namespace hone
