// Jobs: taken in, bound to a kind of device, ended by budget, limit or request.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "tuner/dispatch/dispatcher_impl.h"
#include "tuner/dispatch/roofline.h"

namespace hone {
namespace {

// A budget counts the job's own verified trials; this many candidates tried for each of them end a job whose candidates
// mostly fail.
constexpr int64_t kTriedPerTrial = 4;
constexpr int64_t kTriedAtLeast = 64;
// Imported traces of a key that are measured first; the others are seeds of the search.
constexpr size_t kMostClaims = 4;

}  // namespace

void Dispatcher::Impl::On(const Start& event) {
  for (const DeviceClassRow& row : restored.device_classes) profiles[row.name] = row.profile;
  for (JobRow& row : restored.jobs) {
    Job job;
    job.row = std::move(row);
    job.lent = job.row.busy_seconds > 0;
    job.clock = job.waits_counted = now;
    job.last_gain = now;
    job.busy_before = job.row.busy_seconds;
    job_by_request[{job.row.tenant, job.row.request.request_id()}] = job.row.id;
    jobs.emplace(job.row.id, std::move(job));
  }
  std::map<uint64_t, uint64_t> job_of_task;
  for (TaskRow& row : restored.tasks) {
    job_of_task[row.id] = row.job;
    jobs.at(row.job).tasks.push_back(std::move(row));
  }
  for (v1::Workload& workload : restored.workloads) workloads[workload.hash()] = std::move(workload);
  std::set<TuningKey> needed;
  for (auto& [id, job] : jobs) {
    if (!job.bound()) continue;
    for (const TaskRow& task : job.tasks) needed.insert(job.KeyOf(task));
  }
  std::vector<Write> writes;
  for (TrialRow& row : restored.leased) {
    const auto task = job_of_task.find(row.task);
    if (task == job_of_task.end() || needed.count(row.key) == 0) {
      row.state = TrialState::kDropped;
      writes.push_back(PutTrial{row});
      continue;
    }
    Trial trial;
    trial.job = task->second;
    trial.row = std::move(row);
    leases.AddOrphan(std::move(trial), now + Micros{options.lease_ms} * 1000);
  }
  if (!writes.empty()) CommitThen(std::move(writes), nullptr);
  for (const TuningKey& key : needed) {
    keys.emplace(key, KeyState(key));
    effects.emplace_back(LoadHistory{key});
  }
  restored = StoredState{};
}

void Dispatcher::Impl::On(const Submit& event) {
  const v1::SubmitRequest& request = event.request;
  const absl::Status valid = CheckSubmit(request);
  if (!valid.ok()) { return ReplyNow(event.to, Refusal{static_cast<int>(valid.code()), std::string(valid.message())}); }
  v1::SubmitReply reply;
  const auto known = job_by_request.find({event.tenant.id, request.request_id()});
  if (known != job_by_request.end()) {
    reply.set_job_id(known->second);
    reply.set_existed(true);
    // Behind the commit of the first one, in case that is still under way.
    return CommitThen({}, [this, to = event.to, reply] { ReplyNow(to, reply); });
  }
  if (const std::string over = OverLimits(event.tenant, request.tasks_size()); !over.empty()) {
    return ReplyNow(event.to, Refusal{static_cast<int>(absl::StatusCode::kResourceExhausted), over});
  }
  Job job;
  job.row.id = next_job++;
  job.row.tenant = event.tenant.id;
  job.row.created = event.created;
  job.row.request = request;
  job.row.request.clear_tasks();
  job.row.request.clear_plan();
  job.row.request.clear_missing_layers();
  job.row.request.clear_paused();
  job.row.request.clear_waited_seconds();
  job.clock = job.waits_counted = now;
  job.last_gain = now;
  for (const auto& [id, other] : jobs) {  // it starts level with the least charged of the others
    if (!other.ended) {
      job.virtual_seconds =
          job.virtual_seconds == 0 ? other.virtual_seconds : std::min(job.virtual_seconds, other.virtual_seconds);
    }
  }
  std::vector<Write> writes;
  writes.push_back(PutTenant{event.tenant});
  writes.push_back(PutJob{job.row});
  writes.push_back(PutPlan{job.row.id, request.model_hash(), request.plan()});
  for (int i = 0; i < request.tasks_size(); ++i) {
    const v1::TaskSpec& spec = request.tasks(i);
    TaskRow row;
    row.id = next_task++;
    row.job = job.row.id;
    row.index = i;
    row.workload_hash = spec.workload().hash();
    row.name = spec.workload().name();
    row.weight = spec.weight() > 0 ? spec.weight() : 1;
    row.flop = spec.workload().flop();
    row.least_flop = spec.workload().least_flop() > 0 ? spec.workload().least_flop() : row.flop;
    row.bytes = spec.workload().bytes();
    row.default_trace = spec.default_trace();
    workloads[row.workload_hash] = spec.workload();
    writes.push_back(PutWorkload{spec.workload()});
    writes.push_back(PutTask{row});
    job.tasks.push_back(std::move(row));
  }
  reply.set_job_id(job.row.id);
  job_by_request[{event.tenant.id, request.request_id()}] = job.row.id;
  jobs.emplace(job.row.id, std::move(job));
  CommitThen(std::move(writes), [this, to = event.to, reply] { ReplyNow(to, reply); });
}

std::string Dispatcher::Impl::OverLimits(const Tenant& tenant, int more_tasks) const {
  int open_jobs = 0, open_tasks = 0;
  for (const auto& [id, job] : jobs) {
    if (job.row.tenant != tenant.id || job.ended) continue;
    ++open_jobs;
    open_tasks += static_cast<int>(job.tasks.size());
  }
  if (open_jobs >= options.max_jobs) {
    return absl::StrCat(open_jobs, " jobs of tenant ", tenant.name,
                        " wait or run, as many as it may have (honed --max-jobs); wait until one ends, or stop one");
  }
  if (open_tasks + more_tasks > options.max_tasks) {
    return absl::StrCat("with the ", more_tasks, " kernels of this job tenant ", tenant.name, " would have ",
                        open_tasks + more_tasks, " in work, and may have ", options.max_tasks,
                        " (honed --max-tasks); tune them in parts, or wait until a job ends");
  }
  return "";
}

void Dispatcher::Impl::On(const StopJob& event) {
  const auto found = jobs.find(event.job);
  if (found == jobs.end() || found->second.row.tenant != event.tenant) {
    return ReplyNow(
        event.to, Refusal{static_cast<int>(absl::StatusCode::kNotFound), absl::StrCat("there is no job ", event.job)});
  }
  Job& job = found->second;
  job.row.stop_requested = true;
  job.Advance(now);
  CommitThen({PutJob{job.row}}, [this, to = event.to, snapshot = SnapshotOf(job, true)] { ReplyNow(to, snapshot); });
}

// What is under work is finished; the rest goes back to whoever proposed it, so that other jobs with the same tasks do
// not wait for it.
void Dispatcher::Impl::On(const PauseJob& event) {
  const auto found = jobs.find(event.job);
  if (found == jobs.end() || found->second.row.tenant != event.tenant) {
    return ReplyNow(
        event.to, Refusal{static_cast<int>(absl::StatusCode::kNotFound), absl::StrCat("there is no job ", event.job)});
  }
  Job& job = found->second;
  job.Advance(now);
  const bool resumed = job.row.request.paused() && !event.paused;
  job.row.request.set_paused(event.paused);
  std::vector<Write> writes = {PutJob{job.row}};
  if (event.paused) {
    for (const uint64_t id : IdleTrials(job)) DropTrial(id, writes);
  } else if (resumed && job.bound() && !job.ending && AllLoaded(job)) {
    QueueDefaults(job);
  }
  UpdateJobStates();
  CommitThen(std::move(writes), [this, to = event.to, snapshot = SnapshotOf(job, true)] { ReplyNow(to, snapshot); });
}

// ---- binding ----

void Dispatcher::Impl::BindJobs() {
  for (auto& [id, job] : jobs) {
    if (job.bound() || job.ended || job.row.stop_requested) continue;
    for (const auto& [who, worker] : workers) {
      if (worker.draining || !Matches(worker, job)) continue;
      Bind(job, worker);
      break;
    }
  }
}

void Dispatcher::Impl::Bind(Job& job, const Worker& worker) {
  job.row.device_class = worker.hello.profile().device_class();
  job.row.threads = job.row.request.threads() > 0 ? job.row.request.threads() : worker.hello.threads();
  job.row.protocol = worker.hello.measure_protocol();
  std::vector<Write> writes;
  for (TaskRow& task : job.tasks) {
    task.lower_bound_us =
        LowerBoundUs(task.least_flop, task.bytes, *ProfileOf(worker.hello.profile().device_class()), job.row.threads);
    const TuningKey key = job.KeyOf(task);
    const auto [state, added] = keys.emplace(key, KeyState(key));
    if (added) effects.emplace_back(LoadHistory{key});
    writes.push_back(PutTask{task});
  }
  writes.push_back(PutJob{job.row});
  CommitThen(std::move(writes), nullptr);
  for (const TaskRow& task : job.tasks) {
    if (keys.at(job.KeyOf(task)).loaded()) RefreshTasks(job.KeyOf(task), nullptr);
  }
  if (AllLoaded(job)) QueueDefaults(job);
}

bool Dispatcher::Impl::AllLoaded(const Job& job) const {
  return std::all_of(job.tasks.begin(), job.tasks.end(),
                     [&](const TaskRow& task) { return keys.at(job.KeyOf(task)).loaded(); });
}

void Dispatcher::Impl::On(const HistoryLoaded& event) {
  const auto found = keys.find(event.key);
  if (found == keys.end() || found->second.loaded()) return;
  KeyState& key = found->second;
  key.Load(event.history, options);
  for (const auto& [id, trial] : leases.trials()) {  // those that a restart found lent
    if (trial.row.key == event.key && !trial.row.duel) key.AddKnown(trial.row.trace);
  }
  RefreshTasks(event.key, nullptr);
  for (auto& [id, job] : jobs) {
    if (!job.bound() || job.ending || !AllLoaded(job)) continue;
    if (job.TaskOf(event.key) != nullptr) QueueDefaults(job);
  }
  // Results that could not be judged before.
  for (auto& [id, worker] : workers) {
    if (!worker.waiting.has_value()) continue;
    const v1::SyncRequest request = *worker.waiting;
    for (const v1::TrialResult& result : request.results()) TakeResult(worker, result);
  }
}

// The first candidate of every task is what an untuned build uses; then what imported records claim to be the best.
void Dispatcher::Impl::QueueDefaults(Job& job) {
  for (const TaskRow& task : job.tasks) {
    KeyState& key = keys.at(job.KeyOf(task));
    if (task.default_trace.empty() || key.Knows(task.default_trace) || TrialsLeft(job) <= 0) continue;
    QueueCandidate(job, task, key, task.default_trace, "default");
  }
  for (const TaskRow& task : job.tasks) {
    KeyState& key = keys.at(job.KeyOf(task));
    for (size_t i = 0; i < key.claims().size() && i < kMostClaims; ++i) {
      const std::string& trace = key.claims()[i];
      if (!key.Knows(trace) && TrialsLeft(job) > 0) QueueCandidate(job, task, key, trace, "imported");
    }
  }
}

// ---- budgets and ends ----

int64_t Dispatcher::Impl::TrialsLeft(const Job& job) const {
  const int64_t budget = job.row.request.max_trials();
  if (budget == 0) return std::numeric_limits<int64_t>::max();
  int64_t verified = 0, tried = 0;
  for (const TaskRow& task : job.tasks) {
    verified += task.trials;
    tried += task.trials;
    for (const auto& [kind, count] : task.failed) tried += count;
  }
  const int64_t coming = Coming(job);
  const int64_t most_tried = std::max(kTriedAtLeast, kTriedPerTrial * budget);
  return std::min(budget - verified, most_tried - tried) - coming;
}

int64_t Dispatcher::Impl::Coming(const Job& job) const {
  int64_t coming = leases.CandidatesOfJob(job.row.id);
  for (const auto& [request, tuning_key] : key_by_search) {
    const auto key = keys.find(tuning_key);
    if (key != keys.end() && key->second.search_job == job.row.id) coming += key->second.search_batch;
  }
  return coming;
}

void Dispatcher::Impl::EndJobs() {
  std::vector<uint64_t> finished;
  for (auto& [id, job] : jobs) {
    if (job.ended) continue;
    job.Advance(now);
    if (job.row.stop_requested && !job.ending) StopJobNow(job, "stopped on request");
    if (job.ending || !job.bound() || !AllLoaded(job)) {
      const bool late = job.row.request.max_seconds() > 0 && job.row.seconds >= job.row.request.max_seconds();
      if (late && !job.ending) {
        StopJobNow(job, absl::StrCat("the budget of seconds was used up before anything was measured",
                                     job.held_up_by.empty() ? "" : ": ", job.held_up_by));
      }
      if (!job.ending) continue;
    } else {
      bool open = false;
      for (const TaskRow& task : job.tasks) {
        const KeyState& key = keys.at(job.KeyOf(task));
        const int live = leases.LiveOf(key.key(), false);
        const std::string state = TaskStateOf(key, task.lower_bound_us, options);
        open = open || state == "open" || (state == "exhausted" && live > 0) ||  // the last of its space are out
               (state == "stalled" && SiblingTeaches(job, task, key));
      }
      if (job.row.request.max_seconds() > 0 && job.row.seconds >= job.row.request.max_seconds()) {
        StopJobNow(job, "the budget of seconds is used up");
      } else if (Coming(job) == 0 && TrialsLeft(job) <= 0) {
        StopJobNow(job, "the budget of trials is used up");
      } else if (!open) {
        StopJobNow(job, "");
      }
    }
    if (!job.ending) continue;
    bool alive = false;
    for (const auto& [who, worker] : workers) alive = alive || (!worker.draining && Matches(worker, job));
    bool waits = leases.LentOfJob(id) > 0;
    std::vector<uint64_t> queued;
    for (const auto& [trial_id, trial] : leases.trials()) {
      if (trial.job == id && trial.place == Trial::Place::kQueued) queued.push_back(trial_id);
    }
    waits = waits || (alive && !queued.empty());
    if (!alive && !queued.empty()) {  // duels that nobody is left to fight
      std::vector<Write> writes;
      for (const uint64_t trial : queued) DropTrial(trial, writes);
      if (!writes.empty()) CommitThen(std::move(writes), nullptr);
    }
    if (!job.row.stop_requested && job.bound() && alive && AllLoaded(job)) {
      for (const TaskRow& task : job.tasks) waits = waits || keys.at(job.KeyOf(task)).Challenger(options).has_value();
    }
    if (!waits) finished.push_back(id);
  }
  for (const uint64_t id : finished) FinishJob(jobs.at(id));
}

void Dispatcher::Impl::StopJobNow(Job& job, const std::string& reason) {
  job.ending = true;
  job.end_reason = reason;
  std::vector<Write> writes;
  for (const uint64_t id : IdleTrials(job)) {
    const bool duel_to_come = leases.Find(id)->row.duel && !job.row.stop_requested;
    if (!duel_to_come) DropTrial(id, writes);
  }
  if (!writes.empty()) CommitThen(std::move(writes), nullptr);
}

std::vector<uint64_t> Dispatcher::Impl::IdleTrials(const Job& job) const {
  std::vector<uint64_t> idle;
  for (const auto& [id, trial] : leases.trials()) {
    if (trial.job == job.row.id && trial.phase < v1::PHASE_BUILDING) idle.push_back(id);
  }
  return idle;
}

void Dispatcher::Impl::DropTrial(uint64_t id, std::vector<Write>& writes) {
  Trial& trial = *leases.Find(id);
  KeyState& key = keys.at(trial.row.key);
  // In this process: a later job may try again. One that is paused goes on with it.
  if (trial.row.duel && !jobs.at(trial.job).row.request.paused()) key.MarkDuelled(trial.row.trace);
  if (!trial.row.duel) key.Forget(trial.row.trace);
  trial.row.state = TrialState::kDropped;
  if (trial.row.attempt > 0) writes.push_back(PutTrial{trial.row});
  leases.Remove(id);
}

void Dispatcher::Impl::FinishJob(Job& job) {
  job.ended = true;
  job.Advance(now);
  bool any_best = false;
  std::string hopeless;
  for (const TaskRow& task : job.tasks) {
    any_best = any_best || task.best_us > 0;
    if (task.best_us > 0 || !job.bound() || keys.at(job.KeyOf(task)).observations().empty()) continue;
    if (hopeless.empty()) hopeless = task.name;
  }
  const bool by_budget = job.end_reason.find("budget") != std::string::npos;
  if (job.row.stop_requested) {
    job.row.state = v1::JOB_STOPPED;
    job.row.reason = job.end_reason;
  } else if (!hopeless.empty() && (!any_best || !by_budget)) {
    job.row.state = v1::JOB_FAILED;
    job.row.reason = absl::StrCat("no valid schedule for task ", hopeless, ": every candidate failed",
                                  job.row.reason.empty() ? "" : "; " + job.row.reason);
  } else {
    job.row.state = v1::JOB_DONE;
    if (!job.end_reason.empty()) job.row.reason = job.end_reason;
  }
  std::vector<Write> writes;
  writes.push_back(PutJob{job.row});
  for (const TaskRow& task : job.tasks) {
    writes.push_back(PutTask{task});
    if (job.bound()) writes.push_back(PruneTrials{job.KeyOf(task), options.keep_trials});
  }
  CommitThen(std::move(writes), [this, id = job.row.id] {
    jobs.erase(id);
    std::set<TuningKey> used_keys;
    std::set<std::string> used_workloads;
    for (const auto& [other, job] : jobs) {
      for (const TaskRow& task : job.tasks) {
        if (job.bound()) used_keys.insert(job.KeyOf(task));
        used_workloads.insert(task.workload_hash);
      }
    }
    for (auto key = keys.begin(); key != keys.end();) {
      if (used_keys.count(key->first) != 0) {
        ++key;
        continue;
      }
      key_by_search.erase(key->second.search_request);
      key = keys.erase(key);
    }
    for (auto workload = workloads.begin(); workload != workloads.end();) {
      workload = used_workloads.count(workload->first) != 0 ? std::next(workload) : workloads.erase(workload);
    }
  });
}

void Dispatcher::Impl::UpdateJobStates() {
  for (auto& [id, job] : jobs) {
    if (job.ended) continue;
    const auto [hold_up, words] = WhatHoldsUp(job);
    job.CountWait(now);
    const bool waits =
        hold_up == v1::HOLD_UP_NO_WORKER || hold_up == v1::HOLD_UP_NO_FITTING_WORKER || hold_up == v1::HOLD_UP_PAUSED;
    const v1::JobState state = waits ? v1::JOB_WAITING : v1::JOB_RUNNING;
    std::string reason = waits ? words : "";
    if (!waits && job.row.reason.rfind("search: ", 0) == 0) reason = job.row.reason;
    if (hold_up != job.hold_up) job.held_up_since = now;
    if (state == job.row.state && reason == job.row.reason && hold_up == job.hold_up && words == job.held_up_by)
      continue;
    job.hold_up = hold_up;
    job.held_up_by = words;
    if (job.ending) continue;
    job.row.state = state;
    job.row.reason = reason;
  }
}

std::pair<v1::HoldUp, std::string> Dispatcher::Impl::WhatHoldsUp(const Job& job) const {
  if (job.row.request.paused()) return {v1::HOLD_UP_PAUSED, "it was paused"};
  std::string lost, misfits, turn;
  int living = 0, fitting = 0, ready = 0, waiting = 0, not_quiet = 0;
  for (const auto& [id, worker] : workers) {
    if (worker.tenant != job.row.tenant) continue;
    if (IsLost(worker)) {
      absl::StrAppend(&lost, lost.empty() ? "" : ", ", worker.hello.worker_name());
      continue;
    }
    ++living;
    if (!Matches(worker, job)) {
      const v1::DeviceProfile& profile = worker.hello.profile();
      if (misfits.size() > 200) continue;
      absl::StrAppend(&misfits, misfits.empty() ? "" : "; ", worker.hello.worker_name(), " has ",
                      profile.device_class(), ", ", worker.hello.threads(), " threads");
      continue;
    }
    ++fitting;
    if (worker.draining) continue;
    ++ready;
    if (worker.waiting_for.empty()) continue;
    ++waiting;
    not_quiet += worker.not_quiet;
    turn = absl::StrCat("worker ", worker.hello.worker_name(), " waits for ", worker.waiting_for);
  }
  if (living == 0) {
    return {v1::HOLD_UP_NO_WORKER,
            lost.empty() ? "no worker is connected" : absl::StrCat("no worker is connected: ", lost, " was lost")};
  }
  if (fitting == 0) {
    return {v1::HOLD_UP_NO_FITTING_WORKER,
            absl::StrCat("none of the ", living, " workers fits: the job needs target ",
                         job.row.request.target().empty() ? "cpu:native" : job.row.request.target(), ", ",
                         std::max(1, job.row.request.threads()), " threads",
                         job.bound() ? absl::StrCat(", device class ", job.row.device_class) : "", "; ", misfits)};
  }
  if (ready == 0) return {v1::HOLD_UP_NO_WORKER, "every worker that fits is about to end"};
  if (waiting == ready) return {not_quiet == ready ? v1::HOLD_UP_NOT_QUIET : v1::HOLD_UP_TURN, turn};
  if (!job.worker_fault.empty()) {
    return {v1::HOLD_UP_WORKER_FAULT, absl::StrCat("a worker cannot measure: ", job.worker_fault)};
  }
  if (job.row.reason.rfind("search: ", 0) == 0 && leases.CandidatesOfJob(job.row.id) == 0) {
    return {v1::HOLD_UP_SEARCH, job.row.reason};
  }
  return {v1::HOLD_UP_NONE, ""};
}

const v1::DeviceProfile* Dispatcher::Impl::ProfileOf(const std::string& device_class) const {
  const auto found = profiles.find(device_class);
  return found == profiles.end() ? nullptr : &found->second;
}

v1::JobSnapshot Dispatcher::Impl::SnapshotOf(const Job& job, bool with_tasks) const {
  JobRow row = job.row;
  if (!job.ended && !row.request.paused() && now > job.clock)
    row.seconds += static_cast<double>(now - job.clock) * 1e-6;
  v1::JobSnapshot snapshot = MakeJobSnapshot(row, job.tasks, with_tasks);
  if (job.ended) snapshot.set_state(v1::JOB_RUNNING);  // until its end is durable
  snapshot.set_in_flight(leases.LentOfJob(job.row.id));
  int matching = 0;
  for (const auto& [id, worker] : workers) matching += !IsLost(worker) && Matches(worker, job);
  snapshot.set_workers(matching);
  snapshot.set_hold_up(job.hold_up);
  snapshot.set_held_up_by(job.held_up_by);
  if (job.hold_up != v1::HOLD_UP_NONE) snapshot.set_held_up_seconds(SecondsSince(job.held_up_since));
  snapshot.set_seconds_since_gain(SecondsSince(job.last_gain));
  snapshot.set_stopping(job.row.stop_requested);
  uint64_t current = 0;
  for (const auto& [id, trial] : leases.trials()) {
    if (trial.job != job.row.id || trial.place != Trial::Place::kLent) continue;
    if (current == 0 || trial.phase > v1::PHASE_QUEUED) current = trial.row.task;
    if (trial.phase > v1::PHASE_QUEUED) break;
  }
  for (const TaskRow& task : job.tasks) {
    if (task.id == current) snapshot.set_current_task(task.name);
  }
  if (const v1::DeviceProfile* profile = ProfileOf(row.device_class)) snapshot.set_target(profile->target());
  return snapshot;
}

}  // namespace hone
