#include "worker/agent/session/build_queue.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hone {

void BuildQueue::Apply(const v1::SyncRequest& asked, const v1::SyncReply& reply) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::set<Key> wanted;
  for (const v1::BuildId& id : reply.keep_builds()) wanted.insert(KeyOf(id));
  for (const v1::BuildResult& result : asked.built()) {
    if (wanted.count(KeyOf(result.id())) == 0) results_.erase(KeyOf(result.id()));
  }
  for (const v1::BuildId& id : asked.building()) {
    const auto waits = std::ranges::find(queued_, KeyOf(id));
    if (wanted.count(KeyOf(id)) != 0 || waits == queued_.end()) continue;
    held_.erase(*waits);
    queued_.erase(waits);
  }
  for (const v1::BuildLease& lease : reply.build()) {
    const Key key = KeyOf(lease.id());
    if (held_.count(key) != 0 || results_.count(key) != 0) continue;  // a repeated message
    held_[key] = lease;
    queued_.push_back(key);
  }
  work_.notify_all();
}

void BuildQueue::Describe(int capacity, v1::SyncRequest* request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [key, lease] : held_) *request->add_building() = lease.id();
  // Results of trials may be in it. What does not fit beside them is said next time, and until then is under work.
  size_t bytes = request->ByteSizeLong();
  for (const auto& [key, result] : results_) {
    bytes += result.ByteSizeLong();
    if (bytes > kMostSyncBytes && (request->built_size() > 0 || request->results_size() > 0)) {
      *request->add_building() = result.id();
    } else {
      *request->add_built() = result;
    }
  }
  request->set_credits(static_cast<uint32_t>(std::max(0, capacity - static_cast<int>(held_.size()))));
  request->set_build_seconds(seconds_);
}

void BuildQueue::WaitForNews(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  news_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [this] { return has_news_ || stopped_; });
  has_news_ = false;
}

uint64_t BuildQueue::finished() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return finished_;
}

void BuildQueue::Poke() {
  const std::lock_guard<std::mutex> lock(mutex_);
  has_news_ = true;
  news_.notify_all();
}

void BuildQueue::ForgetLeases() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Key& key : queued_) held_.erase(key);
  queued_.clear();
  results_.clear();
}

// The daemon lends to others what a builder no longer says that it holds, once its session is over: builds are short.
void BuildQueue::GiveBack(bool all) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!all) return;
  held_.clear();
  queued_.clear();
  results_.clear();
}

bool BuildQueue::HasWork() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !held_.empty() || !results_.empty();
}

bool BuildQueue::HasLeases() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !held_.empty();
}

void BuildQueue::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  work_.notify_all();
  news_.notify_all();
}

std::optional<v1::BuildLease> BuildQueue::Take() {
  std::unique_lock<std::mutex> lock(mutex_);
  work_.wait(lock, [this] { return stopped_ || !queued_.empty(); });
  if (stopped_) return std::nullopt;
  const Key key = queued_.front();
  queued_.pop_front();
  return held_.at(key);
}

std::vector<v1::BuildLease> BuildQueue::TakeAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<v1::BuildLease> leases;
  if (stopped_) return leases;
  for (const Key& key : queued_) leases.push_back(held_.at(key));
  queued_.clear();
  return leases;
}

bool BuildQueue::AnyWaits() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !queued_.empty();
}

void BuildQueue::Finish(const v1::BuildId& id, v1::BuildOutcome outcome, double seconds) {
  v1::BuildResult result;
  *result.mutable_id() = id;
  *result.mutable_outcome() = std::move(outcome);
  const std::lock_guard<std::mutex> lock(mutex_);
  seconds_ += seconds;
  const Key key = KeyOf(id);
  if (held_.erase(key) == 0) return;  // of an earlier session
  results_[key] = std::move(result);
  ++finished_;
  has_news_ = true;
  news_.notify_all();
}

}  // namespace hone
