// A worker's call: what it says it holds, what it should hold, and when its call, that is held, is answered.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "compiler/support/printable.h"
#include "tuner/dispatch/dispatcher_impl.h"
#include "tuner/dispatch/state/prefetch.h"

namespace hone {
namespace {

constexpr uint32_t kLongestQuietMs = 120'000;
constexpr size_t kMostWaitingForBytes = 1 << 10;  // others are shown it beside that of all workers, in one message

// Before its results are taken over.
OpenCall OpenedBy(const Sync& event) {
  const v1::SyncRequest& request = event.request;
  OpenCall call{.to = event.to,
                .draining = request.draining(),
                .gave_back = request.given_back_size() > 0,
                .built = request.built_size() > 0};
  call.held.reserve(static_cast<size_t>(request.held_size()));
  for (const v1::LeaseState& held : request.held()) call.held.push_back(TokenOf(held.id()));
  call.reported.reserve(static_cast<size_t>(request.results_size()));
  for (const v1::TrialResult& result : request.results()) call.reported.push_back(TokenOf(result.id()));
  for (std::vector<LeaseToken>* named : {&call.held, &call.reported}) {
    std::ranges::sort(*named);
    named->erase(std::unique(named->begin(), named->end()), named->end());
  }
  call.building = request.building();
  return call;
}

}  // namespace

bool OpenCall::Named(const LeaseToken& lease) const {
  return std::ranges::binary_search(held, lease) || std::ranges::binary_search(reported, lease);
}

void Dispatcher::Impl::PrefetchFor(const v1::SyncRequest& request) {
  absl::InlinedVector<const Trial*, 8> reported;
  for (const v1::TrialResult& result : request.results()) {
    Prefetch(result.outcome());
    const auto trial = leases.trials().find(result.id().trial());
    if (trial == leases.trials().end()) continue;
    Prefetch(trial->second);
    reported.push_back(&trial->second);
  }
  for (const v1::TrialResult& result : request.results()) Prefetch(result.outcome().timing());
  for (const Trial* trial : reported) {
    Prefetch(jobs.at(trial->job));
    Prefetch(KeyOf(*trial));
    Prefetch(leases.OfJobNumber(trial->job));
    Prefetch(leases.OfKeyNumber(trial->key));
  }
  for (const Trial* trial : reported) {
    Prefetch(jobs.at(trial->job).TaskOfId(trial->row.task));
    KeyOf(*trial).PrefetchTrace(trial->row.trace);
  }
}

void Dispatcher::Impl::On(Sync& event) {
  v1::SyncRequest& request = event.request;
  Worker* worker = FindSession(event.tenant, request.session());
  if (worker == nullptr) {
    v1::SyncReply reply;
    reply.set_unknown_session(true);
    reply.set_shut_down(shutting_down);
    return ReplyNow(event.to, reply);
  }
  utc = event.utc;
  touched.workers.insert(worker->id);
  worker->last_seen = now;
  const uint32_t quiet_ms = std::min(request.quiet_ms(), kLongestQuietMs);
  worker->silent_until = now + Micros{options.lease_ms} * 1000 + Micros{quiet_ms} * 1000;
  PrefetchFor(request);
  OpenCall call = OpenedBy(event);
  for (v1::TrialResult& result : *request.mutable_results()) {
    if (!TakeResult(*worker, result)) call.unjudged.push_back(std::move(result));
  }
  for (const v1::BuildResult& result : request.built()) TakeBuilt(*worker, result);
  if (request.seq() < worker->seq) {
    // Overtaken by a newer call: what it says of leases is old, its results are not.
    return ReplyNow(event.to, DesiredState(*worker, call));
  }
  if (worker->waiting.has_value()) AnswerSync(*worker);
  worker->seq = request.seq();
  worker->draining = request.draining() || worker->drain_asked;
  worker->silent_since = 0;
  worker->waiting_for = Utf8Prefix(request.waiting_for(), kMostWaitingForBytes);
  worker->not_quiet = request.not_quiet();
  ChargeWallTime(*worker, request);
  for (const v1::LeaseId& id : request.given_back()) GiveBack(*worker, id);
  NoteCredits(*worker, request, TakeHeld(*worker, request));
  worker_by_call[event.to] = worker->id;
  worker->quiet_until = now + Micros{quiet_ms} * 1000;
  call.answer_by = std::max(now + Micros{options.sync_hold_ms} * 1000, worker->quiet_until);
  worker->waiting = std::move(call);
}

SortedIds Dispatcher::Impl::TakeHeld(Worker& worker, const v1::SyncRequest& request) {
  SortedIds said;
  for (const v1::LeaseState& held : request.held()) {
    Trial* trial = leases.Find(held.id().trial());
    if (trial == nullptr || !Serves(worker.tenant, trial->row.key.tenant)) continue;
    if (TokenOf(held.id()) != TokenOf(trial->row) || !Holds(worker, held.id(), trial->row)) continue;
    if (trial->place == Trial::Place::kOrphan) leases.Adopt(*trial, worker.id);
    if (trial->place != Trial::Place::kLent || trial->worker != worker.id) continue;
    said.insert(trial->row.id);
    trial->phase = held.phase();
    if (!trial->under_work()) {
      trial->working_since = 0;
    } else if (trial->working_since == 0) {
      trial->working_since = now;
    }
    worker.last_job = trial->job;
  }
  NoteStuckAt(worker);
  return said;
}

void Dispatcher::Impl::NoteCredits(Worker& worker, const v1::SyncRequest& request, const SortedIds& said) {
  const auto wanted = [&](uint32_t credits) {
    return std::min<int>(static_cast<int>(std::min<uint32_t>(credits, 1u << 20)), options.max_credits);
  };
  int untold = 0;  // given to it, but the answer that said so was lost or is on its way
  for (const uint64_t id : leases.HeldBy(worker.id)) untold += said.count(id) == 0;
  const auto builds_untold =
      static_cast<int>(builds.LentTo(worker.id).size() - BuildsSaid(worker, request.building()).size());
  const bool only_builds = worker.role() == WorkerRole::kBuild;
  worker.credits = only_builds ? 0 : std::max(0, wanted(request.credits()) - untold);
  worker.build_credits = 0;
  if (worker.role() != WorkerRole::kMeasure) {
    const uint32_t offered = only_builds ? request.credits() : request.build_credits();
    worker.build_credits = std::max(0, wanted(offered) - builds_untold);
  }
}

void Dispatcher::Impl::ChargeWallTime(Worker& worker, const v1::SyncRequest& request) {
  const auto risen = [](double& before, double after) {
    if (!std::isfinite(after) || after <= before) return 0.0;
    return after - std::exchange(before, after);
  };
  const double build = risen(worker.build_seconds, request.build_seconds());
  const double verify = risen(worker.verify_seconds, request.verify_seconds());
  const double measure = risen(worker.measure_seconds, request.measure_seconds());
  if (build + verify + measure <= 0) return;
  worker.reports_wall_time = true;
  // Shared by the jobs whose trials it has in hand, by their number; with none in hand it was the last one's.
  std::map<uint64_t, int> trials_of_job;
  int total = 0;
  for (const auto& held : request.held()) {
    const Trial* trial = leases.Find(held.id().trial());
    if (trial == nullptr || trial->worker != worker.id) continue;
    ++trials_of_job[trial->job];
    ++total;
  }
  if (total == 0) total = trials_of_job[worker.last_job] = 1;
  for (const auto& [id, count] : trials_of_job) {
    const auto found = jobs.find(id);
    if (found == jobs.end()) continue;
    Job& job = found->second;
    const double share = static_cast<double>(count) / total;
    job.row.build_seconds += build * share;
    job.row.verify_seconds += verify * share;
    job.row.measure_seconds += measure * share;
    double& busy = job.busy_by_worker[worker.id];
    busy += (build + verify + measure) * share;
    job.busiest = std::max(job.busiest, busy);
    job.row.busy_seconds = job.busy_before + job.busiest;
  }
}

// The whole of what the worker should hold and may forget. Complete every time: a lost or late answer does no harm.
v1::SyncReply Dispatcher::Impl::DesiredState(Worker& worker, const OpenCall& call) {
  v1::SyncReply reply;
  const SortedIds& held = leases.HeldBy(worker.id);
  reply.mutable_keep()->Reserve(static_cast<int>(held.size()));
  for (const uint64_t id : held) {
    const Trial& trial = *leases.Find(id);
    if (!trial.granted) continue;
    *reply.add_keep() = IdOf(trial.row);
    if (!call.Named(TokenOf(trial.row))) *reply.add_want() = MakeLease(trial);
  }
  for (const auto& [report, verdict] : std::exchange(worker.verdicts, {})) {
    if (verdict == v1::REPORT_REFUSAL_UNSPECIFIED) {
      *reply.add_acked() = IdOf(report);
      continue;
    }
    v1::RefusedReport& refused = *reply.add_refused();
    *refused.mutable_id() = IdOf(report);
    refused.set_why(verdict);
  }
  AddBuilds(worker, call.building, &reply);
  reply.set_shut_down(shutting_down);
  reply.set_drain(worker.drain_asked);
  return reply;
}

// Whether its call, that is held, has something to be answered with.
bool Dispatcher::Impl::HasNews(const Worker& worker) const {
  if (!worker.waiting.has_value()) return false;
  const OpenCall& call = *worker.waiting;
  if (shutting_down || call.answer_by <= now) return true;
  if (IsQuiet(worker)) return false;
  if (!worker.verdicts.empty()) return true;
  if ((worker.drain_asked && !worker.drain_told) || call.gave_back) return true;
  if (HasBuildNews(worker)) return true;
  const SortedIds& held = leases.HeldBy(worker.id);
  if (call.draining && HeldBy(worker) == 0) return true;  // it may end
  size_t kept = 0;
  for (const uint64_t id : held) {
    const Trial& trial = leases.trials().at(id);
    const bool named = std::ranges::binary_search(call.held, TokenOf(trial.row));
    if (trial.granted && !named) return true;
    kept += named;
  }
  return kept < call.held.size();  // others are to be dropped
}

void Dispatcher::Impl::AnswerSync(Worker& worker) {
  if (!worker.waiting.has_value()) return;
  ReplyNow(worker.waiting->to, DesiredState(worker, *worker.waiting));
  worker.drain_told = worker.drain_asked;
  EndWait(worker);
}

void Dispatcher::Impl::On(const CallGone& event) {
  const auto found = worker_by_call.find(event.to);
  if (found != worker_by_call.end()) EndWait(workers.at(found->second));
  if (const Build* build = builds.OfCall(event.to)) builds.Remove(build->id);
}

void Dispatcher::Impl::EndWait(Worker& worker) {
  worker_by_call.erase(worker.waiting->to);
  worker.waiting.reset();
  worker.silent_since = now;
  touched.workers.insert(worker.id);
}

}  // namespace hone
