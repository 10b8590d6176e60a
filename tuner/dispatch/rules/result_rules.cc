// What an outcome changes: the trial's end, its record, the champion, the accounts.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "tuner/dispatch/dispatcher_impl.h"
#include "tuner/dispatch/rules/outcome_check.h"
#include "tuner/dispatch/state/roofline.h"

namespace hone {
namespace {

constexpr Micros kFirstBackOff = 1'000'000, kLongestBackOff = 64'000'000;
constexpr double kBearsOut = 1.5;  // two honest medians of one kernel in two processes on a machine that is not quiet
constexpr double kSiblingsApart = 1.25;  // of the same work, but for what is fused behind it, by the same defaults

// Doubles with each failure before.
Micros BackOff(int failures_before, Micros longest) {
  return std::min(kFirstBackOff << std::min(failures_before, 16), longest);
}

double SecondsOf(const v1::Outcome& outcome) {
  return outcome.build_seconds() + outcome.verify_seconds() + outcome.measure_seconds();
}

}  // namespace

bool Dispatcher::Impl::Holds(Worker& worker, const v1::LeaseId& id, const TrialRow& row) {
  if (id.secret() == row.secret) return true;
  ++worker.refused_reports;
  return false;
}

bool Dispatcher::Impl::TakeResult(Worker& worker, v1::TrialResult& result) {
  const ReportedLease report{TokenOf(result.id()), result.id().secret()};
  const LeaseToken& token = report.token;
  if (becoming_durable.count(token) != 0) return true;  // said already, acked once it is durable
  Trial* trial = leases.Find(token.trial);
  // A late result is as good as any until the trial is lent again: the attempt it names must be the latest, unanswered.
  if (trial != nullptr && !Serves(worker.tenant, trial->row.key.tenant)) trial = nullptr;
  const bool current = trial != nullptr && TokenOf(trial->row) == token && token.attempt > 0 && !trial->answered;
  if (!current || !Holds(worker, result.id(), trial->row)) {
    Refuse(worker, report, current ? v1::REPORT_REFUSAL_NOT_HOLDER : v1::REPORT_REFUSAL_OVER);
    return true;
  }
  if (!KeyOf(*trial).loaded()) {  // after a restart: judged when the history is there
    awaiting_history[trial->key].insert(worker.id);
    return false;
  }
  Job& job = jobs.at(trial->job);
  touched.jobs.insert(trial->job);
  const double lower_bound_us = job.TaskOfId(trial->row.task).lower_bound_us;
  v1::Outcome outcome =
      CheckedOutcome(std::move(*result.mutable_outcome()), ImplausibleBelowUs(lower_bound_us, job.limits_agreed));
  counters.results.at(static_cast<size_t>(outcome.kind())) += 1;
  std::vector<Write>& writes = step_writes;
  writes.reserve(kUsualWrites);  // rows are large to move
  job.virtual_seconds += SecondsOf(outcome) / job.share();
  accounts.Charge(job.row.tenant, SecondsOf(outcome));
  if (!worker.reports_wall_time) {
    job.row.build_seconds += outcome.build_seconds();
    job.row.verify_seconds += outcome.verify_seconds();
    job.row.measure_seconds += outcome.measure_seconds();
    job.row.busy_seconds += SecondsOf(outcome);
    job.busy_before += SecondsOf(outcome);
  }
  const bool unmeasured =
      (outcome.kind() == v1::OUTCOME_INFRA || outcome.kind() == v1::OUTCOME_CANCELLED) && !IsSameCode(*trial, outcome);
  const bool again = unmeasured && static_cast<int>(trial->row.attempt) < options.max_attempts && !job.ending;
  // It is the latest word on the machine: one failure among results is an accident, failures alone hold the job up.
  job.worker_fault = outcome.kind() == v1::OUTCOME_INFRA ? outcome.detail() : "";
  NoteFault(worker, outcome.kind());
  NoteMissingLayers(worker, job);
  if (again) {
    trial->answered = true;
    if (!trial->waits()) TryAgain(*trial, worker, outcome.kind());
  } else if (job.ending && unmeasured) {
    DropTrial(token.trial, writes);
  } else {
    ++worker.trials;
    EndTrial(*trial, outcome, &worker, writes);
  }
  writes.push_back(
      AddMeasurement{{token.trial, token.attempt, token.epoch, ToText(*worker.reporter), std::move(outcome)}});
  becoming_durable.insert(token);
  CommitThen({}, Tell(worker, report, v1::REPORT_REFUSAL_UNSPECIFIED));
  return true;
}

void Dispatcher::Impl::TryAgain(Trial& trial, const Worker& failed, v1::OutcomeKind kind) {
  const Micros not_before = now + BackOff(static_cast<int>(trial.row.attempt) - 1, kLongestBackOff);
  // A duel that waits for another than who measured the challenger goes on to do so.
  if (kind == v1::OUTCOME_INFRA && trial.kept_from.until <= now) {
    const bool another = AnotherWorkerFits(failed.hello.worker_name(), jobs.at(trial.job));
    trial.kept_from = {.who = *failed.reporter,
                       .until = another ? not_before + Micros{options.second_worker_ms} * 1000 : 0};
  }
  leases.Requeue(trial, not_before, now);
}

// Each once, in the order they were first missed; as many as there can be, since a worker may say what it likes.
void Dispatcher::Impl::NoteMissingLayers(const Worker& worker, Job& job) {
  constexpr int kMostLayers = 32;
  constexpr size_t kMostBytes = 64;
  v1::SubmitRequest& request = job.row.request;
  for (const std::string& layer : worker.hello.missing_layers()) {
    const auto& noted = request.missing_layers();
    if (noted.size() >= kMostLayers || layer.size() > kMostBytes) continue;
    if (std::find(noted.begin(), noted.end(), layer) != noted.end()) continue;
    request.add_missing_layers(layer);
    changed_jobs.insert(job.row.id);
  }
}

// A worker that fails at everything would take the candidates from those that do not.
void Dispatcher::Impl::NoteFault(Worker& worker, v1::OutcomeKind kind) {
  if (kind == v1::OUTCOME_CANCELLED) return;  // says nothing of its machine
  worker.faults = kind == v1::OUTCOME_INFRA ? worker.faults + 1 : 0;
  const int too_many = worker.faults - options.faulty_after;
  worker.rests_until = too_many < 0 ? 0 : now + BackOff(too_many, Micros{options.longest_rest_ms} * 1000);
}

// The worker is to forget a result whose lease is over only once what ended it is durable.
void Dispatcher::Impl::Refuse(Worker& worker, ReportedLease report, v1::ReportRefusal why) {
  ++counters.superseded;
  const std::function<void()> tell = Tell(worker, std::move(report), why);
  if (after_commit.empty() && step_writes.empty() && step_after.empty()) {
    tell();
  } else {
    CommitThen({}, tell);
  }
}

std::function<void()> Dispatcher::Impl::Tell(const Worker& worker, ReportedLease report, v1::ReportRefusal verdict) {
  return [this, report = std::move(report), verdict, tenant = worker.tenant, session = worker.hello.session()] {
    if (verdict == v1::REPORT_REFUSAL_UNSPECIFIED) becoming_durable.erase(report.token);
    Worker* reporter = FindSession(tenant, session);
    if (reporter == nullptr) return;
    // A report that came twice, and was too late the second time, is durable all the same.
    const auto told = reporter->verdicts.emplace(report, verdict).first;
    if (verdict == v1::REPORT_REFUSAL_UNSPECIFIED) told->second = verdict;
    touched.workers.insert(reporter->id);
  };
}

void Dispatcher::Impl::EndTrial(Trial& trial, v1::Outcome& outcome, const Worker* worker, std::vector<Write>& writes) {
  KeyState& key = KeyOf(trial);
  trial.row.state = TrialState::kDone;
  trial.row.kind = outcome.kind();
  trial.row.median_us = outcome.kind() == v1::OUTCOME_OK ? outcome.timing().median_us() : 0;
  const TrialRow& row = trial.row;
  const uint64_t trial_id = row.id, job_id = trial.job;
  Job& job = jobs.at(job_id);
  const size_t of_trial = writes.size();
  writes.emplace_back(PutTrial{});
  if (row.source == kCheckSource) {
    EndCheck(trial, outcome, worker, writes);
  } else if (row.duel) {
    const uint64_t champion = key.best_record();
    EndDuel(trial, outcome, worker, writes);
    if (job.ending && key.best_record() == champion) ++job.last_duels_lost[key.number];
    key.EndDoubt(row.trace, options);
    key.EndDoubts(options);
  } else {
    const bool verified = row.kind == v1::OUTCOME_OK;
    TaskRow& task = job.TaskOfId(row.task);
    (verified ? task.trials : task.failed[OutcomeName(row.kind)]) += 1;
    (verified ? job.verified : job.failed) += 1;
    if (verified && worker != nullptr) {
      key.ObserveTime(row.trace, worker->reporter, row.median_us, SecondsOf(outcome), options);
    } else {
      key.Observe(row.trace, row.kind, row.median_us, SecondsOf(outcome), options);
    }
    if (row.kind == v1::OUTCOME_OK) {
      RecordRow record = RecordOf(row, outcome, row.median_us, worker);
      const uint64_t id = record.record.id();
      writes.push_back(PutRecord{std::move(record)});
      if (key.best_record() == 0 && !options.confirm_first) {
        key.Crown(row.trace, id, row.median_us);
        Gained(key);
        writes.push_back(SetBest{row.key, id, row.median_us});
      }
      KeepObject(id, row.key, outcome, writes);
    }
  }
  std::get<PutTrial>(writes[of_trial]).row = std::move(trial.row);
  leases.Remove(trial_id);
  job.Advance(now);
  NoteProgress(job);
  RefreshTasks(key, /*write=*/true);
}

void Dispatcher::Impl::KeepObject(uint64_t record, const TuningKey& key, v1::Outcome& outcome,
                                  std::vector<Write>& writes) {
  if (outcome.object().empty()) return;
  writes.push_back(PutObject{record, outcome.object_digest(), std::move(*outcome.mutable_object()),
                             std::move(*outcome.mutable_kernel_set())});
  writes.push_back(PruneObjects{key, options.keep_objects});
}

RecordRow Dispatcher::Impl::RecordOf(const TrialRow& row, const v1::Outcome& outcome, double us,
                                     const Worker* worker) const {
  RecordRow record{.key = row.key, .record = {}, .origin = "tuned"};
  v1::Record& r = record.record;
  r.set_id(RecordId(row.key, row.trace));
  r.set_trace(row.trace);
  r.set_median_us(us);
  r.set_low_us(outcome.timing().low_us());
  r.set_high_us(outcome.timing().high_us());
  r.set_program_hash(outcome.program_hash());
  r.set_object_digest(outcome.object_digest());
  r.set_generator(outcome.generator());
  if (worker != nullptr) {
    r.set_target(worker->hello.profile().target());
    r.set_driver(DriverOf(worker->hello.profile()));
  }
  r.set_created(utc);
  return record;
}

bool Dispatcher::Impl::DefaultIsBest(const Job& job, const KeyState& key) {
  const TaskRow* task = job.TaskOf(key);
  return task != nullptr && task->default_trace == key.best_trace();
}

const std::string* Dispatcher::Impl::ChallengerFor(const Job& job, const KeyState& key) const {
  const auto lost = job.last_duels_lost.find(key.number);
  if (lost != job.last_duels_lost.end() && lost->second >= options.last_duels && key.best_record() != 0) return nullptr;
  return key.Challenger(DefaultIsBest(job, key) ? options.default_margin : options.duel_margin);
}

bool Dispatcher::Impl::SiblingIsFaster(const KeyState& key, const std::string& trace, double us) const {
  return std::ranges::any_of(key.jobs, [&](uint64_t id) {
    const Job& job = jobs.at(id);
    const TaskRow* task = job.loaded() ? job.TaskOf(key) : nullptr;
    if (task == nullptr || task->default_trace != trace) return false;
    return std::ranges::any_of(job.SiblingsOf(*task), [&](const TaskRow* other) {
      ++counters.looked_at;
      const std::optional<double> other_us = job.KeyOf(*other).TimeOf(other->default_trace);
      return other_us.has_value() && *other_us * kSiblingsApart < us;
    });
  });
}

void Dispatcher::Impl::EndDuel(Trial& trial, v1::Outcome& outcome, const Worker* worker, std::vector<Write>& writes) {
  KeyState& key = KeyOf(trial);
  const std::string& trace = trial.row.trace;
  const std::optional<double> us = key.TimeOf(trace);
  if (outcome.kind() != v1::OUTCOME_OK || !us.has_value()) return key.MarkDuelled(trace);
  const double again = outcome.timing().median_us();
  // Where two workers measured it one of them may lie: the slower of their times counts.
  const double other_us = worker == nullptr || *worker->reporter != key.MeasuredBy(trace) ? *us : 0;
  const bool borne_out = again < *us * kBearsOut && *us < again * kBearsOut;
  const bool in_doubt = !borne_out || SiblingIsFaster(key, trace, std::min(*us, again));
  if (key.best_record() == 0 && other_us == 0 && in_doubt && key.ConfirmAgain(trace)) return;
  key.MarkDuelled(trace);
  const uint64_t record = RecordId(trial.row.key, trace);
  // A quota may have taken the challenger's record meanwhile; where it is there, this changes nothing.
  const Write kept = PutRecord{RecordOf(trial.row, outcome, *us, worker)};
  if (key.best_record() == 0) {
    // Nobody to fight: verified and measured a second time, in fresh processes. Of two times of the same worker that
    // bear each other out, as noise goes, what disturbs a machine makes one the longer. Where they do not, or a sibling
    // is so much faster that both may have been disturbed, it is measured once more, and where that does not bear out
    // the first, the last counts.
    key.Crown(trace, record, other_us == 0 && borne_out ? std::min(*us, again) : std::max(again, other_us));
    writes.push_back(kept);
    writes.push_back(SetBest{trial.row.key, record, key.best_us()});
    KeepObject(record, trial.row.key, outcome, writes);
    return;
  }
  // Taken in turn in the same minutes, the ratio is free of drift: the champion's time is lowered by it. A worker that
  // gives no ratio is believed by the time it took for the challenger.
  double ratio = outcome.duel_ratio();
  if (ratio <= 0) ratio = again / key.best_us();
  // A kernel alone and the same kernel in its model differ by some per cent, and of many equal challengers one is
  // lucky: what a model has without tuning gives way to a clear gain alone, so that tuning makes no model slower.
  const Job& job = jobs.at(trial.job);
  const TaskRow* task = job.TaskOf(key);
  const double below = DefaultIsBest(job, key) ? 1 - options.default_margin : 1;
  const bool sure = outcome.duel_ratio_high() <= 0 || outcome.duel_ratio_high() < below;
  if (!(ratio < below) || !sure) return;
  // The times that were recorded of the two say what to expect, and the device's peaks what is possible.
  const bool expected = ratio * options.disagreement > *us / key.best_us();
  const bool possible =
      task == nullptr || key.best_us() * ratio >= ImplausibleBelowUs(task->lower_bound_us, job.limits_agreed);
  if (!expected || !possible) return;
  key.Crown(trace, record, std::max(key.best_us() * ratio, other_us));
  Gained(key);
  writes.push_back(kept);
  writes.push_back(SetBest{trial.row.key, record, key.best_us()});
  KeepObject(record, trial.row.key, outcome, writes);
}

void Dispatcher::Impl::Gained(const KeyState& key) {
  ++counters.champions;
  for (const uint64_t id : key.jobs) jobs.at(id).last_gain = now;
}

void Dispatcher::Impl::RefreshTasks(KeyState& key, bool write) {
  touched.keys.insert(key.number);
  for (const uint64_t id : key.jobs) {
    Job& job = jobs.at(id);
    touched.jobs.insert(id);
    for (const size_t index : job.tasks_of_key.at(key.number)) {
      TaskRow& task = job.tasks[index];
      const std::optional<double> default_us = key.TimeOf(task.default_trace);
      // What beat the default is no slower, whatever its first time was.
      if (default_us.has_value()) task.default_us = std::max({task.default_us, *default_us, key.best_us()});
      task.best_us = key.best_us();
      if (key.best_record() != 0 && key.best_trace() == task.default_trace) task.default_us = key.best_us();
      task.record = key.best_record();
      task.state = StateOf(job, task);
      if (write) changed_tasks.insert(task.id);
    }
  }
}

bool Dispatcher::Impl::AnotherPrincipalFits(const std::string& principal, const Job& job) const {
  return std::ranges::any_of(fleet.PoolOfJob(job.row.id).workers, [&](const WorkerPool* pool) {
    return pool->alive_of.size() > pool->alive_of.count(principal);
  });
}

bool Dispatcher::Impl::AnotherWorkerFits(const std::string& worker, const Job& job) const {
  // One whose machine is not quiet, as outside its hours, would be waited for in vain at each first result.
  int64_t others = 0;
  for (const WorkerPool* pool : fleet.PoolOfJob(job.row.id).workers) {
    others += static_cast<int64_t>(pool->alive.size()) - pool->not_quiet;
  }
  for (const uint64_t tenant : {job.row.tenant, kAllTenants}) {
    for (auto next = workers_by_name.lower_bound({tenant, worker, 0});
         next != workers_by_name.end() && std::get<0>(*next) == tenant && std::get<1>(*next) == worker; ++next) {
      const Worker& named = workers.at(std::get<2>(*next));
      others -= !named.draining && !StandingOf(named).waits_for_quiet() && FitOf(named, job) == Fit::kFits;
    }
  }
  return others > 0;
}

std::optional<Dispatcher::Impl::DueDuel> Dispatcher::Impl::NextDuel(const KeyState& key) const {
  const LeaseTable::OfKey& live = leases.OfKeyNumber(key.number);
  if (!key.loaded() || live.duels > 0) return std::nullopt;
  if (const Job* job = JobToCheck(key)) return DueDuel{job, &key.best_trace(), kCheckSource};
  const bool confirms = key.best_record() == 0;
  if (confirms && !options.confirm_first) return std::nullopt;
  if (!confirms && live.candidates > 0 && key.results_since_duel < options.batch) return std::nullopt;
  for (const uint64_t id : key.jobs) {
    const Job& job = jobs.at(id);
    if (job.ended || job.row.stop_requested || job.row.request.paused() || Yields(job)) continue;
    if (const std::string* challenger = ChallengerFor(job, key))
      return DueDuel{&job, challenger, confirms ? "confirm" : "duel"};
  }
  return std::nullopt;
}

void Dispatcher::Impl::KeepFromWhoMeasured(Trial& trial, const KeyState& key, const Job& job) const {
  const Reporter& measured_by = key.MeasuredBy(trial.row.trace);
  if (measured_by.worker.empty()) return;
  const bool another = AnotherPrincipalFits(measured_by.principal, job);
  trial.kept_from = {.who = measured_by, .whole_principal = another};
  if (another || AnotherWorkerFits(measured_by.worker, job)) {
    trial.kept_from.until = now + Micros{options.second_worker_ms} * 1000;
  }
  // After a start whoever measured it may be the first to come again, under any of its names.
  if (another || !key.MeasuredBefore(trial.row.trace) || now >= AllAreBack()) return;
  trial.kept_from.whole_principal = !measured_by.principal.empty();
  trial.kept_from.until = AllAreBack();
}

void Dispatcher::Impl::QueueDuel(KeyState& key) {
  ++counters.looked_at;
  const std::optional<DueDuel> duel = NextDuel(key);
  if (!duel.has_value()) return;
  Trial trial;
  trial.key = key.number;
  trial.job = duel->job->row.id;
  trial.row = TrialRow{.id = next_trial++,
                       .key = key.key(),
                       .task = duel->job->TaskOf(key)->id,
                       .trace = *duel->challenger,
                       .source = duel->source,
                       .duel = true};
  KeepFromWhoMeasured(trial, key, *duel->job);
  leases.AddQueued(std::move(trial), /*in_front=*/true);
  key.results_since_duel = 0;
}

}  // namespace hone
