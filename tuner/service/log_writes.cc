// What the dispatcher decided, as lines of the log: jobs for all, leases and results for who wants to see all.
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/log/log.h"
#include "tuner/service/core.h"

namespace hone {
namespace {

using spdlog::level::debug;

std::string Lower(const std::string& name, const char* prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

}  // namespace

void Core::LogWrites(const std::vector<Write>& writes) {
  const bool all = spdlog::should_log(debug);
  for (const Write& write : writes) {
    if (const PutJob* put = std::get_if<PutJob>(&write)) {
      const std::pair<bool, v1::JobState> state{put->row.request.paused(), put->row.state};
      if (std::exchange(told_state_[put->row.id], state) == state) continue;
      const std::string word = state.first ? "paused" : Lower(v1::JobState_Name(state.second), "JOB_");
      LogFact(spdlog::level::info, "job is " + word, {{"job", put->row.id}, {"reason", put->row.reason}});
      if (!IsOpen(put->row.state)) told_state_.erase(put->row.id);
    } else if (const PutTrial* trial = all ? std::get_if<PutTrial>(&write) : nullptr) {
      const TrialRow& row = trial->row;
      const char* what = row.state == TrialState::kLeased ? "lent"
                         : row.state == TrialState::kDone ? "ended"
                                                          : "dropped";
      LogFact(debug, absl::StrCat("trial is ", what),
              {{"job", dispatcher_->JobOfTask(row.task)},
               {"task", row.task},
               {"trial", row.id},
               {"attempt", uint64_t{row.attempt}},
               {"epoch", row.epoch},
               {"source", row.source}});
    } else if (const AddMeasurement* added = all ? std::get_if<AddMeasurement>(&write) : nullptr) {
      LogFact(debug, "trial has a result",
              {{"trial", added->row.trial},
               {"attempt", uint64_t{added->row.attempt}},
               {"epoch", added->row.epoch},
               {"worker", added->row.worker},
               {"outcome", Lower(v1::OutcomeKind_Name(added->row.outcome.kind()), "OUTCOME_")},
               {"us", added->row.outcome.timing().median_us()}});
    }
  }
}

}  // namespace hone
