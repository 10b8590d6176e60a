// What the dispatcher decided, as lines of the log. For all: jobs, and of trials what went wrong and what is tried
// again. For who wants to see all: what goes well. A line about a trial has its job, task, trial and attempt as fields.
#include "tuner/service/core/log_writes.h"

#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "compiler/log/log.h"
#include "tuner/dispatch/events/reporter.h"
#include "tuner/service/core/core.h"

namespace hone {
namespace {

using spdlog::level::debug;
using spdlog::level::info;

std::string Lower(const std::string& name, const char* prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

// What a worker says is a line, whatever it has in it.
std::string FirstLine(const std::string& text) { return text.substr(0, text.find_first_of("\r\n")); }

// `measured`: the line of its result says how it ended.
void LogTrial(const TrialRow& row, const Dispatcher& dispatcher, bool measured) {
  const bool again = row.state == TrialState::kLeased && row.attempt > 1;
  const bool failed = row.state == TrialState::kDone && row.kind != v1::OUTCOME_OK && !measured;
  const auto level = again || failed ? info : debug;
  if (!spdlog::should_log(level)) return;
  const char* what = again                              ? "trial is lent again"
                     : row.state == TrialState::kLeased ? "trial is lent"
                     : failed                           ? "trial is given up"
                     : row.state == TrialState::kDone   ? "trial is ended"
                                                        : "trial is dropped";
  LogFact(level, what,
          {{"job", dispatcher.JobOfTask(row.task)},
           {"task", row.task},
           {"trial", row.id},
           {"attempt", uint64_t{row.attempt}},
           {"epoch", row.epoch},
           {"source", row.source},
           {"lost_workers", uint64_t{row.lost_workers}}});
}

spdlog::level::level_enum LevelOf(const MeasurementRow& row) {
  return row.outcome.kind() == v1::OUTCOME_OK ? debug : info;
}

void LogResult(const MeasurementRow& row, uint64_t task, uint64_t job) {
  const Reporter who = ReporterFromText(row.worker);
  LogFact(LevelOf(row), "trial has a result",
          {{"job", job},
           {"task", task},
           {"trial", row.trial},
           {"attempt", uint64_t{row.attempt}},
           {"epoch", row.epoch},
           {"worker", who.worker},
           {"principal", who.principal},
           {"outcome", Lower(v1::OutcomeKind_Name(row.outcome.kind()), "OUTCOME_")},
           {"us", row.outcome.timing().median_us()},
           {"detail", FirstLine(row.outcome.detail())}});
}

}  // namespace

void LogTakenBack(const LeaseTakenBack& lease) {
  LogFact(info, "lease is taken back",
          {{"job", lease.job},
           {"task", lease.task},
           {"trial", lease.trial},
           {"attempt", uint64_t{lease.attempt}},
           {"epoch", lease.epoch},
           {"worker", lease.worker},
           {"why", lease.worker_was_lost  ? "its worker was lost, or took longer than it may"
                   : lease.worker.empty() ? "no worker came back with it"
                                          : "its worker gave it back"}});
}

void Core::LogJob(const JobRow& row) {
  const std::pair<bool, v1::JobState> state{row.request.paused(), row.state};
  if (std::exchange(told_state_[row.id], state) == state) return;
  const std::string word = state.first ? "paused" : Lower(v1::JobState_Name(state.second), "JOB_");
  LogFact(info, "job is " + word, {{"job", row.id}, {"reason", row.reason}});
  if (!IsOpen(row.state)) told_state_.erase(row.id);
}

void Core::LogWrites(const std::vector<Write>& writes) {
  // Of the trials whose results are lines here: the dispatcher forgets some of them.
  std::map<uint64_t, uint64_t> task_of;
  for (const Write& write : writes) {
    const AddMeasurement* added = std::get_if<AddMeasurement>(&write);
    if (added != nullptr && spdlog::should_log(LevelOf(added->row)))
      task_of[added->row.trial] = dispatcher_->TaskOfTrial(added->row.trial);
  }
  for (const Write& write : writes) {
    if (const PutJob* put = std::get_if<PutJob>(&write)) {
      LogJob(put->row());
    } else if (const PutTrial* trial = std::get_if<PutTrial>(&write)) {
      const TrialRow& row = trial->row;
      const auto result = task_of.find(row.id);
      if (result != task_of.end()) result->second = row.task;
      LogTrial(row, *dispatcher_, result != task_of.end());
    } else if (const AddMeasurement* added = std::get_if<AddMeasurement>(&write)) {
      const auto task = task_of.find(added->row.trial);
      if (task == task_of.end()) continue;
      LogResult(added->row, task->second, dispatcher_->JobOfTask(task->second));
    }
  }
}

}  // namespace hone
