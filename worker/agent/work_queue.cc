#include "worker/agent/work_queue.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/time/clock.h"

namespace hone {
namespace {

constexpr absl::Duration kToldAfter = absl::Seconds(2);
constexpr size_t kMostBytes = 3 << 20;  // of results in one Sync: a message has 4 MiB at most

}  // namespace

void WorkQueue::Apply(const v1::SyncRequest& asked, const v1::SyncReply& reply) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::set<Key> named;
  for (const v1::LeaseState& state : asked.held()) named.insert(KeyOf(state.id()));
  std::set<Key> wanted;
  for (const v1::LeaseId& id : reply.keep()) wanted.insert(KeyOf(id));
  for (const v1::Lease& lease : reply.want()) wanted.insert(KeyOf(lease.id()));
  for (const v1::LeaseId& id : reply.acked()) results_.erase(KeyOf(id));
  for (auto it = held_.begin(); it != held_.end();) {
    const bool drop =
        it->second.phase == v1::PHASE_QUEUED && wanted.count(it->first) == 0 && named.count(it->first) > 0;
    if (drop) std::erase(queued_, it->first);
    it = drop ? held_.erase(it) : std::next(it);
  }
  for (const v1::Lease& lease : reply.want()) {
    const Key key = KeyOf(lease.id());
    if (held_.count(key) > 0 || results_.count(key) > 0) continue;  // a repeated message
    held_[key].lease = lease;
    queued_.push_back(key);
  }
  work_.notify_all();
}

void WorkQueue::Describe(int capacity, v1::SyncRequest* request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [key, held] : held_) {
    v1::LeaseState* state = request->add_held();
    *state->mutable_id() = held.lease.id();
    state->set_phase(held.phase);
  }
  size_t bytes = 0;  // what does not fit is said next time, when these are acknowledged
  for (const auto& [key, result] : results_) {
    bytes += result.ByteSizeLong();
    if (bytes > kMostBytes && request->results_size() > 0) break;
    *request->add_results() = result;
  }
  request->set_credits(static_cast<uint32_t>(std::max(0, capacity - static_cast<int>(held_.size()))));
  request->set_build_seconds(seconds_.build);
  request->set_verify_seconds(seconds_.verify);
  request->set_measure_seconds(seconds_.measure);
  if (waits_for_ && absl::Now() - waits_since_ > kToldAfter) {
    request->set_waiting_for(waits_for_());
    wait_told_ = true;
  }
  has_news_ = false;
}

void WorkQueue::WaitsFor(std::function<std::string()> what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waits_for_ = std::move(what);
  waits_since_ = absl::Now();
  if (waits_for_ || !wait_told_) return;
  wait_told_ = false;
  ++finished_;
  has_news_ = true;
  news_.notify_all();
}

void WorkQueue::WaitForNews(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  news_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [this] { return has_news_ || stopped_; });
}

uint64_t WorkQueue::finished() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return finished_;
}

void WorkQueue::Poke() {
  const std::lock_guard<std::mutex> lock(mutex_);
  has_news_ = true;
  news_.notify_all();
}

void WorkQueue::ForgetLeases() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(held_, [](const auto& entry) { return entry.second.phase == v1::PHASE_QUEUED; });
  queued_.clear();
}

void WorkQueue::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  work_.notify_all();
  news_.notify_all();
}

std::vector<v1::Lease> WorkQueue::Take(size_t most) {
  std::unique_lock<std::mutex> lock(mutex_);
  work_.wait(lock, [this] { return stopped_ || !queued_.empty(); });
  std::vector<v1::Lease> batch;
  if (stopped_) return batch;
  const auto goes_with = [](const v1::Lease& a, const v1::Lease& b) {
    return !a.duel() && !b.duel() && a.workload_hash() == b.workload_hash() && a.threads() == b.threads() &&
           a.numeric() == b.numeric() && a.champion_trace() == b.champion_trace() && a.champion_us() == b.champion_us();
  };
  for (auto it = queued_.begin(); it != queued_.end() && batch.size() < most;) {
    Held& held = held_.at(*it);
    if (!batch.empty() && !goes_with(batch.front(), held.lease)) {
      ++it;
      continue;
    }
    held.phase = v1::PHASE_BUILDING;
    batch.push_back(held.lease);
    it = queued_.erase(it);
  }
  return batch;
}

void WorkQueue::SetPhase(const v1::LeaseId& id, v1::Phase phase) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = held_.find(KeyOf(id));
  if (found != held_.end()) found->second.phase = phase;
}

void WorkQueue::Finish(const v1::LeaseId& id, v1::Outcome outcome) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Key key = KeyOf(id);
  held_.erase(key);
  v1::TrialResult& result = results_[key];
  *result.mutable_id() = id;
  *result.mutable_outcome() = std::move(outcome);
  if (result.ByteSizeLong() > kMostBytes) {  // the record does without its object
    result.mutable_outcome()->clear_object();
    result.mutable_outcome()->clear_kernel_set();
  }
  ++finished_;
  has_news_ = true;
  news_.notify_all();
}

void WorkQueue::AddSeconds(const PhaseSeconds& seconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  seconds_.build += seconds.build;
  seconds_.verify += seconds.verify;
  seconds_.measure += seconds.measure;
}

}  // namespace hone
