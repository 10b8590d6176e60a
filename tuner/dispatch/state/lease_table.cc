#include "tuner/dispatch/state/lease_table.h"

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
v1::LeaseId IdOf(const ReportedLease& report) {
  v1::LeaseId id;
  id.set_trial(report.token.trial);
  id.set_attempt(report.token.attempt);
  id.set_epoch(report.token.epoch);
  id.set_secret(report.secret);
  return id;
}

Trial& LeaseTable::AddQueued(Trial trial, bool in_front) {
  const uint64_t id = trial.row.id;
  AddLive(trial);
  const auto [entry, added] = trials_.emplace(id, std::move(trial));
  HONE_CHECK(added) << "trial " << id << " exists";
  ++of_key_[entry->second.key].waiting;
  PutInQueue(entry->second, in_front);
  Touch(entry->second);
  return entry->second;
}

Trial& LeaseTable::AddOrphan(Trial trial, Micros until) {
  const uint64_t id = trial.row.id;
  trial.place = Trial::Place::kOrphan;
  trial.orphan_until = until;
  AddLive(trial);
  ++of_job_[trial.job].lent;
  ++lent_of_[trial.row.key.tenant];
  const auto [entry, added] = trials_.emplace(id, std::move(trial));
  HONE_CHECK(added) << "trial " << id << " exists";
  Touch(entry->second);
  return entry->second;
}

void LeaseTable::AddLive(const Trial& trial) {
  OfKey& of_key = of_key_[trial.key];
  of_key.trials.insert(trial.row.id);
  (trial.row.duel ? of_key.duels : of_key.candidates) += 1;
  OfJob& of_job = of_job_[trial.job];
  of_job.trials.insert(trial.row.id);
  if (!trial.row.duel) ++of_job.candidates;
}

void LeaseTable::Touch(const Trial& trial) {
  touched_.jobs.insert(trial.job);
  touched_.keys.insert(trial.key);
  TouchAlone(trial);
}

void LeaseTable::TouchAlone(const Trial& trial) {
  if (trial.waits_for_time()) touched_.trials.insert(trial.row.id);
  if (trial.place == Trial::Place::kLent) touched_.workers.insert(trial.worker);
}

Trial* LeaseTable::Find(uint64_t id) {
  const auto found = trials_.find(id);
  return found == trials_.end() ? nullptr : &found->second;
}

void LeaseTable::PutInQueue(Trial& trial, bool in_front) {
  trial.place = Trial::Place::kQueued;
  OfJob& of_job = of_job_[trial.job];
  Queue& queue = of_job.queues[trial.key];
  if (!queue.empty()) of_job.heads.erase({queue.front(), trial.key});
  queue.insert(in_front ? queue.begin() : queue.end(), trial.row.id);
  of_job.heads.emplace(queue.front(), trial.key);
}

void LeaseTable::TakeFromPlace(Trial& trial) {
  OfJob& of_job = of_job_[trial.job];
  if (trial.waits()) --of_key_[trial.key].waiting;
  if (trial.place == Trial::Place::kQueued) {
    Queue& queue = of_job.queues.at(trial.key);
    of_job.heads.erase({queue.front(), trial.key});
    queue.erase(std::find(queue.begin(), queue.end(), trial.row.id));
    if (queue.empty()) {
      of_job.queues.erase(trial.key);
    } else {
      of_job.heads.emplace(queue.front(), trial.key);
    }
    return;
  }
  if (trial.place == Trial::Place::kDelayed) return;
  if (trial.place == Trial::Place::kLent) {
    SortedIds& held = held_[trial.worker];
    held.erase(trial.row.id);
    if (held.empty()) held_.erase(trial.worker);
  }
  --of_job.lent;
  if (const auto of = lent_of_.find(trial.row.key.tenant); --of->second == 0) lent_of_.erase(of);
}

void LeaseTable::Lend(Trial& trial, uint64_t worker, uint64_t epoch) {
  HONE_CHECK(trial.place == Trial::Place::kQueued);
  TouchAlone(trial);
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
  ++of_job_[trial.job].lent;
  ++lent_of_[trial.row.key.tenant];
  TouchAlone(trial);
}

void LeaseTable::Adopt(Trial& trial, uint64_t worker) {
  HONE_CHECK(trial.place == Trial::Place::kOrphan);
  Touch(trial);
  trial.place = Trial::Place::kLent;
  trial.worker = worker;
  trial.granted = true;
  held_[worker].insert(trial.row.id);
  Touch(trial);
}

void LeaseTable::Requeue(Trial& trial, Micros not_before, Micros now) {
  HONE_CHECK(!trial.waits());
  Touch(trial);
  TakeFromPlace(trial);
  trial.worker = 0;
  trial.granted = false;
  trial.phase = v1::PHASE_UNSPECIFIED;
  trial.not_before = not_before;
  ++of_key_[trial.key].waiting;
  if (not_before > now) {
    trial.place = Trial::Place::kDelayed;
  } else {
    PutInQueue(trial, /*in_front=*/true);
  }
  Touch(trial);
}

void LeaseTable::EndDelay(Trial& trial) {
  HONE_CHECK(trial.place == Trial::Place::kDelayed);
  Touch(trial);
  PutInQueue(trial, /*in_front=*/true);
  Touch(trial);
}

void LeaseTable::Remove(uint64_t id) {
  const auto found = trials_.find(id);
  HONE_CHECK(found != trials_.end());
  Trial& trial = found->second;
  Touch(trial);
  TakeFromPlace(trial);
  OfKey& of_key = of_key_[trial.key];
  of_key.trials.erase(id);
  (trial.row.duel ? of_key.duels : of_key.candidates) -= 1;
  if (of_key.trials.empty()) of_key_.erase(trial.key);
  OfJob& of_job = of_job_[trial.job];
  of_job.trials.erase(id);
  if (!trial.row.duel) --of_job.candidates;
  if (of_job.trials.empty()) of_job_.erase(trial.job);
  trials_.erase(found);
}

const SortedIds& LeaseTable::HeldBy(uint64_t worker) const {
  static const SortedIds kNone;
  const auto found = held_.find(worker);
  return found == held_.end() ? kNone : found->second;
}

const LeaseTable::OfJob& LeaseTable::OfJobNumber(uint64_t job) const {
  static const OfJob kNone;
  const auto found = of_job_.find(job);
  return found == of_job_.end() ? kNone : found->second;
}

const LeaseTable::OfKey& LeaseTable::OfKeyNumber(uint64_t key) const {
  static const OfKey kNone;
  const auto found = of_key_.find(key);
  return found == of_key_.end() ? kNone : found->second;
}

int LeaseTable::LentOf(uint64_t tenant) const {
  const auto found = lent_of_.find(tenant);
  return found == lent_of_.end() ? 0 : found->second;
}

void LeaseTable::CheckInvariants() const {
  size_t lent = 0;
  for (const auto& [worker, held] : held_) {
    for (const uint64_t id : held) {
      const auto found = trials_.find(id);
      HONE_CHECK(found != trials_.end() && found->second.place == Trial::Place::kLent && found->second.worker == worker)
          << "worker " << worker << " holds trial " << id;
      ++lent;
    }
  }
  std::map<uint64_t, OfJob> of_job;  // without queues
  std::map<uint64_t, OfKey> of_key;
  std::map<uint64_t, size_t> queued;  // by job
  std::map<uint64_t, int> lent_of;    // by tenant
  std::set<std::pair<uint64_t, std::string>> traces;
  for (const auto& [id, trial] : trials_) {
    HONE_CHECK(trial.row.id == id);
    lent -= trial.place == Trial::Place::kLent;
    queued[trial.job] += trial.place == Trial::Place::kQueued;
    of_job[trial.job].trials.insert(id);
    of_job[trial.job].lent += !trial.waits();
    if (!trial.waits()) ++lent_of[trial.row.key.tenant];
    of_job[trial.job].candidates += !trial.row.duel;
    of_key[trial.key].trials.insert(id);
    of_key[trial.key].waiting += trial.waits();
    (trial.row.duel ? of_key[trial.key].duels : of_key[trial.key].candidates) += 1;
    HONE_CHECK(trial.row.duel || traces.emplace(trial.key, trial.row.trace).second)
        << "two live trials of one candidate: " << id;
  }
  HONE_CHECK(lent_of == lent_of_);
  HONE_CHECK(lent == 0 && of_job.size() == of_job_.size() && of_key.size() == of_key_.size());
  for (const auto& [id, job] : of_job_) {
    const OfJob& right = of_job[id];
    HONE_CHECK(right.trials == job.trials && right.lent == job.lent && right.candidates == job.candidates) << id;
    for (const auto& [key, queue] : job.queues) {
      HONE_CHECK(!queue.empty() && job.heads.count({queue.front(), key}) != 0) << "job " << id;
      queued[id] -= queue.size();
      for (const uint64_t trial : queue) {
        HONE_CHECK(trials_.at(trial).place == Trial::Place::kQueued && trials_.at(trial).key == key) << trial;
      }
    }
    HONE_CHECK(queued[id] == 0 && job.heads.size() == job.queues.size()) << "job " << id;
  }
  for (const auto& [number, key] : of_key_) {
    const OfKey& right = of_key[number];
    HONE_CHECK(right.trials == key.trials && right.waiting == key.waiting && right.candidates == key.candidates &&
               right.duels == key.duels)
        << "key " << number;
  }
}

}  // namespace hone
