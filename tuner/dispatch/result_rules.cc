// What an outcome changes: the trial's end, its record, the champion, the accounts.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "tuner/dispatch/dispatcher_impl.h"
#include "tuner/dispatch/outcome_check.h"
#include "tuner/dispatch/roofline.h"

namespace hone {
namespace {

constexpr Micros kFirstBackOff = 1'000'000;
constexpr double kBearsOut = 1.5;  // two honest medians of one kernel in two processes on a machine that is not quiet

double SecondsOf(const v1::Outcome& outcome) {
  return outcome.build_seconds() + outcome.verify_seconds() + outcome.measure_seconds();
}

// Each once, in the order they were first missed; as many as there can be, since a worker may say what it likes.
void NoteMissingLayers(const v1::HelloRequest& worker, v1::SubmitRequest* job) {
  constexpr int kMostLayers = 32;
  constexpr size_t kMostBytes = 64;
  for (const std::string& layer : worker.missing_layers()) {
    const auto& noted = job->missing_layers();
    if (noted.size() >= kMostLayers || layer.size() > kMostBytes) continue;
    if (std::find(noted.begin(), noted.end(), layer) == noted.end()) job->add_missing_layers(layer);
  }
}

}  // namespace

bool Dispatcher::Impl::Holds(Worker& worker, const v1::LeaseId& id, const TrialRow& row) {
  if (id.secret() == row.secret) return true;
  ++worker.refused_reports;
  return false;
}

void Dispatcher::Impl::TakeResult(Worker& worker, const v1::TrialResult& result) {
  const LeaseToken token = TokenOf(result.id());
  if (becoming_durable.count(token) != 0) return;  // said already, acked once it is durable
  Trial* trial = leases.Find(token.trial);
  // A late result is as good as any until the trial is lent again: the attempt it names must be the latest, unanswered.
  if (trial != nullptr && trial->row.key.tenant != worker.tenant) trial = nullptr;
  const bool current = trial != nullptr && TokenOf(trial->row) == token && token.attempt > 0 && !trial->answered;
  if (!current || !Holds(worker, result.id(), trial->row)) {
    ++counters.superseded;
    worker.acks.insert(token);  // superseded, or none of its own: the worker may forget it
    return;
  }
  KeyState& key = keys.at(trial->row.key);
  if (!key.loaded()) return;  // after a restart: the worker says it again
  const TaskRow* task = nullptr;
  Job& job = jobs.at(trial->job);
  for (const TaskRow& row : job.tasks) {
    if (row.id == trial->row.task) task = &row;
  }
  HONE_CHECK(task != nullptr) << "trial " << token.trial;
  const v1::Outcome outcome = CheckedOutcome(result.outcome(), ImplausibleBelowUs(task->lower_bound_us));
  counters.results.at(static_cast<size_t>(outcome.kind())) += 1;
  std::vector<Write> writes;
  writes.push_back(AddMeasurement{{token.trial, token.attempt, token.epoch, worker.hello.worker_name(), outcome}});
  job.virtual_seconds += SecondsOf(outcome);
  if (!worker.reports_wall_time) {
    job.row.build_seconds += outcome.build_seconds();
    job.row.verify_seconds += outcome.verify_seconds();
    job.row.measure_seconds += outcome.measure_seconds();
    job.row.busy_seconds += SecondsOf(outcome);
    job.busy_before += SecondsOf(outcome);
  }
  const bool again = (outcome.kind() == v1::OUTCOME_INFRA || outcome.kind() == v1::OUTCOME_CANCELLED) &&
                     static_cast<int>(trial->row.attempt) < options.max_attempts && !job.ending;
  // It is the latest word on the machine: one failure among results is an accident, failures alone hold the job up.
  job.worker_fault = outcome.kind() == v1::OUTCOME_INFRA ? outcome.detail() : "";
  NoteMissingLayers(worker.hello, &job.row.request);
  if (again) {
    trial->answered = true;
    if (trial->place != Trial::Place::kQueued)
      leases.Requeue(*trial, now + (kFirstBackOff << std::min<uint32_t>(trial->row.attempt - 1, 6)));
  } else if (job.ending && (outcome.kind() == v1::OUTCOME_INFRA || outcome.kind() == v1::OUTCOME_CANCELLED)) {
    DropTrial(token.trial, writes);
  } else {
    ++worker.trials;
    EndTrial(*trial, outcome, &worker, writes);
  }
  becoming_durable.insert(token);
  CommitThen(std::move(writes), [this, token, tenant = worker.tenant, session = worker.hello.session()] {
    becoming_durable.erase(token);
    if (Worker* reporter = FindSession(tenant, session)) reporter->acks.insert(token);
  });
}

void Dispatcher::Impl::EndTrial(Trial& trial, const v1::Outcome& outcome, const Worker* worker,
                                std::vector<Write>& writes) {
  KeyState& key = keys.at(trial.row.key);
  trial.row.state = TrialState::kDone;
  trial.row.kind = outcome.kind();
  trial.row.median_us = outcome.kind() == v1::OUTCOME_OK ? outcome.timing().median_us() : 0;
  const TrialRow row = trial.row;
  const uint64_t job_id = trial.job;
  Job& job = jobs.at(job_id);
  writes.push_back(PutTrial{row});
  if (row.duel) {
    EndDuel(trial, outcome, writes);
  } else {
    for (TaskRow& task : job.tasks) {
      if (task.id != row.task) continue;
      if (row.kind == v1::OUTCOME_OK) ++task.trials;
      if (row.kind != v1::OUTCOME_OK) ++task.failed[OutcomeName(row.kind)];
    }
    key.Observe(row.trace, row.kind, row.median_us, SecondsOf(outcome), options);
    if (row.kind == v1::OUTCOME_OK) {
      RecordRow record{.key = row.key, .record = {}, .origin = "tuned"};
      v1::Record& r = record.record;
      r.set_id(RecordId(row.key, row.trace));
      r.set_trace(row.trace);
      r.set_median_us(outcome.timing().median_us());
      r.set_low_us(outcome.timing().low_us());
      r.set_high_us(outcome.timing().high_us());
      r.set_program_hash(outcome.program_hash());
      r.set_object_digest(outcome.object_digest());
      r.set_generator(outcome.generator());
      if (worker != nullptr) r.set_target(worker->hello.profile().target());
      r.set_created(utc);
      const uint64_t id = r.id();
      writes.push_back(PutRecord{std::move(record)});
      if (worker != nullptr) key.measured_by[row.trace] = worker->hello.worker_name();
      if (key.best_record() == 0 && !options.confirm_first) {
        key.Crown(row.trace, id, row.median_us);
        Gained(row.key);
        writes.push_back(SetBest{row.key, id, row.median_us});
      }
      KeepObject(id, row.key, outcome, writes);
    }
  }
  leases.Remove(row.id);
  job.Advance(now);
  writes.push_back(PutJob{job.row});
  RefreshTasks(row.key, &writes);
}

void Dispatcher::Impl::KeepObject(uint64_t record, const TuningKey& key, const v1::Outcome& outcome,
                                  std::vector<Write>& writes) {
  if (outcome.object().empty()) return;
  writes.push_back(PutObject{record, outcome.object_digest(), outcome.object(), outcome.kernel_set()});
  writes.push_back(PruneObjects{key, options.keep_objects});
}

void Dispatcher::Impl::EndDuel(Trial& trial, const v1::Outcome& outcome, std::vector<Write>& writes) {
  KeyState& key = keys.at(trial.row.key);
  const std::string& trace = trial.row.trace;
  key.MarkDuelled(trace);
  const std::optional<double> us = key.TimeOf(trace);
  if (outcome.kind() != v1::OUTCOME_OK || !us.has_value()) return;
  const uint64_t record = RecordId(trial.row.key, trace);
  if (key.best_record() == 0) {
    // Nobody to fight: verified and measured a second time, in fresh processes. The first time stands where the second
    // bears it out, as noise goes; else the second counts.
    const double again = outcome.timing().median_us();
    const bool borne_out = again < *us * kBearsOut && *us < again * kBearsOut;
    key.Crown(trace, record, borne_out ? *us : again);
    writes.push_back(SetBest{trial.row.key, record, key.best_us()});
    KeepObject(record, trial.row.key, outcome, writes);
    return;
  }
  // Taken in turn in the same minutes, the ratio is free of drift: the champion's time is lowered by it. A worker that
  // gives no ratio is believed by the time it took for the challenger.
  double ratio = outcome.duel_ratio();
  if (ratio <= 0) ratio = outcome.timing().median_us() / key.best_us();
  // A kernel alone and the same kernel in its model differ by some per cent, and of many equal challengers one is
  // lucky: what a model has without tuning gives way to a clear gain alone, so that tuning makes no model slower.
  const TaskRow* task = jobs.at(trial.job).TaskOf(trial.row.key);
  const bool against_default = task != nullptr && task->default_trace == key.best_trace();
  const double below = against_default ? 1 - options.default_margin : 1;
  const bool sure = outcome.duel_ratio_high() <= 0 || outcome.duel_ratio_high() < below;
  if (!(ratio < below) || !sure) return;
  // The times that were recorded of the two say what to expect, and the device's peaks what is possible.
  const bool expected = ratio * options.disagreement > *us / key.best_us();
  const bool possible = task == nullptr || key.best_us() * ratio >= ImplausibleBelowUs(task->lower_bound_us);
  if (!expected || !possible) return;
  key.Crown(trace, record, key.best_us() * ratio);
  Gained(trial.row.key);
  writes.push_back(SetBest{trial.row.key, record, key.best_us()});
  KeepObject(record, trial.row.key, outcome, writes);
}

void Dispatcher::Impl::Gained(const TuningKey& key) {
  ++counters.champions;
  for (auto& [id, job] : jobs) {
    if (job.bound() && job.TaskOf(key) != nullptr) job.last_gain = now;
  }
}

void Dispatcher::Impl::RefreshTasks(const TuningKey& tuning_key, std::vector<Write>* writes) {
  const KeyState& key = keys.at(tuning_key);
  for (auto& [id, job] : jobs) {
    if (!job.bound()) continue;
    for (TaskRow& task : job.tasks) {
      if (task.workload_hash != tuning_key.workload_hash || job.KeyOf(task) != tuning_key) continue;
      const std::optional<double> default_us = key.TimeOf(task.default_trace);
      if (default_us.has_value()) task.default_us = *default_us;
      task.best_us = key.best_us();
      if (key.best_trace() == task.default_trace) task.default_us = key.best_us();
      task.record = key.best_record();
      task.state = TaskStateOf(key, task.lower_bound_us, options);
      if (writes != nullptr) writes->push_back(PutTask{task});
    }
  }
}

std::string Dispatcher::Impl::OtherThan(const std::string& worker, const Job& job) const {
  for (const auto& [id, other] : workers) {
    if (other.hello.worker_name() != worker && !other.draining && Matches(other, job)) return worker;
  }
  return "";
}

void Dispatcher::Impl::QueueDuels() {
  for (auto& [tuning_key, key] : keys) {
    if (!key.loaded() || leases.LiveOf(tuning_key, true) > 0) continue;
    const int live = leases.LiveOf(tuning_key, false);
    const bool confirms = key.best_record() == 0;
    if (confirms && !options.confirm_first) continue;
    if (!confirms && live > 0 && key.results_since_duel < options.batch) continue;
    const std::optional<std::string> challenger = key.Challenger(options);
    if (!challenger.has_value()) continue;
    for (auto& [id, job] : jobs) {
      if (!job.bound() || job.ended || job.row.stop_requested || job.row.request.paused()) continue;
      const TaskRow* task = job.TaskOf(tuning_key);
      if (task == nullptr) continue;
      Trial trial;
      trial.row = TrialRow{.id = next_trial++,
                           .key = tuning_key,
                           .task = task->id,
                           .trace = *challenger,
                           .source = confirms ? "confirm" : "duel",
                           .duel = true};
      trial.job = id;
      const auto measured_by = key.measured_by.find(*challenger);
      if (measured_by != key.measured_by.end()) trial.not_by = OtherThan(measured_by->second, job);
      if (!trial.not_by.empty()) trial.not_by_until = now + Micros{options.second_worker_ms} * 1000;
      leases.AddQueued(std::move(trial), /*in_front=*/true);
      key.results_since_duel = 0;
      break;
    }
  }
}

}  // namespace hone
