// What must hold when everything has ended.
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "tests/tuner/dispatch/simulation/sim_parts.h"

namespace hone {

bool SimWorld::AllJobsEnded() const {
  for (const auto& client : clients_) {
    if (client->job == 0) return false;
    const auto row = store_.jobs().find(client->job);
    if (row == store_.jobs().end()) return false;
    if (IsOpen(row->second.state)) return false;
  }
  return dispatcher_ != nullptr && dispatcher_->Idle();
}

void SimWorld::CheckEnd() const {
  // Every candidate that was lent has ended, once, and is on the account of its task.
  std::map<uint64_t, std::pair<int64_t, int64_t>> by_task = pruned_;  // verified, failed
  std::set<std::pair<TuningKey, std::string>> tried;
  for (const auto& [id, trial] : store_.trials()) {
    HONE_CHECK(trial.state != TrialState::kLeased) << "trial " << id << " never ended";
    HONE_CHECK(trial.attempt >= 1 && trial.attempt <= 5) << "trial " << id;
    if (trial.duel || trial.state != TrialState::kDone) continue;
    HONE_CHECK(tried.emplace(trial.key, trial.trace).second) << "trial " << id << " repeats another";
    (trial.kind == v1::OUTCOME_OK ? by_task[trial.task].first : by_task[trial.task].second) += 1;
  }
  for (const auto& [id, task] : store_.tasks()) {
    int64_t failed = 0;
    for (const auto& [kind, count] : task.failed) failed += count;
    HONE_CHECK(task.trials == by_task[id].first && failed == by_task[id].second)
        << "task " << id << " says " << task.trials << " and " << failed << ", its trials say " << by_task[id].first
        << " and " << by_task[id].second;
  }
  for (const auto& [id, row] : store_.records()) {
    const double us = row.record.median_us(), truth = TrueTime(row.record.trace());
    // A record has the first word alone: what a liar measured first is recorded with the time that it said.
    const double least = faults_.liars > 0 ? 0.95 * 0.5 : 0.95;
    HONE_CHECK(us > least * truth && us < 1.05 * truth) << "record " << id << " is a lie: " << us << " for " << truth;
    HONE_CHECK(!IsPoison(row.record.trace()));
  }
  for (const auto& [key, best] : store_.best()) { HONE_CHECK(store_.records().at(best.first).key == key); }
  size_t jobs = 0;
  for (const auto& client : clients_) {
    jobs += 1 + static_cast<size_t>(client->request.parts_size());
    const JobRow& whole = store_.jobs().at(client->job);
    HONE_CHECK(whole.request.part_jobs_size() == client->request.parts_size()) << "job " << client->job;
  }
  HONE_CHECK(store_.jobs().size() == jobs) << store_.jobs().size() << " jobs of " << jobs;
  for (const auto& [id, row] : store_.jobs()) {
    int64_t trials = 0;
    for (const auto& [number, task] : store_.tasks()) trials += task.job == id ? task.trials : 0;
    HONE_CHECK(row.request.max_trials() == 0 || trials <= row.request.max_trials()) << "job " << id;
    HONE_CHECK((row.state == v1::JOB_STOPPED) == row.stop_requested) << "job " << id;
    HONE_CHECK(!IsOpen(row.state)) << "job " << id;
    for (const uint64_t part : row.request.part_jobs()) {
      HONE_CHECK(store_.jobs().at(part).request.part_of() == id) << "job " << id;
    }
  }
  for (const auto& [trace, deaths] : build_deaths_) {
    // Two losses that are noticed while somebody waits for the build are the end of it; others may have it meanwhile,
    // losses that nobody waits through are not counted, and a daemon that starts has to learn it again.
    HONE_CHECK(deaths <= 10 * starts_) << trace << " killed " << deaths << " builders";
  }
  for (const auto& [trial, deaths] : poison_deaths_) {
    HONE_CHECK(deaths <= DispatchOptions().max_attempts) << "trial " << trial << " killed " << deaths << " workers";
  }
}

std::string SimWorld::Describe() const {
  std::string text = absl::StrCat("at ", now_ / kSecond, " s, ", events_, " events, ", starts_, " daemon starts\n");
  if (dispatcher_ != nullptr) absl::StrAppend(&text, dispatcher_->DebugString());
  for (size_t i = 0; i < clients_.size(); ++i) absl::StrAppend(&text, "client ", i, " job ", clients_[i]->job, "\n");
  for (const auto& worker : workers_) {
    absl::StrAppend(&text, "worker ", worker->index, " up ", worker->up, " held ", SaidBy(*worker).held_size(),
                    " results ", SaidBy(*worker).results_size(), " working ", worker->working.has_value(), "\n");
  }
  return text;
}

}  // namespace hone
