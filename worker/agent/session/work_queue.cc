#include "worker/agent/session/work_queue.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/log/log.h"
#include "compiler/support/child_process.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/monotonic_clock.h"
#include "spdlog/spdlog.h"

namespace hone {
namespace {

constexpr absl::Duration kToldAfter = absl::Seconds(2);

// It says so and works on: what is left takes a process id, and whatever it holds.
std::string TextOfLeft(size_t left) {
  return absl::StrCat(left,
                      " of its processes that were killed to end: a system call keeps them (dmesg may say which)");
}

}  // namespace

WorkQueue::WorkQueue(Spool* spool) : spool_(spool) {
  if (spool_ == nullptr) return;
  for (v1::TrialResult& result : spool_->TakeFound()) results_[KeyOf(result.id())] = std::move(result);
}

void WorkQueue::Apply(const v1::SyncRequest& asked, const v1::SyncReply& reply) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::set<Key> named;
  for (const v1::LeaseState& state : asked.held()) named.insert(KeyOf(state.id()));
  std::set<Key> wanted;
  for (const v1::LeaseId& id : reply.keep()) wanted.insert(KeyOf(id));
  for (const v1::Lease& lease : reply.want()) wanted.insert(KeyOf(lease.id()));
  for (const v1::LeaseId& id : reply.acked()) {
    CrashPoint("worker.acknowledged");
    if (!Forget(id)) continue;
    LogFact(spdlog::level::debug, "result is acknowledged",
            {{"trial", id.trial()}, {"attempt", uint64_t{id.attempt()}}, {"epoch", id.epoch()}});
  }
  for (const v1::RefusedReport& refused : reply.refused()) {
    const v1::LeaseId& id = refused.id();
    if (!Forget(id)) continue;
    const bool not_holder = refused.why() == v1::REPORT_REFUSAL_NOT_HOLDER;
    LogFact(not_holder ? spdlog::level::warn : spdlog::level::debug, "result is refused",
            {{"trial", id.trial()},
             {"attempt", uint64_t{id.attempt()}},
             {"epoch", id.epoch()},
             {"why", not_holder ? "the lease was lent with another secret" : "the lease is over"}});
  }
  for (const v1::LeaseId& id : asked.given_back()) given_back_.erase(KeyOf(id));
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
    CrashPoint("worker.lent");
    queued_.push_back(key);
  }
  builds_.Apply(asked, reply);
  work_.notify_all();
}

bool WorkQueue::Forget(const v1::LeaseId& id) {
  const auto found = results_.find(KeyOf(id));
  if (found == results_.end() || found->second.id().secret() != id.secret()) return false;
  results_.erase(found);
  if (spool_ != nullptr) spool_->Remove(id);
  return true;
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
    if (bytes > kMostSyncBytes && request->results_size() > 0) break;
    *request->add_results() = result;
  }
  for (const auto& [key, id] : given_back_) *request->add_given_back() = id;
  builds_.Describe(lacks_.empty() ? 0 : std::min(capacity, most_builds_), request);
  request->set_build_credits(request->credits());
  const bool full = spool_ != nullptr && spool_->full();
  const bool takes_more = lacks_.empty() && !full;
  request->set_credits(static_cast<uint32_t>(takes_more ? std::max(0, capacity - static_cast<int>(held_.size())) : 0));
  request->set_build_seconds(seconds_.build);
  request->set_verify_seconds(seconds_.verify);
  request->set_measure_seconds(seconds_.measure);
  request->set_not_quiet(!lacks_.empty());
  if (const absl::Duration quiet = quiet_until_ - MonotonicNow(); quiet > absl::ZeroDuration()) {
    request->set_quiet_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(quiet)));
  }
  const size_t left = ChildProcess::Left().size();
  if (left > left_said_) spdlog::warn("waiting for {}", TextOfLeft(left));
  left_said_ = left;
  if (!lacks_.empty()) {
    request->set_waiting_for(lacks_);
  } else if (full) {
    request->set_waiting_for(absl::StrCat("its ", spool_->size(), " results to be taken: its spool is full"));
  } else if (left > 0) {
    request->set_waiting_for(TextOfLeft(left));
  } else if (waits_for_ && MonotonicNow() - waits_since_ > kToldAfter) {
    request->set_waiting_for(waits_for_());
    wait_told_ = true;
  }
}

void WorkQueue::WaitsFor(std::function<std::string()> what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waits_for_ = std::move(what);
  waits_since_ = MonotonicNow();
  if (waits_for_ || !wait_told_) return;
  wait_told_ = false;
  ++finished_;
  has_news_ = true;
  news_.notify_all();
}

void WorkQueue::SetLacks(const std::string& lacks) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!lacks.empty()) GiveBackLocked(false);
  if (lacks == lacks_) return;
  if (!lacks.empty() && lacks_.empty()) spdlog::info("not measuring, for want of {}", lacks);
  if (lacks.empty()) spdlog::info("measuring again");
  lacks_ = lacks;
  ++finished_;
  has_news_ = true;
  news_.notify_all();
}

void WorkQueue::QuietFor(absl::Duration duration) {
  const std::lock_guard<std::mutex> lock(mutex_);
  quiet_until_ = MonotonicNow() + duration;
  ++finished_;
  has_news_ = true;
  news_.notify_all();
}

void WorkQueue::OfferBuilds(int most) {
  const std::lock_guard<std::mutex> lock(mutex_);
  most_builds_ = most;
}

void WorkQueue::FinishBuild(const v1::BuildId& id, v1::BuildOutcome outcome) {
  builds_.Finish(id, std::move(outcome), 0);  // its seconds are no job's of this worker
  const std::lock_guard<std::mutex> lock(mutex_);
  ++finished_;
  has_news_ = true;
  news_.notify_all();
}

void WorkQueue::WaitForNews(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  news_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [this] { return has_news_ || stopped_; });
  has_news_ = false;
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
  builds_.ForgetLeases();
}

void WorkQueue::GiveBack(bool all) {
  const std::lock_guard<std::mutex> lock(mutex_);
  GiveBackLocked(all);
}

void WorkQueue::GiveBackLocked(bool all) {
  for (auto it = held_.begin(); it != held_.end();) {
    gave_up_ = gave_up_ || (all && it->second.phase != v1::PHASE_QUEUED);
    const bool goes = all || it->second.phase == v1::PHASE_QUEUED;
    if (goes) given_back_[it->first] = it->second.lease.id();
    it = goes ? held_.erase(it) : std::next(it);
  }
  queued_.clear();
  gave_up_ = gave_up_ || (all && builds_.HasLeases());
  builds_.GiveBack(all);
}

bool WorkQueue::HasWork() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !held_.empty() || !given_back_.empty() || !results_.empty() || builds_.HasWork();
}

bool WorkQueue::HasLeases() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !held_.empty() || builds_.HasLeases();
}

size_t WorkQueue::results() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return results_.size();
}

bool WorkQueue::gave_up() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return gave_up_;
}

void WorkQueue::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  builds_.Stop();
  work_.notify_all();
  news_.notify_all();
}

bool WorkQueue::WaitForWork(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  work_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                 [this] { return stopped_ || !queued_.empty() || builds_.AnyWaits(); });
  return !stopped_;
}

std::vector<v1::Lease> WorkQueue::Take(size_t most) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<v1::Lease> batch;
  if (stopped_) return batch;
  const auto goes_with = [](const v1::Lease& a, const v1::Lease& b) {
    return !a.duel() && !b.duel() && a.task() == b.task() && a.workload_hash() == b.workload_hash() &&
           a.threads() == b.threads() && a.numeric() == b.numeric() && a.champion_trace() == b.champion_trace() &&
           a.champion_us() == b.champion_us();
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
  v1::TrialResult result;
  *result.mutable_id() = id;
  *result.mutable_outcome() = std::move(outcome);
  if (result.ByteSizeLong() > kMostSyncBytes) {  // the record does without its object
    result.mutable_outcome()->clear_object();
    result.mutable_outcome()->clear_kernel_set();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const Key key = KeyOf(id);
  if (held_.erase(key) == 0) return;  // given back meanwhile
  const auto measured = [](const auto& entry) { return entry.second.phase == v1::PHASE_MEASURING; };
  if (std::ranges::none_of(held_, measured)) quiet_until_ = absl::InfinitePast();
  CrashPoint("worker.finished");
  const absl::Status kept = spool_ == nullptr ? absl::OkStatus() : spool_->Add(result);
  if (!kept.ok() && !spool_failed_) {
    spdlog::error("results are not kept on disk, and are lost if this worker ends before the daemon has them: {}",
                  std::string(kept.message()));
  }
  spool_failed_ = !kept.ok();
  results_[key] = std::move(result);
  ++finished_;
  CrashPoint("worker.kept");
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
