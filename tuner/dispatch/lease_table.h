// Trials that live: queued, or lent to a worker. Knows who holds what; the rules about why are the dispatcher's.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "database/rows.h"
#include "tuner/dispatch/events.h"

namespace hone {

// A trial from the moment its candidate is queued until it has an outcome or is dropped.
struct Trial {
  TrialRow row;      // attempt and epoch are those of the latest lease
  uint64_t job = 0;  // whose budget it is on
  enum class Place { kQueued, kOrphan, kLent } place = Place::kQueued;
  uint64_t worker = 0;                      // when lent
  bool granted = false;                     // the lease is durable: the worker may be told
  bool answered = false;                    // this attempt has had its result; another one follows
  v1::Phase phase = v1::PHASE_UNSPECIFIED;  // as the worker last said
  Micros working_since = 0;                 // when it was first said to be under work in this attempt
  Micros not_before = 0;                    // queued: back-off after an infrastructure failure
  Micros orphan_until = 0;                  // orphan: its worker may still come back with it
  std::string not_by;                       // a duel: who measured the challenger before,
  Micros not_by_until = 0;                  // to whom it is not lent until then
};

struct LeaseToken {
  uint64_t trial = 0;
  uint32_t attempt = 0;
  uint64_t epoch = 0;
  auto operator<=>(const LeaseToken&) const = default;
};
LeaseToken TokenOf(const v1::LeaseId& id);
LeaseToken TokenOf(const TrialRow& row);
v1::LeaseId IdOf(const TrialRow& row);

class LeaseTable {
 public:
  // The trial must be new. Queued trials of a key come out in the order of `QueueOf`.
  Trial& AddQueued(Trial trial, bool in_front);
  Trial& AddOrphan(Trial trial, Micros until);
  Trial* Find(uint64_t id);
  const std::map<uint64_t, Trial>& trials() const { return trials_; }

  void Lend(Trial& trial, uint64_t worker, uint64_t epoch);  // queued -> lent: attempt rises
  void Adopt(Trial& trial, uint64_t worker);                 // orphan -> lent, same token
  void Requeue(Trial& trial, Micros not_before);             // lent or orphan -> queued, in front
  void Remove(uint64_t id);

  const std::vector<uint64_t>& QueueOf(const TuningKey& key) const;
  const std::set<uint64_t>& HeldBy(uint64_t worker) const;
  // Live trials of the key that are no duels, and duels.
  int LiveOf(const TuningKey& key, bool duel) const;
  int LentOfJob(uint64_t job) const;
  int CandidatesOfJob(uint64_t job) const;  // its live trials that are no duels

  void CheckInvariants() const;

 private:
  void CountLive(const Trial& trial);
  void TakeFromPlace(Trial& trial);

  std::map<uint64_t, Trial> trials_;
  std::map<TuningKey, std::vector<uint64_t>> queues_;
  std::map<uint64_t, std::set<uint64_t>> held_;  // by worker
  std::map<TuningKey, std::map<bool, int>> live_;
  std::map<uint64_t, int> lent_of_job_;
  std::map<uint64_t, int> candidates_of_job_;
};

}  // namespace hone
