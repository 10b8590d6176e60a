// Trials that live: queued, or lent to a worker. Knows who holds what, and notes whom each change touches; the rules
// about why are the dispatcher's.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "database/store/rows.h"
#include "tuner/dispatch/events/events.h"
#include "tuner/dispatch/events/reporter.h"
#include "tuner/dispatch/state/id_containers.h"
#include "tuner/dispatch/state/touched.h"

namespace hone {

// Whom a trial is not lent to for a while: a worker, or all of one principal.
struct KeptFrom {
  Reporter who;
  bool whole_principal = false;
  Micros until = 0;

  bool Covers(const Reporter& other) const {
    return whole_principal ? !IsOtherPrincipal(who, other) : who.worker == other.worker;
  }
};

// A trial from the moment its candidate is queued until it has an outcome or is dropped.
struct Trial {
  TrialRow row;      // attempt and epoch are those of the latest lease
  uint64_t key = 0;  // KeyState::number of row.key
  uint64_t job = 0;  // whose budget it is on
  enum class Place { kQueued, kDelayed, kOrphan, kLent } place = Place::kQueued;
  uint64_t worker = 0;                      // when lent
  bool granted = false;                     // the lease is durable: the worker may be told
  bool answered = false;                    // this attempt has had its result; another one follows
  v1::Phase phase = v1::PHASE_UNSPECIFIED;  // as the worker last said
  Micros working_since = 0;                 // when it was first said to be under work that goes on; 0: it is not
  Micros not_before = 0;                    // delayed: back-off after an infrastructure failure
  Micros orphan_until = 0;                  // orphan: its worker may still come back with it
  KeptFrom kept_from;                       // who measured a duel's challenger, or failed at it

  // Time alone may change its place, or who may have it.
  bool waits_for_time() const {
    return place == Place::kOrphan || place == Place::kDelayed || (place == Place::kQueued && kept_from.until > 0);
  }
  bool waits() const { return place == Place::kQueued || place == Place::kDelayed; }  // no worker has it
  // As the worker last said.
  bool under_work() const { return phase >= v1::PHASE_BUILDING && phase != v1::PHASE_VERIFIED; }
};

struct LeaseToken {
  uint64_t trial = 0;
  uint32_t attempt = 0;
  uint64_t epoch = 0;
  auto operator<=>(const LeaseToken&) const = default;
  template <class H>
  friend H AbslHashValue(H hash, const LeaseToken& token) {
    return H::combine(std::move(hash), token.trial, token.attempt, token.epoch);
  }
};
// A lease as a report names it: `secret` is what the reporter shows, which may be wrong.
struct ReportedLease {
  LeaseToken token;
  std::string secret;
  auto operator<=>(const ReportedLease&) const = default;
};
LeaseToken TokenOf(const v1::LeaseId& id);
LeaseToken TokenOf(const TrialRow& row);
v1::LeaseId IdOf(const TrialRow& row);
v1::LeaseId IdOf(const ReportedLease& report);

class LeaseTable {
 public:
  // Of one key in one job, those that may be lent, in that order.
  using Queue = std::vector<uint64_t>;
  struct OfJob {
    SortedIds trials;                               // all that live
    std::map<uint64_t, Queue> queues;               // by key, none empty
    std::set<std::pair<uint64_t, uint64_t>> heads;  // (first of a queue, its key)
    int lent = 0;                                   // to a worker, or orphans
    int candidates = 0;                             // those that are no duels
  };
  struct OfKey {
    SortedIds trials;
    int waiting = 0;  // no worker has them
    int candidates = 0, duels = 0;
  };

  explicit LeaseTable(Touched& touched) : touched_(touched) {}

  // The trial must be new. A queue is lent from its front.
  Trial& AddQueued(Trial trial, bool in_front);
  Trial& AddOrphan(Trial trial, Micros until);
  Trial* Find(uint64_t id);
  const absl::node_hash_map<uint64_t, Trial>& trials() const { return trials_; }

  // Queued -> lent: attempt rises. Touches no job: whoever lends files it, and knows that it may want more candidates.
  void Lend(Trial& trial, uint64_t worker, uint64_t epoch);
  void Adopt(Trial& trial, uint64_t worker);                  // orphan -> lent, same token
  void Requeue(Trial& trial, Micros not_before, Micros now);  // lent or orphan -> queued in front, or delayed
  void EndDelay(Trial& trial);                                // delayed -> queued, in front
  void Remove(uint64_t id);

  const SortedIds& HeldBy(uint64_t worker) const;
  const OfJob& OfJobNumber(uint64_t job) const;
  const OfKey& OfKeyNumber(uint64_t key) const;
  int LentOf(uint64_t tenant) const;  // to workers, or orphans

  void CheckInvariants() const;

 private:
  void AddLive(const Trial& trial);
  void PutInQueue(Trial& trial, bool in_front);
  void TakeFromPlace(Trial& trial);
  // Before it changes its place, and after. By itself: what its job and its key have does not change.
  void Touch(const Trial& trial);
  void TouchAlone(const Trial& trial);

  Touched& touched_;
  // Looked up far more often than gone through, and never gone through to decide anything: their order is any.
  absl::node_hash_map<uint64_t, Trial> trials_;
  absl::node_hash_map<uint64_t, SortedIds> held_;  // by worker
  absl::node_hash_map<uint64_t, OfJob> of_job_;
  absl::node_hash_map<uint64_t, OfKey> of_key_;
  std::map<uint64_t, int> lent_of_;  // by tenant, none 0
};

}  // namespace hone
