// What holds a job up, and how that is said.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/dispatch/dispatcher_impl.h"

namespace hone {
namespace {

constexpr size_t kLongestList = 200;  // bytes of workers' names in a sentence

}  // namespace

void Dispatcher::Impl::UpdateHoldUps(Touched& batch) {
  for (const uint64_t tenant : fleet.TakeChangedTenants()) {
    for (JobPool* pool : fleet.JobsOf(tenant)) {
      ++counters.looked_at;
      auto [hold_up, words] = WhatHoldsUp(*pool);
      if (hold_up == pool->hold_up && words == pool->held_up_by) continue;
      pool->hold_up = hold_up;
      pool->held_up_by = std::move(words);
      batch.jobs.insert(pool->members.begin(), pool->members.end());
    }
  }
  batch.jobs.Sort();
}

void Dispatcher::Impl::UpdateJobState(Job& job) {
  const auto [hold_up, words] = WhatHoldsUp(job);
  const bool waits =
      hold_up == v1::HOLD_UP_NO_WORKER || hold_up == v1::HOLD_UP_NO_FITTING_WORKER || hold_up == v1::HOLD_UP_PAUSED;
  const v1::JobState state = waits ? v1::JOB_WAITING : v1::JOB_RUNNING;
  std::string reason = waits ? words : "";
  if (!waits && job.row.reason.rfind("search: ", 0) == 0) reason = job.row.reason;
  if (state == job.row.state && reason == job.row.reason && hold_up == job.hold_up && words == job.held_up_by) return;
  job.Advance(now);
  if (hold_up != job.hold_up) job.held_up_since = now;
  job.hold_up = hold_up;
  job.held_up_by = words;
  touched.jobs.insert(job.row.request.part_of());
  if (job.ending && job.open_parts.empty()) return;
  job.row.state = state;
  job.row.reason = reason;
}

// With parts it is held up where all is that it still waits for.
std::pair<v1::HoldUp, std::string> Dispatcher::Impl::WhatHoldsUp(const Job& job) const {
  if (job.open_parts.empty()) return WhatHoldsUpAlone(job);
  std::pair<v1::HoldUp, std::string> first{v1::HOLD_UP_NONE, ""};
  if (!job.ending || WaitsForTrials(job)) {
    first = WhatHoldsUpAlone(job);
    if (first.first == v1::HOLD_UP_NONE) return first;
  }
  for (const uint64_t id : job.open_parts) {
    const Job& part = jobs.at(id);
    if (part.ended) continue;
    if (part.hold_up == v1::HOLD_UP_NONE) return {v1::HOLD_UP_NONE, ""};
    if (first.first == v1::HOLD_UP_NONE) first = {part.hold_up, part.held_up_by};
  }
  return first;
}

std::pair<v1::HoldUp, std::string> Dispatcher::Impl::WhatHoldsUpAlone(const Job& job) const {
  if (job.row.request.paused()) return {v1::HOLD_UP_PAUSED, "it was paused"};
  if (Yields(job)) return {v1::HOLD_UP_PAUSED, "it goes on when no other job is open"};
  const JobPool& pool = fleet.PoolOfJob(job.row.id);
  if (pool.hold_up != v1::HOLD_UP_NONE) return {pool.hold_up, pool.held_up_by};
  if (!job.worker_fault.empty()) {
    return {v1::HOLD_UP_WORKER_FAULT, absl::StrCat("a worker cannot measure: ", job.worker_fault)};
  }
  if (job.row.reason.rfind("search: ", 0) == 0 && leases.OfJobNumber(job.row.id).candidates == 0) {
    return {v1::HOLD_UP_SEARCH, job.row.reason};
  }
  return {v1::HOLD_UP_NONE, ""};
}

std::pair<v1::HoldUp, std::string> Dispatcher::Impl::WhatHoldsUp(const JobPool& pool) const {
  size_t living = 0, fitting = 0, ready = 0, waiting = 0, not_quiet = 0;
  uint64_t waits = 0;        // the latest of them
  uint64_t unbuilt_for = 0;  // a worker that would measure, if somebody built
  const std::vector<const WorkerPool*> all = fleet.WorkersOf(pool.kind.tenant);
  for (const WorkerPool* of : all) living += of->members.size() - of->lost.size();
  for (const WorkerPool* of : pool.workers) {
    fitting += of->members.size() - of->lost.size();
    if (of->kind.role == WorkerRole::kMeasure && !fleet.HasBuilder(of->kind.tenant)) {
      if (!of->ready.empty()) unbuilt_for = *of->ready.begin();
      continue;
    }
    ready += of->ready.size();
    waiting += of->waiting.size();
    not_quiet += static_cast<size_t>(of->not_quiet);
    if (!of->waiting.empty()) waits = std::max(waits, *of->waiting.rbegin());
  }
  if (living == 0) return {v1::HOLD_UP_NO_WORKER, NoWorkerText(all)};
  if (fitting == 0) return {v1::HOLD_UP_NO_FITTING_WORKER, MisfitText(pool.kind, living, all)};
  if (ready == 0 && unbuilt_for != 0) {
    return {v1::HOLD_UP_NO_WORKER, absl::StrCat("no worker builds for worker ",
                                                workers.at(unbuilt_for).hello.worker_name(), ", which only measures")};
  }
  if (ready == 0) return {v1::HOLD_UP_NO_WORKER, "every worker that fits is about to end"};
  if (waiting < ready) return {v1::HOLD_UP_NONE, ""};
  const Worker& worker = workers.at(waits);
  return {not_quiet == ready ? v1::HOLD_UP_NOT_QUIET : v1::HOLD_UP_TURN,
          absl::StrCat("worker ", worker.hello.worker_name(), " waits for ", worker.waiting_for)};
}

std::string Dispatcher::Impl::NoWorkerText(const std::vector<const WorkerPool*>& all) const {
  std::string lost;
  for (const WorkerPool* pool : all) {
    for (const uint64_t id : pool->lost) {
      absl::StrAppend(&lost, lost.empty() ? "no worker is connected: " : ", ", workers.at(id).hello.worker_name());
      if (lost.size() > kLongestList) return lost + " and others were lost";
    }
  }
  return lost.empty() ? "no worker is connected" : lost + " was lost";
}

std::string Dispatcher::Impl::MisfitText(const JobKind& job, size_t living,
                                         const std::vector<const WorkerPool*>& all) const {
  std::string misfits;
  for (const WorkerPool* pool : all) {
    for (const uint64_t id : pool->members) {
      if (misfits.size() > kLongestList) break;
      if (pool->lost.count(id) != 0) continue;
      const bool builds_only = pool->kind.role == WorkerRole::kBuild;
      absl::StrAppend(&misfits, "; ", workers.at(id).hello.worker_name(),
                      builds_only
                          ? " only builds"
                          : absl::StrCat(" has ", pool->kind.device_class, ", ", pool->kind.threads, " threads"));
    }
  }
  return absl::StrCat("none of the ", living, " workers fits: the job needs target ",
                      job.target.empty() ? "cpu:native" : job.target, ", ", std::max(1, job.threads), " threads",
                      job.bound() ? absl::StrCat(", device class ", job.device_class) : "", misfits);
}

}  // namespace hone
