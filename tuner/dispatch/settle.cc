// After an event: which rules are applied to whom. Each rule looks at what was touched, never at all jobs or workers;
// what it changes is touched in turn, until nothing is left. Time touches by deadlines.
#include <algorithm>
#include <limits>

#include "compiler/support/check.h"
#include "tuner/dispatch/dispatcher_impl.h"

namespace hone {
namespace {

Micros Milliseconds(uint32_t ms) { return Micros{ms} * 1000; }

}  // namespace

void Dispatcher::Impl::Settle() {
  MeetDeadlines();
  BeginChecks();
  std::set<uint64_t> to_answer;
  while (touched.any()) {
    Touched& batch = TakeTouched();
    File(batch);
    UpdateHoldUps(batch);
    for (const uint64_t id : batch.jobs) {
      const auto found = jobs.find(id);
      if (found == jobs.end() || found->second.ended) continue;
      Job& job = found->second;
      ++counters.looked_at;
      if (!job.bound()) BindJob(job);
      UpdateJobState(job);
      EndJob(job);
      FileJob(job);
      NoteWhetherItAsks(job);
    }
    for (const uint64_t number : batch.keys) {
      const auto found = key_by_number.find(number);
      if (found != key_by_number.end()) QueueDuel(*found->second);
    }
    LendTrials(batch);
    LendBuilds(batch);
    AskForCandidates();
    BeginChecks();
    to_answer.insert(batch.workers.begin(), batch.workers.end());
  }
  for (const uint64_t id : to_answer) {
    const auto found = workers.find(id);
    if (found == workers.end()) continue;
    ++counters.looked_at;
    if (HasNews(found->second)) AnswerSync(found->second);
  }
  File(TakeTouched());  // nobody but the workers
}

Touched& Dispatcher::Impl::TakeTouched() {
  settling.Clear();
  std::swap(settling, touched);
  settling.Sort();
  return settling;
}

// ---- filing: what the index and the deadlines say of a worker, a job, a trial ----

void Dispatcher::Impl::File(const Touched& batch) {
  for (const uint64_t id : batch.trials) FileTrial(id);
  for (const uint64_t id : batch.builds) FileBuild(id);
  for (const uint64_t id : batch.workers) {
    const auto found = workers.find(id);
    if (found != workers.end()) FileWorker(found->second);
  }
  // Those that have not ended are filed again when the rules were applied to them.
  for (const uint64_t id : batch.jobs) {
    const auto found = jobs.find(id);
    if (found != jobs.end() && (found->second.ended || !fleet.HasJob(id))) FileJob(found->second);
  }
}

void Dispatcher::Impl::FileWorker(const Worker& worker) {
  fleet.FileWorker(worker.id, worker.kind, StandingOf(worker));
  deadlines.Set(Deadlines::Of::kWorker, worker.id, DeadlineOf(worker));
}

void Dispatcher::Impl::FileJob(const Job& job) {
  fleet.FileTenant(job.row.tenant, ChargeOf(job.row.tenant));
  fleet.FileJob(job.row.id, job.kind, StandingOf(job));
  deadlines.Set(Deadlines::Of::kJob, job.row.id, DeadlineOf(job));
}

void Dispatcher::Impl::FileTrial(uint64_t id) {
  const Trial* trial = leases.Find(id);
  deadlines.Set(Deadlines::Of::kTrial, id, trial == nullptr ? Deadlines::kNever : DeadlineOf(*trial));
}

void Dispatcher::Impl::FileBuild(uint64_t id) {
  const Build* build = builds.Find(id);
  deadlines.Set(Deadlines::Of::kBuild, id, build == nullptr ? Deadlines::kNever : DeadlineOf(*build));
}

WorkerRole Worker::role() const {
  if (hello.can_build() == hello.can_measure()) return WorkerRole::kBoth;
  return hello.can_build() ? WorkerRole::kBuild : WorkerRole::kMeasure;
}

WorkerKind Worker::MakeKind() const {
  if (role() == WorkerRole::kBuild) return BuilderKind(tenant);
  return {.tenant = tenant,
          .role = role(),
          .device_class = hello.profile().device_class(),
          .target = hello.profile().target(),
          .protocol = hello.measure_protocol(),
          .threads = hello.threads()};
}

WorkerStanding Dispatcher::Impl::StandingOf(const Worker& worker) const {
  return {.lost = IsLost(worker),
          .draining = worker.draining,
          .hungry = MayTake(worker),
          .not_quiet = worker.not_quiet,
          .reporter = worker.reporter,
          .waiting_for = worker.waiting_for,
          .credits = worker.credits,
          .held = static_cast<int>(leases.HeldBy(worker.id).size()),
          .builds = Builds(worker),
          .may_build = MayBuild(worker)};
}

JobStanding Dispatcher::Impl::StandingOf(const Job& job) const {
  const LeaseTable::OfJob& out = leases.OfJobNumber(job.row.id);
  const bool works = !Yields(job) && !job.ended && !job.row.request.paused() && job.loaded();
  return {.open = !job.ended,
          .active = works && !job.ending,
          .ready = works && !out.heads.empty(),
          .charged = job.virtual_seconds,
          .charged_and_lent = job.virtual_seconds + kUsualSeconds * out.lent / job.share()};
}

Micros Dispatcher::Impl::DeadlineOf(const Worker& worker) const {
  Micros due = std::min(worker.silent_until + 1, worker.stuck_at);
  if (worker.waiting.has_value()) due = std::min(due, IsQuiet(worker) ? worker.quiet_until : worker.waiting->answer_by);
  if (worker.rests_until > now) due = std::min(due, worker.rests_until);
  if (worker.silent_since > 0 && !IsLost(worker)) {
    due = std::min(due, worker.silent_since + Milliseconds(options.lost_after_ms));
  }
  return due;
}

Micros Dispatcher::Impl::DeadlineOf(const Trial& trial) const {
  switch (trial.place) {
    case Trial::Place::kOrphan: return trial.orphan_until;
    case Trial::Place::kDelayed: return trial.not_before;
    case Trial::Place::kQueued: return trial.kept_from.until > now ? trial.kept_from.until : Deadlines::kNever;
    case Trial::Place::kLent: break;  // its worker has it: Worker::stuck_at
  }
  return Deadlines::kNever;
}

Micros Dispatcher::Impl::DeadlineOf(const Job& job) const {
  const double limit = job.row.request.max_seconds();
  if (limit <= 0 || job.ending || job.ended || job.row.request.paused()) return Deadlines::kNever;
  // A limit beyond 30 years is none, and would not fit.
  const double left = std::clamp(limit - job.row.seconds, 0.0, 1e9);
  return job.clock + static_cast<Micros>(left * 1e6) + 1;
}

// ---- time ----

void Dispatcher::Impl::MeetDeadlines() {
  for (const auto& [kind, id] : deadlines.Due(now)) {
    if (kind == Deadlines::Of::kJob) touched.jobs.insert(id);
    if (kind == Deadlines::Of::kAsking) touched.jobs.insert(NextToAsk());
    if (kind == Deadlines::Of::kWorker) {
      touched.workers.insert(id);
      const auto found = workers.find(id);
      if (found == workers.end()) continue;
      Worker& worker = found->second;
      if (worker.stuck_at <= now) TakeBackStuck(worker);
      if (worker.silent_until < now) ExpireWorker(id);
    }
    if (kind == Deadlines::Of::kTrial) {
      touched.trials.insert(id);
      if (Trial* trial = leases.Find(id)) MeetDeadline(*trial);
    }
    if (kind == Deadlines::Of::kBuild) {
      touched.builds.insert(id);
      if (Build* build = builds.Find(id)) MeetDeadline(*build);
    }
  }
}

void Dispatcher::Impl::MeetDeadline(Trial& trial) {
  switch (trial.place) {
    case Trial::Place::kDelayed:
      if (trial.not_before <= now) leases.EndDelay(trial);
      return;
    case Trial::Place::kQueued:  // whoever measured it before may have it now, but for those who came back meanwhile
      if (trial.row.duel && trial.kept_from.until == AllAreBack()) {
        KeepFromWhoMeasured(trial, KeyOf(trial), jobs.at(trial.job));
      }
      touched.jobs.insert(trial.job);
      return;
    case Trial::Place::kOrphan:
      // Its worker may be well and only this daemon was away: that does not count against the candidate.
      if (trial.orphan_until > now) return;
      if (trial.row.duel) KeepFromWhoMeasured(trial, KeyOf(trial), jobs.at(trial.job));
      TakeBack(trial, /*worker_was_lost=*/false);
      return;
    case Trial::Place::kLent: return;
  }
}

Micros Dispatcher::Impl::StuckAt(const Trial& trial) const {
  return trial.working_since > 0 ? trial.working_since + Milliseconds(options.stuck_ms) : Deadlines::kNever;
}

void Dispatcher::Impl::NoteStuckAt(Worker& worker) {
  worker.stuck_at = Deadlines::kNever;
  for (const uint64_t id : leases.HeldBy(worker.id)) {
    worker.stuck_at = std::min(worker.stuck_at, StuckAt(*leases.Find(id)));
  }
}

// As if its worker were lost over them.
void Dispatcher::Impl::TakeBackStuck(Worker& worker) {
  for (const uint64_t id : SortedIds(leases.HeldBy(worker.id))) {
    Trial& trial = *leases.Find(id);
    if (StuckAt(trial) <= now) TakeBack(trial, /*worker_was_lost=*/true);
  }
  NoteStuckAt(worker);
}

// ---- what must hold ----

void Dispatcher::Impl::CheckInvariants() const {
  leases.CheckInvariants();
  builds.CheckInvariants();
  fleet.CheckInvariants();
  for (const auto& [id, trial] : leases.trials()) {
    HONE_CHECK(jobs.count(trial.job) != 0) << "trial " << id << " of job " << trial.job << ", which is gone";
    HONE_CHECK(static_cast<int>(trial.row.attempt) <= options.max_attempts) << "trial " << id;
    const auto key = keys.find(trial.row.key);
    HONE_CHECK(key != keys.end() && key->second.number == trial.key) << "trial " << id << " without a key";
    HONE_CHECK(trial.row.duel || !key->second.loaded() || key->second.Knows(trial.row.trace)) << "trial " << id;
    if (trial.place == Trial::Place::kLent) {
      HONE_CHECK(workers.count(trial.worker) != 0) << "trial " << id << " held by a lost worker";
      HONE_CHECK(workers.at(trial.worker).stuck_at <= StuckAt(trial)) << "trial " << id << " may be stuck for ever";
    }
  }
  for (const auto& [id, build] : builds.builds()) {
    const Worker& asker = workers.at(build.asker);
    HONE_CHECK(asker.tenant == build.tenant && asker.role() == WorkerRole::kMeasure) << "build " << id;
    if (build.builder == 0) continue;
    const Worker& builder = workers.at(build.builder);
    HONE_CHECK(builder.tenant == build.tenant && builder.role() != WorkerRole::kMeasure) << "build " << id;
  }
  for (const auto& [request, key] : key_by_search) HONE_CHECK(key->search_request == request) << "search " << request;
  HONE_CHECK(key_by_number.size() == keys.size());
  for (const auto& [key, state] : keys) {
    HONE_CHECK(key_by_number.at(state.number) == &state && !state.jobs.empty()) << "key " << state.number;
    HONE_CHECK(state.best_record() == 0 || state.Knows(state.best_trace())) << "champion nobody knows";
    HONE_CHECK(state.search_request == 0 || key_by_search.at(state.search_request) == &state)
        << "search " << state.search_request;
  }
  for (const auto& [session, id] : worker_by_session) HONE_CHECK(workers.count(id) != 0) << "session of worker " << id;
  HONE_CHECK(worker_by_session.size() == workers.size() && workers_by_name.size() == workers.size());
  CheckNothingIsLeft();
}

// Applies every rule to everything: what was not touched must not have wanted it.
void Dispatcher::Impl::CheckNothingIsLeft() const {
  HONE_CHECK(!touched.any());
  for (const auto& [id, worker] : workers) {
    HONE_CHECK(worker.silent_until >= now && !HasNews(worker)) << "worker " << id;
    HONE_CHECK(fleet.StandingOfWorker(id) == StandingOf(worker)) << "worker " << id;
    HONE_CHECK(fleet.PoolOfWorker(id).kind == worker.MakeKind()) << "worker " << id;
    HONE_CHECK(deadlines.Get(Deadlines::Of::kWorker, id) == DeadlineOf(worker)) << "worker " << id;
  }
  for (const auto& [id, trial] : leases.trials()) {
    HONE_CHECK(deadlines.Get(Deadlines::Of::kTrial, id) == DeadlineOf(trial)) << "trial " << id;
    if (trial.place != Trial::Place::kQueued || shutting_down) continue;
    const Job& job = jobs.at(trial.job);
    if (!StandingOf(job).ready) continue;
    for (const auto& [who, worker] : workers) {
      const bool takes = !IsKeptFrom(trial, worker) && MayTake(worker) && FitOf(worker, job) == Fit::kFits;
      HONE_CHECK(!takes) << "trial " << id << " waits, and so does worker " << who;
    }
  }
  for (const auto& [id, build] : builds.builds()) {
    HONE_CHECK(deadlines.Get(Deadlines::Of::kBuild, id) == DeadlineOf(build)) << "build " << id;
    for (const auto& [who, worker] : workers) {
      const bool takes = build.builder == 0 && !shutting_down && worker.tenant == build.tenant && MayBuild(worker);
      HONE_CHECK(!takes) << "build " << id << " waits, and so does worker " << who;
    }
  }
  for (const auto& [id, job] : jobs) {
    HONE_CHECK(fleet.StandingOfJob(id) == StandingOf(job) && fleet.PoolOfJob(id).kind == job.MakeKind())
        << "job " << id;
    HONE_CHECK(fleet.ChargeOf(job.row.tenant) == ChargeOf(job.row.tenant)) << "tenant of job " << id;
    HONE_CHECK(deadlines.Get(Deadlines::Of::kJob, id) == DeadlineOf(job)) << "job " << id;
    HONE_CHECK(job.ended || job.ending || !EndReason(job).has_value()) << "job " << id << " should end";
    HONE_CHECK(job.ended || !job.ending || WaitsForTrials(job) || !job.open_parts.empty())
        << "job " << id << " has nothing to wait for";
    for (const uint64_t part : job.open_parts) {
      HONE_CHECK(!job.ended && jobs.at(part).row.request.part_of() == id) << "job " << id << ", part " << part;
    }
    const JobPool& pool = fleet.PoolOfJob(id);
    HONE_CHECK(WhatHoldsUp(pool) == std::pair(pool.hold_up, pool.held_up_by))
        << "job " << id << ": " << pool.held_up_by << ", and now " << WhatHoldsUp(pool).second;
    const auto [hold_up, words] = WhatHoldsUp(job);
    HONE_CHECK(job.ended || (job.hold_up == hold_up && job.held_up_by == words)) << "job " << id << ": " << words;
  }
  accounts.CheckInvariants();
  const bool may_ask = !shutting_down && static_cast<int>(key_by_search.size()) < options.searches && !asking.empty();
  HONE_CHECK(!may_ask || deadlines.Get(Deadlines::Of::kAsking, 0) != Deadlines::kNever);
  for (const auto& [tuning_key, key] : keys) HONE_CHECK(!NextDuel(key).has_value()) << "key " << key.number;
}

}  // namespace hone
