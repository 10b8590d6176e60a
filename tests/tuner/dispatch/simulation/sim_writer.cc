// The daemon's writer, as StoreWriter carries it out in its thread, and a store that fails.
#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "compiler/support/check.h"
#include "tests/tuner/dispatch/simulation/sim_parts.h"

namespace hone {

void SimWorld::WakeWriter(Micros delay) {
  writer_busy_ = true;
  At(now_ + delay, [this, incarnation = incarnation_] {
    if (incarnation == incarnation_) WriterTurn();
  });
}

void SimWorld::WriterTurn() {
  const uint64_t incarnation = incarnation_;
  const LoadHistory* load = to_write_.empty() ? nullptr : std::get_if<LoadHistory>(&to_write_.front());
  if (writing_.empty() && load != nullptr) {
    if (random_.Chance(faults_.broken_store)) return KillDaemon();
    const TuningKey key = load->key;
    to_write_.pop_front();
    ToDaemon(HistoryLoaded{key, *store_.LoadHistory(key)});
  } else {
    const absl::Status status = WriteGroup();
    if (absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) return WakeWriter(kSecond);
    if (!status.ok()) return KillDaemon();
    if (random_.Chance(faults_.prune)) PruneSome();
    // It may die after it is durable and before anybody hears of it.
    if (random_.Chance(faults_.daemon_crash)) return KillDaemon();
    for (const Commit& commit : std::exchange(writing_, {})) {
      ToDaemon(Committed{commit.id});
      if (incarnation != incarnation_) return;
    }
  }
  if (incarnation != incarnation_) return;
  writer_busy_ = false;
  if (!to_write_.empty()) WakeWriter(300 + random_.Below(5'000));
}

// Everything up to the next load is one transaction, and stays one while it is tried again.
absl::Status SimWorld::WriteGroup() {
  if (writing_.empty()) {
    written_ = false;
    while (!to_write_.empty() && std::holds_alternative<Commit>(to_write_.front())) {
      writing_.push_back(std::get<Commit>(std::move(to_write_.front())));
      to_write_.pop_front();
    }
    if (random_.Chance(faults_.full_disk)) disk_full_until_ = now_ + random_.Below(30 * kSecond);
  }
  if (now_ < disk_full_until_) return absl::ResourceExhaustedError("the disk is full");
  if (random_.Chance(faults_.broken_store)) return absl::DataLossError("the disk is broken");
  for (const Commit& commit : writing_) {
    if (!written_) CheckAttempts(commit);  // one commit may end an attempt and lend the next
    WriteDown(commit);
  }
  written_ = true;
  if (!random_.Chance(faults_.lost_answer)) return absl::OkStatus();
  // A connection lost at the COMMIT is tried again. Several commits one after the other again would be seen half done
  // by the store's checks, which a transaction hides.
  const bool again = writing_.size() == 1 && random_.Chance(0.5);
  return again ? absl::UnavailableError("the connection is lost") : absl::DataLossError("the disk is broken");
}

// Only the latest attempt of a trial may change it, and that attempt was written down before anybody worked on it.
void SimWorld::CheckAttempts(const Commit& commit) const {
  for (const Write& write : commit.writes) {
    const AddMeasurement* result = std::get_if<AddMeasurement>(&write);
    if (result == nullptr) continue;
    const auto trial = store_.trials().find(result->row.trial);
    HONE_CHECK(trial != store_.trials().end() && trial->second.attempt == result->row.attempt)
        << "trial " << result->row.trial << ": a result of attempt " << result->row.attempt << " is not the latest's";
  }
}

std::vector<uint64_t> SimWorld::NewlyLent(const Commit& commit) const {
  std::vector<uint64_t> lent;
  for (const Write& write : commit.writes) {
    const PutTrial* put = std::get_if<PutTrial>(&write);
    if (put == nullptr || put->row.state != TrialState::kLeased) continue;
    const auto before = store_.trials().find(put->row.id);
    if (before == store_.trials().end() || before->second.attempt < put->row.attempt) lent.push_back(put->row.id);
  }
  return lent;
}

void SimWorld::WriteDown(const Commit& commit) {
  const std::vector<uint64_t> lent = NewlyLent(commit);
  HONE_CHECK(store_.Commit(epoch_, commit.writes).ok());
  for (const uint64_t trial : lent) {
    const JobRow& job = store_.jobs().at(store_.tasks().at(store_.trials().at(trial).task).job);
    HONE_CHECK(!job.request.paused()) << "trial " << trial << " is lent, and job " << job.id << " is paused";
  }
  for (const Write& write : commit.writes) {
    const AddMeasurement* result = std::get_if<AddMeasurement>(&write);
    if (result == nullptr || result->row.outcome.kind() != v1::OUTCOME_OK) continue;
    const TrialRow& trial = store_.trials().at(result->row.trial);
    // A later job may measure a schedule again that an honest worker did not confirm: its two words count anew.
    if (!trial.duel) honest_words_.erase({trial.key, trial.trace});
    if (!Named(ReporterFromText(result->row.worker).worker).lies) honest_words_.emplace(trial.key, trial.trace);
  }
  for (const Write& write : commit.writes) {
    if (const PutJob* job = std::get_if<PutJob>(&write)) CheckParts(job->row());
    if (const SetBest* best = std::get_if<SetBest>(&write)) CheckBest(*best);
  }
}

// One honest word is enough: where one of the two who measured a champion does not lie, its time is as true as that of
// the champion before it, but for noise. A lie stands where both words are the liar's: where its class has no other
// worker, or none that came for ten seconds, or a quota took the honest one, or the first one's trial with who made it.
void SimWorld::CheckBest(const SetBest& best) {
  const std::string& trace = store_.records().at(best.record).record.trace();
  const auto [seen, first] = best_seen_.emplace(best.key, Best{best.median_us, 1});
  HONE_CHECK(first || best.median_us <= seen->second.us) << "the best got worse";
  const double of_truth = best.median_us / TrueTime(trace);
  HONE_CHECK(honest_words_.count({best.key, trace}) == 0 || of_truth > 0.945 * std::min(1.0, seen->second.of_truth))
      << "a liar's time is the best of its key: " << best.median_us << " us for " << TrueTime(trace);
  seen->second = {best.median_us, of_truth};
}

// Of a job that was just written.
void SimWorld::CheckParts(const JobRow& whole) const {
  for (const uint64_t id : whole.request.part_jobs()) {
    const JobRow& part = store_.jobs().at(id);
    HONE_CHECK(IsOpen(whole.state) || !IsOpen(part.state)) << "job " << whole.id << " ended before its part " << id;
    HONE_CHECK(!whole.stop_requested || !IsOpen(part.state) || part.stop_requested)
        << "job " << whole.id << " is to stop, and its part " << id << " is not";
  }
}

void SimWorld::PruneSome() {
  const std::map<uint64_t, TrialRow> before = store_.trials();
  const Write prune = *store_.FirstToPrune(1 + static_cast<int>(random_.Below(8)));
  HONE_CHECK(store_.Commit(epoch_, {&prune, 1}).ok());
  for (const auto& [id, trial] : before) {
    if (store_.trials().count(id) != 0) continue;
    // A daemon that starts later knows nothing of it: a liar may try the candidate as a new one.
    honest_words_.erase({trial.key, trial.trace});
    if (trial.duel || trial.state != TrialState::kDone) continue;
    auto& [verified, failed] = pruned_[trial.task];
    (trial.kind == v1::OUTCOME_OK ? verified : failed) += 1;
  }
}

}  // namespace hone
