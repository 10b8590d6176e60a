// What the network thread of a worker shares with the threads that build for others: builds to do, and what was built,
// until nobody waits for it any more. Nothing of it outlives the process, or the session. A worker that builds what it
// measures has one in its work_queue.h.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "worker/agent/session/session_work.h"

namespace hone {

inline constexpr size_t kMostSyncBytes = 3 << 20;  // of results in one Sync: a message has 4 MiB at most

class BuildQueue : public SessionWork {
 public:
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
  void Stop();

  // ---- the building side, from any thread ----
  std::optional<v1::BuildLease> Take();   // waits for one; nullopt when stopped
  std::vector<v1::BuildLease> TakeAll();  // that wait, without waiting for any; none when stopped
  bool AnyWaits() const;
  // An outcome of more than kMostSyncBytes goes by build_deposit.h first.
  void Finish(const v1::BuildId& id, v1::BuildOutcome outcome, double seconds);

 private:
  using Key = std::tuple<uint64_t, uint32_t, uint64_t>;
  static Key KeyOf(const v1::BuildId& id) { return {id.build(), id.attempt(), id.epoch()}; }

  mutable std::mutex mutex_;
  std::condition_variable news_, work_;
  std::map<Key, v1::BuildLease> held_;  // waiting or under work
  std::deque<Key> queued_;              // of these, those that wait, in the order of arrival
  std::map<Key, v1::BuildResult> results_;
  double seconds_ = 0;
  uint64_t finished_ = 0;
  bool has_news_ = false, stopped_ = false;
};

}  // namespace hone
