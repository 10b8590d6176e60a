#include "tuner/dispatch/state/job_state.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/support/check.h"
#include "compiler/support/sha256.h"
#include "compiler/support/status_macros.h"

namespace hone {

void Job::AdvanceRow(Micros now, JobRow* copy) const {
  if (now <= clock) return;
  const double seconds = static_cast<double>(now - clock) * 1e-6;
  if (!row.request.paused()) copy->seconds += seconds;
  if (hold_up == v1::HOLD_UP_NONE) return;
  const std::string name = absl::AsciiStrToLower(absl::StripPrefix(v1::HoldUp_Name(hold_up), "HOLD_UP_"));
  (*copy->request.mutable_waited_seconds())[name] += seconds;
}

double Job::share() const { return std::exp2(row.request.priority()); }

JobKind Job::MakeKind() const {
  return {.tenant = row.tenant,
          .device_class = row.device_class,
          .protocol = row.protocol,
          .threads = bound() ? row.threads : row.request.threads(),
          .target = row.request.target()};
}

TuningKey Job::TuningKeyOf(const TaskRow& task) const {
  return TuningKey{.tenant = row.tenant,
                   .workload_hash = task.workload_hash,
                   .device_class = row.device_class,
                   .threads = row.threads,
                   .numeric = row.request.numeric(),
                   .protocol = row.protocol};
}

const TaskRow* Job::TaskOf(const KeyState& key) const {
  const auto found = tasks_of_key.find(key.number);
  return found == tasks_of_key.end() ? nullptr : &tasks[found->second.front()];
}

const std::string& Job::AnchorOf(const TaskRow& task) const {
  static const std::string kNone;
  const auto& anchors = row.request.anchors();
  return task.index < anchors.size() ? anchors[task.index] : kNone;
}

std::vector<const TaskRow*> Job::SiblingsOf(const TaskRow& task) const {
  std::vector<const TaskRow*> siblings;
  const auto found = tasks_of_anchor.find(AnchorOf(task));
  if (found == tasks_of_anchor.end()) return siblings;
  for (const size_t at : found->second) {
    if (tasks[at].id != task.id) siblings.push_back(&tasks[at]);
  }
  return siblings;
}

TaskRow& Job::TaskOfId(uint64_t id) {
  const auto found = std::ranges::lower_bound(tasks, id, {}, &TaskRow::id);
  HONE_CHECK(found != tasks.end() && found->id == id) << "task " << id << " of job " << row.id;
  return *found;
}

v1::SubmitRequest PartOf(const v1::SubmitRequest& whole, const v1::SubmitPart& part) {
  v1::SubmitRequest request = whole;
  request.clear_parts();
  request.clear_plan();  // of the first part's kernels
  request.set_target(part.target());
  request.set_threads(part.threads());
  *request.mutable_tasks() = part.tasks();
  *request.mutable_anchors() = part.anchors();
  return request;
}

std::string PartRequestId(const v1::SubmitRequest& whole, int number) {
  return absl::StrCat(whole.request_id(), "\n", number);
}

absl::Status CheckSubmit(const v1::SubmitRequest& request) {
  const auto invalid = [](const auto&... parts) { return absl::InvalidArgumentError(absl::StrCat(parts...)); };
  if (request.request_id().empty() || request.request_id().size() > 256) {
    return invalid("submit: request_id has ", request.request_id().size(), " bytes; 1 to 256 are allowed");
  }
  if (absl::StrContains(request.request_id(), '\n')) return invalid("submit: request_id has a line feed");
  if (request.parts_size() > kMostParts) {
    return invalid("submit: ", request.parts_size(), " parts; at most ", kMostParts, " are allowed");
  }
  if (request.numeric() == v1::NUMERIC_LEVEL_UNSPECIFIED || !v1::NumericLevel_IsValid(request.numeric())) {
    return invalid("submit: numeric level ", static_cast<int>(request.numeric()),
                   " is not known; use strict, default or bf16");
  }
  if (request.threads() < 0 || request.threads() > 4096) {
    return invalid("submit: threads is ", request.threads(), "; 0 (all of the worker's) to 4096 are allowed");
  }
  if (request.max_trials() < 0) return invalid("submit: max_trials is ", request.max_trials(), ", below 0");
  if (!std::isfinite(request.max_seconds()) || request.max_seconds() < 0) {
    return invalid("submit: max_seconds is ", request.max_seconds(), "; a number not below 0 is needed");
  }
  if (std::abs(int64_t{request.priority()}) > kMostPriority) {
    return invalid("submit: priority is ", request.priority(), "; ", -kMostPriority, " to ", kMostPriority,
                   " are allowed");
  }
  if (!v1::SearchStrategy_IsValid(request.strategy())) {
    return invalid("submit: search strategy ", static_cast<int>(request.strategy()),
                   " is not known to this daemon; use model, random or draft");
  }
  if (request.anchors_size() != 0 && request.anchors_size() != request.tasks_size()) {
    return invalid("submit: ", request.anchors_size(), " anchors for ", request.tasks_size(),
                   " tasks; one for each, or none");
  }
  if (request.tasks_size() == 0) return invalid("submit: the job has no tasks");
  if (request.tasks_size() > 100'000)
    return invalid("submit: ", request.tasks_size(), " tasks; at most 100000 are allowed");
  for (int i = 0; i < request.tasks_size(); ++i) {
    const v1::TaskSpec& task = request.tasks(i);
    const std::string where = absl::StrCat("submit: task ", i, " (", task.workload().name(), "): ");
    if (task.workload().text().empty()) return invalid(where, "its workload has no text");
    if (Sha256(task.workload().text()) != task.workload().hash()) {
      return invalid(where, "the hash is not that of the workload's text");
    }
    for (const double number :
         {task.weight(), task.workload().flop(), task.workload().bytes(), task.workload().least_flop()}) {
      if (!std::isfinite(number) || number < 0) return invalid(where, "weight, flop, bytes or least_flop is ", number);
    }
  }
  for (const v1::SubmitPart& part : request.parts()) {
    HONE_RETURN_IF_ERROR(Annotate(CheckSubmit(PartOf(request, part)), absl::StrCat("part for ", part.target())));
  }
  return absl::OkStatus();
}

std::string TaskStateOf(const KeyState& key, double lower_bound_us, const DispatchOptions& options) {
  // A bound that was beaten by more than noise is none: the peaks were measured on a machine that was busy.
  const double of_bound = lower_bound_us > 0 ? key.best_us() / lower_bound_us : 0;
  if (of_bound >= 1 - options.limit_noise && of_bound <= 1 + options.limit_margin) return "at_limit";
  if (key.exhausted) return "exhausted";
  if (key.verified() > 0 && key.trials_since_gain() >= options.stall_trials) return "stalled";
  if (key.verified() == 0 && key.trials_since_gain() >= options.hopeless_failures) return "stalled";
  return "open";
}

v1::TaskSnapshot MakeTaskSnapshot(const TaskRow& row) {
  v1::TaskSnapshot snapshot;
  snapshot.set_task_id(row.id);
  snapshot.set_name(row.name);
  snapshot.set_workload_hash(row.workload_hash);
  snapshot.set_weight(row.weight);
  snapshot.set_flop(row.flop);
  snapshot.set_bytes(row.bytes);
  snapshot.set_trials(row.trials);
  for (const auto& [kind, count] : row.failed) (*snapshot.mutable_failed())[kind] = count;
  snapshot.set_default_us(row.default_us);
  snapshot.set_best_us(row.best_us);
  snapshot.set_lower_bound_us(row.lower_bound_us);
  snapshot.set_record_id(row.record);
  snapshot.set_state(row.state);
  return snapshot;
}

v1::JobSnapshot MakeJobSnapshot(const JobRow& row, const std::vector<TaskRow>& tasks, bool with_tasks) {
  v1::JobSnapshot snapshot;
  snapshot.set_job_id(row.id);
  snapshot.set_state(row.state);
  snapshot.set_reason(row.reason);
  snapshot.set_model_name(row.request.model_name());
  snapshot.set_threads(row.threads > 0 ? row.threads : row.request.threads());
  snapshot.set_numeric(row.request.numeric());
  snapshot.set_max_trials(row.request.max_trials());
  snapshot.set_max_seconds(row.request.max_seconds());
  snapshot.set_seconds(row.seconds);
  snapshot.set_search_seconds(std::max(0.0, row.seconds - row.busy_seconds));
  snapshot.set_build_seconds(row.build_seconds);
  snapshot.set_verify_seconds(row.verify_seconds);
  snapshot.set_measure_seconds(row.measure_seconds);
  snapshot.set_device_class(row.device_class);
  snapshot.set_target(row.request.target());
  snapshot.set_created(row.created);
  *snapshot.mutable_missing_layers() = row.request.missing_layers();
  snapshot.set_paused(row.request.paused());
  snapshot.set_priority(row.request.priority());
  *snapshot.mutable_waited_seconds() = row.request.waited_seconds();
  snapshot.set_part_of(row.request.part_of());
  *snapshot.mutable_part_jobs() = row.request.part_jobs();
  snapshot.set_judged_batches(row.judged_batches);
  if (row.judged_batches > 0) {
    const double batches = static_cast<double>(row.judged_batches);
    snapshot.set_draft_top1(row.draft_first / batches);
    snapshot.set_model_top1(row.model_first / batches);
  }
  int64_t trials = 0;
  for (const TaskRow& task : tasks) {
    trials += task.trials;
    for (const auto& [kind, count] : task.failed) (*snapshot.mutable_failed())[kind] += count;
    if (with_tasks) *snapshot.add_tasks() = MakeTaskSnapshot(task);
  }
  snapshot.set_trials(trials);
  return snapshot;
}

}  // namespace hone
