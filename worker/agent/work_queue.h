// What the network thread and the measuring thread of a worker share: leases to do, their phases, results not yet
// acknowledged. Both sides only copy under the lock.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "hone/v1/fleet.pb.h"
#include "worker/agent/trial_batch.h"

namespace hone {

class WorkQueue {
 public:
  // ---- the network side ----
  // The complete word of the daemon: what to start, what to keep; leases in neither are dropped unless they are being
  // worked on. Acknowledged results are forgotten. `asked` is the request that was answered: what it did not name as
  // held came with another answer, and this one says nothing about it.
  void Apply(const v1::SyncRequest& asked, const v1::SyncReply& reply);
  // Fills in what is held, what is finished and the seconds spent; `capacity` leases are wanted in all.
  void Describe(int capacity, v1::SyncRequest* request);
  // Waits until there is something to tell: a result, or room for new leases.
  void WaitForNews(absl::Duration timeout);
  // How often there was something to tell (a result, the end of a wait): whether a call that is out has told all of it.
  uint64_t finished() const;
  // Something else happened that the network side waits for.
  void Poke();
  // A new session: nothing that was lent before counts any more; results stay, to be offered again.
  void ForgetLeases();
  void Stop();

  // ---- the measuring side ----
  // The next leases that can be run as one batch (TrialBatch::Run), waiting for them; empty when stopped.
  std::vector<v1::Lease> Take(size_t most);
  void SetPhase(const v1::LeaseId& id, v1::Phase phase);
  void Finish(const v1::LeaseId& id, v1::Outcome outcome);
  void AddSeconds(const PhaseSeconds& seconds);
  // From now on the measuring side waits for what `what` says, asked when the daemon is told; nullptr: no longer. Waits
  // of less than two seconds are not told.
  void WaitsFor(std::function<std::string()> what);

 private:
  using Key = std::tuple<uint64_t, uint32_t, uint64_t>;
  static Key KeyOf(const v1::LeaseId& id) { return {id.trial(), id.attempt(), id.epoch()}; }
  struct Held {
    v1::Lease lease;
    v1::Phase phase = v1::PHASE_QUEUED;
  };

  mutable std::mutex mutex_;
  std::condition_variable news_, work_;
  std::map<Key, Held> held_;
  std::vector<Key> queued_;  // in the order of arrival
  std::map<Key, v1::TrialResult> results_;
  PhaseSeconds seconds_;
  uint64_t finished_ = 0;
  std::function<std::string()> waits_for_;
  absl::Time waits_since_;
  bool wait_told_ = false;
  bool stopped_ = false, has_news_ = false;
};

}  // namespace hone
