#include "compiler/driver/service/job_report.h"

#include <algorithm>
#include <vector>

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
  times.tasks = job.tasks_size();
  for (const v1::TaskSnapshot& task : job.tasks()) {
    if (task.best_us() <= 0) continue;
    const double best_ms = task.weight() * task.best_us() / 1e3;
    ++times.measured;
    times.model_ms += best_ms;
    if (task.default_us() <= 0) continue;
    times.default_ms += task.weight() * task.default_us() / 1e3;
    times.best_ms += best_ms;
  }
  return times;
}

v1::JobSnapshot Together(const v1::JobSnapshot& job, const std::vector<v1::JobSnapshot>& parts) {
  v1::JobSnapshot all = job;
  for (const v1::JobSnapshot& part : parts) {
    all.set_trials(all.trials() + part.trials());
    all.set_max_trials(all.max_trials() + part.max_trials());
    all.set_in_flight(all.in_flight() + part.in_flight());
    for (const auto& [kind, count] : part.failed()) (*all.mutable_failed())[kind] += count;
    all.mutable_tasks()->MergeFrom(part.tasks());
    all.set_seconds_since_gain(std::min(all.seconds_since_gain(), part.seconds_since_gain()));
    if (all.current_task().empty()) all.set_current_task(part.current_task());
  }
  return all;
}

std::string TrialsText(const v1::JobSnapshot& job) {
  return absl::StrCat("trials ", job.trials(), job.max_trials() > 0 ? absl::StrCat("/", job.max_trials()) : "");
}

std::string ProgressLine(const v1::JobSnapshot& job) {
  std::string line = TrialsText(job);
  const EstimatedTimes times = Estimate(job);
  if (times.tasks > 0) absl::StrAppendFormat(&line, "  tasks %d/%d", times.measured, times.tasks);
  if (times.whole()) {
    absl::StrAppendFormat(&line, "  best %.3f ms", times.model_ms);
    if (times.speed_up() > 0) absl::StrAppendFormat(&line, " (%.2fx)", times.speed_up());
  }
  if (const double left = SecondsLeft(job); left >= 0) absl::StrAppend(&line, "  left ", ShortDuration(left));
  if (times.measured > 0) absl::StrAppend(&line, "  gain ", ShortDuration(job.seconds_since_gain()), " ago");
  absl::StrAppendFormat(&line, "  %.1f/s", Rate(job));
  if (Failed(job) > 0) absl::StrAppend(&line, "  failed ", Failed(job));
  if (!job.current_task().empty()) absl::StrAppend(&line, "  ", job.current_task());
  return line;
}

std::string FirstPicks(const v1::JobSnapshot& job) {
  if (job.judged_batches() == 0) return "";
  return absl::StrFormat("first picks: draft %.0f %%, cost model %.0f %% of a batch's best (%d batches)",
                         100 * job.draft_top1(), 100 * job.model_top1(), job.judged_batches());
}

std::string TaskTable(const v1::JobSnapshot& job) {
  const double total_ms = Estimate(job).model_ms;
  std::vector<const v1::TaskSnapshot*> rows;
  for (const v1::TaskSnapshot& task : job.tasks()) rows.push_back(&task);
  const auto time_of = [](const v1::TaskSnapshot* task) { return task->weight() * task->best_us(); };
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) { return time_of(a) > time_of(b); });
  std::string table = absl::StrFormat("%6s %7s %7s %11s %11s %8s %9s %6s %-9s %s\n", "share", "weight", "trials",
                                      "default us", "best us", "speed-up", "GFLOP/s", "limit", "state", "task");
  for (const v1::TaskSnapshot* task : rows) {
    if (task->best_us() <= 0) {
      int64_t failed = 0;
      for (const auto& [kind, count] : task->failed()) failed += count;
      absl::StrAppendFormat(
          &table, "%6s %7.0f %7d %-58s %s\n", "-", task->weight(), task->trials(),
          failed > 0 ? absl::StrCat("   not measured: ", failed, " candidates failed") : "   not measured",
          task->name());
      continue;
    }
    const bool compared = task->default_us() > 0;
    absl::StrAppendFormat(
        &table, "%5.1f%% %7.0f %7d %11s %11.1f %8s %9.1f %6s %-9s %s\n", 100 * time_of(task) / 1e3 / total_ms,
        task->weight(), task->trials(), compared ? absl::StrFormat("%.1f", task->default_us()) : "-", task->best_us(),
        compared ? absl::StrFormat("%.2fx", task->default_us() / task->best_us()) : "-",
        task->flop() / task->best_us() / 1e3,
        task->lower_bound_us() > 0
            ? absl::StrFormat("%.0f%%", std::min(100.0, 100 * task->lower_bound_us() / task->best_us()))
            : "-",
        task->state(), task->name());
  }
  return table +
         "share: of the model's time; weight: how often it runs; trials: of this job; limit: how much is reached of "
         "what\n"
         "the machine can do; state: open, or why it is left alone (at_limit, stalled, exhausted)\n";
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
  return {
      {"event", "progress"},
      {"job", job.job_id()},
      {"state", StateName(job.state())},
      {"trials", job.trials()},
      {"failed", FailedJson(job)},
      {"in_flight", job.in_flight()},
      {"seconds", job.seconds()},
      {"tasks", times.tasks},
      {"tasks_measured", times.measured},
      {"task", job.current_task().empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(job.current_task())},
      {"best_ms", times.whole() ? nlohmann::ordered_json(times.model_ms) : nullptr},
      {"speed_up", OrNull(times.speed_up())},
      {"seconds_since_gain", job.seconds_since_gain()},
      {"seconds_left", SecondsLeft(job) >= 0 ? nlohmann::ordered_json(SecondsLeft(job)) : nullptr},
      {"waiting_for", job.held_up_by().empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(job.held_up_by())}};
}

nlohmann::ordered_json ResultJson(const v1::JobSnapshot& job) {
  nlohmann::ordered_json json = {{"event", "result"},
                                 {"job", job.job_id()},
                                 {"state", StateName(job.state())},
                                 {"reason", job.reason()},
                                 {"waiting_for", job.held_up_by()},
                                 {"trials", job.trials()},
                                 {"max_trials", job.max_trials()},
                                 {"failed", FailedJson(job)},
                                 {"in_flight", job.in_flight()},
                                 {"seconds", job.seconds()},
                                 {"search_seconds", job.search_seconds()},
                                 {"build_seconds", job.build_seconds()},
                                 {"verify_seconds", job.verify_seconds()},
                                 {"measure_seconds", job.measure_seconds()},
                                 {"trials_per_hour", Rate(job) * 3600},
                                 {"judged_batches", job.judged_batches()},
                                 {"draft_top1", OrNull(job.draft_top1())},
                                 {"model_top1", OrNull(job.model_top1())},
                                 {"target", job.target()},
                                 {"parts", job.part_jobs()},
                                 {"part_of", job.part_of() != 0 ? nlohmann::ordered_json(job.part_of()) : nullptr},
                                 {"missing_layers", job.missing_layers()}};
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
         {"state", task.state()},
         {"verified", task.record_id() != 0}});
  }
  json["tasks"] = std::move(tasks);
  return json;
}

}  // namespace hone
