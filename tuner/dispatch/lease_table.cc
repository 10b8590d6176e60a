#include "tuner/dispatch/lease_table.h"

#include <algorithm>

#include "compiler/support/check.h"

namespace hone {

LeaseToken TokenOf(const v1::LeaseId& id) { return {id.trial(), id.attempt(), id.epoch()}; }
LeaseToken TokenOf(const TrialRow& row) { return {row.id, row.attempt, row.epoch}; }
v1::LeaseId IdOf(const TrialRow& row) {
  v1::LeaseId id;
  id.set_trial(row.id);
  id.set_attempt(row.attempt);
  id.set_epoch(row.epoch);
  return id;
}

Trial& LeaseTable::AddQueued(Trial trial, bool in_front) {
  const uint64_t id = trial.row.id;
  trial.place = Trial::Place::kQueued;
  std::vector<uint64_t>& queue = queues_[trial.row.key];
  queue.insert(in_front ? queue.begin() : queue.end(), id);
  CountLive(trial);
  const auto [entry, added] = trials_.emplace(id, std::move(trial));
  HONE_CHECK(added) << "trial " << id << " exists";
  return entry->second;
}

Trial& LeaseTable::AddOrphan(Trial trial, Micros until) {
  const uint64_t id = trial.row.id;
  trial.place = Trial::Place::kOrphan;
  trial.orphan_until = until;
  CountLive(trial);
  ++lent_of_job_[trial.job];
  const auto [entry, added] = trials_.emplace(id, std::move(trial));
  HONE_CHECK(added) << "trial " << id << " exists";
  return entry->second;
}

void LeaseTable::CountLive(const Trial& trial) {
  ++live_[trial.row.key][trial.row.duel];
  if (!trial.row.duel) ++candidates_of_job_[trial.job];
}

Trial* LeaseTable::Find(uint64_t id) {
  const auto found = trials_.find(id);
  return found == trials_.end() ? nullptr : &found->second;
}

void LeaseTable::TakeFromPlace(Trial& trial) {
  if (trial.place == Trial::Place::kQueued) {
    std::vector<uint64_t>& queue = queues_[trial.row.key];
    queue.erase(std::find(queue.begin(), queue.end(), trial.row.id));
    if (queue.empty()) queues_.erase(trial.row.key);
    return;
  }
  if (trial.place == Trial::Place::kLent) {
    std::set<uint64_t>& held = held_[trial.worker];
    held.erase(trial.row.id);
    if (held.empty()) held_.erase(trial.worker);
  }
  if (--lent_of_job_[trial.job] == 0) lent_of_job_.erase(trial.job);
}

void LeaseTable::Lend(Trial& trial, uint64_t worker, uint64_t epoch) {
  HONE_CHECK(trial.place == Trial::Place::kQueued);
  TakeFromPlace(trial);
  trial.place = Trial::Place::kLent;
  trial.worker = worker;
  trial.granted = false;
  trial.answered = false;
  trial.phase = v1::PHASE_UNSPECIFIED;
  trial.working_since = 0;
  trial.row.attempt += 1;
  trial.row.epoch = epoch;
  trial.row.state = TrialState::kLeased;
  held_[worker].insert(trial.row.id);
  ++lent_of_job_[trial.job];
}

void LeaseTable::Adopt(Trial& trial, uint64_t worker) {
  HONE_CHECK(trial.place == Trial::Place::kOrphan);
  trial.place = Trial::Place::kLent;
  trial.worker = worker;
  trial.granted = true;
  held_[worker].insert(trial.row.id);
}

void LeaseTable::Requeue(Trial& trial, Micros not_before) {
  HONE_CHECK(trial.place != Trial::Place::kQueued);
  TakeFromPlace(trial);
  trial.place = Trial::Place::kQueued;
  trial.worker = 0;
  trial.granted = false;
  trial.phase = v1::PHASE_UNSPECIFIED;
  trial.not_before = not_before;
  std::vector<uint64_t>& queue = queues_[trial.row.key];
  queue.insert(queue.begin(), trial.row.id);
}

void LeaseTable::Remove(uint64_t id) {
  const auto found = trials_.find(id);
  HONE_CHECK(found != trials_.end());
  TakeFromPlace(found->second);
  std::map<bool, int>& live = live_[found->second.row.key];
  if (--live[found->second.row.duel] == 0) live.erase(found->second.row.duel);
  if (live.empty()) live_.erase(found->second.row.key);
  const uint64_t job = found->second.job;
  if (!found->second.row.duel && --candidates_of_job_[job] == 0) candidates_of_job_.erase(job);
  trials_.erase(found);
}

const std::vector<uint64_t>& LeaseTable::QueueOf(const TuningKey& key) const {
  static const std::vector<uint64_t> kNone;
  const auto found = queues_.find(key);
  return found == queues_.end() ? kNone : found->second;
}

const std::set<uint64_t>& LeaseTable::HeldBy(uint64_t worker) const {
  static const std::set<uint64_t> kNone;
  const auto found = held_.find(worker);
  return found == held_.end() ? kNone : found->second;
}

int LeaseTable::LiveOf(const TuningKey& key, bool duel) const {
  const auto found = live_.find(key);
  if (found == live_.end()) return 0;
  const auto count = found->second.find(duel);
  return count == found->second.end() ? 0 : count->second;
}

int LeaseTable::LentOfJob(uint64_t job) const {
  const auto found = lent_of_job_.find(job);
  return found == lent_of_job_.end() ? 0 : found->second;
}

int LeaseTable::CandidatesOfJob(uint64_t job) const {
  const auto found = candidates_of_job_.find(job);
  return found == candidates_of_job_.end() ? 0 : found->second;
}

void LeaseTable::CheckInvariants() const {
  size_t queued = 0, lent = 0;
  for (const auto& [key, queue] : queues_) {
    HONE_CHECK(!queue.empty());
    for (const uint64_t id : queue) {
      const auto found = trials_.find(id);
      HONE_CHECK(found != trials_.end() && found->second.place == Trial::Place::kQueued && found->second.row.key == key)
          << "queue of a key holds trial " << id;
      ++queued;
    }
  }
  for (const auto& [worker, held] : held_) {
    for (const uint64_t id : held) {
      const auto found = trials_.find(id);
      HONE_CHECK(found != trials_.end() && found->second.place == Trial::Place::kLent && found->second.worker == worker)
          << "worker " << worker << " holds trial " << id;
      ++lent;
    }
  }
  std::map<TuningKey, std::set<std::string>> traces;
  std::map<TuningKey, std::map<bool, int>> live;
  std::map<uint64_t, int> lent_of_job, candidates_of_job;
  for (const auto& [id, trial] : trials_) {
    HONE_CHECK(trial.row.id == id);
    queued -= trial.place == Trial::Place::kQueued;
    lent -= trial.place == Trial::Place::kLent;
    ++live[trial.row.key][trial.row.duel];
    if (trial.place != Trial::Place::kQueued) ++lent_of_job[trial.job];
    if (!trial.row.duel) {
      ++candidates_of_job[trial.job];
      HONE_CHECK(traces[trial.row.key].insert(trial.row.trace).second) << "two live trials of one candidate: " << id;
    }
  }
  HONE_CHECK(queued == 0 && lent == 0 && live == live_ && lent_of_job == lent_of_job_);
  HONE_CHECK(candidates_of_job == candidates_of_job_);
}

}  // namespace hone
