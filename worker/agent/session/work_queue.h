// What the network thread and the measuring thread of a worker share: leases to do, their phases, results not yet
// acknowledged. Both sides only copy under the lock, and write results to the spool where there is one.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "worker/agent/session/build_queue.h"
#include "worker/agent/session/phase_seconds.h"
#include "worker/agent/session/session_work.h"
#include "worker/agent/session/spool.h"

namespace hone {

class WorkQueue : public SessionWork {
 public:
  // `spool` outlives the queue; nullptr: results are in memory alone. What is in it is offered again.
  explicit WorkQueue(Spool* spool = nullptr);

  // ---- the network side ----
  void Apply(const v1::SyncRequest& asked, const v1::SyncReply& reply) override;
  void Describe(int capacity, v1::SyncRequest* request) override;
  void WaitForNews(absl::Duration timeout) override;
  uint64_t finished() const override;
  void Poke() override;
  void ForgetLeases() override;
  void GiveBack(bool all) override;
  bool HasWork() const override;
  bool HasLeases() const override;
  size_t results() const;  // not acknowledged
  // Whether leases went back on which somebody works.
  bool gave_up() const;
  void Stop();

  // ---- the measuring side ----
  // Waits for leases or builds, for so long; false when stopped.
  bool WaitForWork(absl::Duration timeout);
  // The next leases that can be run as one batch (TrialBatch); none when there are none, or when stopped. From now
  // on they are under work.
  std::vector<v1::Lease> Take(size_t most);
  void SetPhase(const v1::LeaseId& id, v1::Phase phase);
  void Finish(const v1::LeaseId& id, v1::Outcome outcome);
  void AddSeconds(const PhaseSeconds& seconds);
  // From now on the measuring side waits for what `what` says, asked when the daemon is told; nullptr: no longer. Waits
  // of less than two seconds are not told.
  void WaitsFor(std::function<std::string()> what);
  // From now on the machine is not fit to be measured on, for want of what `lacks` says; "": it is. Told at once.
  // Leases that nobody works on go back, and no others are asked for.
  void SetLacks(const std::string& lacks);
  // Timings are taken for about so long: the daemon is told at once, and asked to answer nothing until then or until
  // every lease that is being measured is finished.
  void QuietFor(absl::Duration duration);

  // ---- builds for others ----
  // So many at once are asked for while the machine is not fit to be measured on. To begin with none.
  void OfferBuilds(int most);
  std::vector<v1::BuildLease> TakeBuilds() { return builds_.TakeAll(); }  // that are to be done now
  void FinishBuild(const v1::BuildId& id, v1::BuildOutcome outcome);

 private:
  using Key = std::tuple<uint64_t, uint32_t, uint64_t>;
  static Key KeyOf(const v1::LeaseId& id) { return {id.trial(), id.attempt(), id.epoch()}; }
  void GiveBackLocked(bool all);
  // Of the result that was told with that secret, here and in the spool. False where there is none such: what the
  // daemon says of a report with another secret is not about this one.
  bool Forget(const v1::LeaseId& id);
  struct Held {
    v1::Lease lease;
    v1::Phase phase = v1::PHASE_QUEUED;
  };

  mutable std::mutex mutex_;
  std::condition_variable news_, work_;
  std::map<Key, Held> held_;
  std::vector<Key> queued_;  // in the order of arrival
  std::map<Key, v1::TrialResult> results_;
  std::map<Key, v1::LeaseId> given_back_;
  Spool* spool_;
  bool spool_failed_ = false;  // it was said already
  PhaseSeconds seconds_;
  uint64_t finished_ = 0;
  std::function<std::string()> waits_for_;
  absl::Time waits_since_;
  std::string lacks_;
  size_t left_said_ = 0;  // ChildProcess::Left, as was last logged
  absl::Time quiet_until_ = absl::InfinitePast();
  BuildQueue builds_;  // of others
  int most_builds_ = 0;
  bool wait_told_ = false;
  bool stopped_ = false, has_news_ = false, gave_up_ = false;
};

}  // namespace hone
