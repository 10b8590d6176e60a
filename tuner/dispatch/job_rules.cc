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
constexpr size_t kLongestList = 200;  // bytes of workers' names in a sentence

}  // namespace

void Dispatcher::Impl::On(const Start& event) {
  for (const DeviceClassRow& row : restored.device_classes) profiles[row.name] = row.profile;
  for (JobRow& row : restored.jobs) {
    Job job;
    job.row = std::move(row);
    job.busy_before = job.row.busy_seconds;
    job_by_request[{job.row.tenant, job.row.request.request_id()}] = job.row.id;
    AddJob(std::move(job));
  }
  for (v1::Workload& workload : restored.workloads) workloads[workload.hash()].workload = std::move(workload);
  for (const auto& [id, job] : jobs) {
    const auto whole = jobs.find(job.row.request.part_of());
    if (whole != jobs.end()) whole->second.open_parts.insert(id);
  }
  std::ranges::sort(restored.tasks, {}, &TaskRow::id);
  for (TaskRow& row : restored.tasks) AddTask(jobs.at(row.job), std::move(row));
  for (auto& [id, job] : jobs) {
    for (const TaskRow& task : job.tasks) {
      if (job.bound()) UseKey(job, task);
    }
  }
  std::vector<Write> writes;
  for (TrialRow& row : restored.leased) {
    const auto task = job_by_task.find(row.task);
    const auto key = keys.find(row.key);
    if (task == job_by_task.end() || key == keys.end()) {
      row.state = TrialState::kDropped;
      writes.push_back(PutTrial{row});
      continue;
    }
    Trial trial;
    trial.job = task->second;
    trial.key = key->second.number;
    trial.row = std::move(row);
    leases.AddOrphan(std::move(trial), now + Micros{options.lease_ms} * 1000);
  }
  if (!writes.empty()) CommitThen(std::move(writes), nullptr);
  restored = StoredState{};
}

Job& Dispatcher::Impl::AddJob(Job job) {
  const uint64_t id = job.row.id;
  job.clock = job.last_gain = now;
  TenantJobs& of_tenant = tenant_jobs[job.row.tenant];
  if (of_tenant.jobs.empty()) accounts.Open(job.row.tenant);
  of_tenant.jobs.insert(id);
  ++of_tenant.open_jobs;
  touched.jobs.insert(id);
  return jobs.emplace(id, std::move(job)).first->second;
}

TaskRow& Dispatcher::Impl::AddTask(Job& job, TaskRow row) {
  job.verified += row.trials;
  for (const auto& [kind, count] : row.failed) job.failed += count;
  ++tenant_jobs[job.row.tenant].open_tasks;
  ++workloads[row.workload_hash].tasks_of[job.row.tenant];
  job_by_task[row.id] = job.row.id;
  return job.tasks.emplace_back(std::move(row));
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
  if (const std::string over = OverLimits(event.tenant, request); !over.empty()) {
    return ReplyNow(event.to, Refusal{static_cast<int>(absl::StatusCode::kResourceExhausted), over});
  }
  std::vector<Write> writes = {PutTenant{event.tenant}};
  Job& job = TakeIn(event, request, 0, writes);
  for (const uint64_t id : job.row.request.part_jobs()) {
    const int number = static_cast<int>(id - job.row.id);
    v1::SubmitRequest part = PartOf(request, request.parts(number - 1));
    part.set_request_id(PartRequestId(request, number));
    HONE_CHECK(TakeIn(event, part, job.row.id, writes).row.id == id);
    job.open_parts.insert(id);
  }
  reply.set_job_id(job.row.id);
  CommitThen(std::move(writes), [this, to = event.to, reply] { ReplyNow(to, reply); });
}

Job& Dispatcher::Impl::TakeIn(const Submit& event, const v1::SubmitRequest& request, uint64_t part_of,
                              std::vector<Write>& writes) {
  Job fresh;
  fresh.row.id = next_job++;
  // It starts level with the least charged of its tenant's.
  fresh.virtual_seconds = fleet.LeastCharged(event.tenant.id);
  fresh.row.tenant = event.tenant.id;
  Job& job = AddJob(std::move(fresh));
  job.row.created = event.created;
  job.row.request = request;
  job.row.request.clear_tasks();
  job.row.request.clear_plan();
  job.row.request.clear_missing_layers();
  job.row.request.clear_paused();
  job.row.request.clear_waited_seconds();
  job.row.request.clear_parts();
  job.row.request.clear_part_jobs();
  for (int i = 0; i < request.parts_size(); ++i) job.row.request.add_part_jobs(next_job + static_cast<uint64_t>(i));
  job.row.request.set_part_of(part_of);
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
    workloads[row.workload_hash].workload = spec.workload();
    writes.push_back(PutWorkload{spec.workload()});
    writes.push_back(PutTask{row});
    AddTask(job, std::move(row));
  }
  job_by_request[{event.tenant.id, request.request_id()}] = job.row.id;
  return job;
}

std::vector<Job*> Dispatcher::Impl::WithParts(Job& job) {
  std::vector<Job*> all = {&job};
  for (const uint64_t id : job.open_parts) all.push_back(&jobs.at(id));
  return all;
}

std::string Dispatcher::Impl::OverLimits(const Tenant& tenant, const v1::SubmitRequest& request) const {
  int more_tasks = request.tasks_size();
  for (const v1::SubmitPart& part : request.parts()) more_tasks += part.tasks_size();
  const auto found = tenant_jobs.find(tenant.id);
  const int open_jobs = found == tenant_jobs.end() ? 0 : found->second.open_jobs;
  const int open_tasks = found == tenant_jobs.end() ? 0 : found->second.open_tasks;
  if (open_jobs + request.parts_size() >= options.max_jobs) {
    return absl::StrCat(open_jobs, " jobs of tenant ", tenant.name, " wait or run, and it may have ", options.max_jobs,
                        " (honed --max-jobs), each device class of a job counting as one; wait until one ends, or stop "
                        "one");
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
  std::vector<Write> writes;
  for (Job* job : WithParts(found->second)) {
    if (job->ended) continue;  // before it was told
    job->Advance(now);
    job->row.stop_requested = true;
    touched.jobs.insert(job->row.id);
    writes.push_back(PutJob{job->row});
  }
  CommitThen(std::move(writes),
             [this, to = event.to, snapshot = SnapshotOf(found->second, true)] { ReplyNow(to, snapshot); });
}

void Dispatcher::Impl::On(const PauseJob& event) {
  const auto found = jobs.find(event.job);
  if (found == jobs.end() || found->second.row.tenant != event.tenant) {
    return ReplyNow(
        event.to, Refusal{static_cast<int>(absl::StatusCode::kNotFound), absl::StrCat("there is no job ", event.job)});
  }
  std::vector<Write> writes;
  for (Job* job : WithParts(found->second)) SetPaused(*job, event.paused, writes);
  CommitThen(std::move(writes),
             [this, to = event.to, snapshot = SnapshotOf(found->second, true)] { ReplyNow(to, snapshot); });
}

// What is under work is finished; the rest goes back to whoever proposed it, so that other jobs with the same tasks do
// not wait for it.
void Dispatcher::Impl::SetPaused(Job& job, bool paused, std::vector<Write>& writes) {
  job.Advance(now);
  const bool resumed = job.row.request.paused() && !paused;
  job.row.request.set_paused(paused);
  writes.push_back(PutJob{job.row});
  if (paused) {
    for (const uint64_t id : IdleTrials(job)) DropTrial(id, writes);
  } else if (resumed && job.loaded() && !job.ending) {
    QueueDefaults(job);
  }
  touched.jobs.insert(job.row.id);
  for (const auto& [number, tasks] : job.tasks_of_key) touched.keys.insert(number);
  UpdateJobState(job);
}

// ---- binding ----

void Dispatcher::Impl::BindJob(Job& job) {
  if (job.row.stop_requested) return;
  uint64_t first = 0;
  for (const WorkerPool* pool : fleet.PoolOfJob(job.row.id).workers) {
    if (!pool->alive.empty() && (first == 0 || *pool->alive.begin() < first)) first = *pool->alive.begin();
  }
  if (first != 0) Bind(job, workers.at(first));
}

void Dispatcher::Impl::Bind(Job& job, const Worker& worker) {
  job.row.device_class = worker.hello.profile().device_class();
  job.row.threads = job.row.request.threads() > 0 ? job.row.request.threads() : worker.hello.threads();
  job.row.protocol = worker.hello.measure_protocol();
  job.Advance(now);
  touched.jobs.insert(job.row.id);
  std::vector<Write> writes;
  for (TaskRow& task : job.tasks) {
    task.lower_bound_us =
        LowerBoundUs(task.least_flop, task.bytes, *ProfileOf(worker.hello.profile().device_class()), job.row.threads);
    UseKey(job, task);
    writes.push_back(PutTask{task});
  }
  writes.push_back(PutJob{job.row});
  CommitThen(std::move(writes), nullptr);
  for (const auto& [number, tasks] : job.tasks_of_key) {
    if (key_by_number.at(number)->loaded()) RefreshTasks(*key_by_number.at(number));
  }
  if (job.loaded()) QueueDefaults(job);
}

// In the order of the tasks.
KeyState& Dispatcher::Impl::UseKey(Job& job, const TaskRow& task) {
  const TuningKey tuning_key = job.TuningKeyOf(task);
  const auto [entry, added] = keys.try_emplace(tuning_key, tuning_key, next_key);
  KeyState& key = entry->second;
  if (added) {
    key_by_number[next_key++] = &key;
    effects.emplace_back(LoadHistory{tuning_key});
  }
  const bool first = key.jobs.insert(job.row.id).second;
  if (first && !key.loaded()) ++job.not_loaded;
  job.tasks_of_key[key.number].push_back(job.keys.size());
  job.keys.push_back(&key);
  touched.keys.insert(key.number);
  return key;
}

void Dispatcher::Impl::On(const HistoryLoaded& event) {
  const auto found = keys.find(event.key);
  if (found == keys.end() || found->second.loaded()) return;
  KeyState& key = found->second;
  key.Load(event.history, options);
  for (const uint64_t id : leases.OfKeyNumber(key.number).trials) {  // those that a restart found lent
    const TrialRow& row = leases.Find(id)->row;
    if (!row.duel) key.AddKnown(row.trace);
  }
  RefreshTasks(key);
  for (const uint64_t id : key.jobs) {
    Job& job = jobs.at(id);
    --job.not_loaded;
    if (job.loaded() && !job.ending) QueueDefaults(job);
  }
  // Results that could not be judged before.
  const auto reporters = awaiting_history.extract(key.number);
  if (reporters.empty()) return;
  for (const uint64_t id : reporters.mapped()) {
    const auto worker = workers.find(id);
    if (worker == workers.end() || !worker->second.waiting.has_value()) continue;
    touched.workers.insert(id);
    const v1::SyncRequest request = *worker->second.waiting;
    for (const v1::TrialResult& result : request.results()) TakeResult(worker->second, result);
  }
}

// The first candidate of every task is what an untuned build uses; then what imported records claim to be the best.
void Dispatcher::Impl::QueueDefaults(Job& job) {
  for (const TaskRow& task : job.tasks) {
    KeyState& key = job.KeyOf(task);
    if (task.default_trace.empty() || key.Knows(task.default_trace) || TrialsLeft(job) <= 0) continue;
    QueueCandidate(job, task, key, task.default_trace, "default");
  }
  for (const TaskRow& task : job.tasks) {
    KeyState& key = job.KeyOf(task);
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
  const int64_t coming = Coming(job);
  const int64_t most_tried = std::max(kTriedAtLeast, kTriedPerTrial * budget);
  return std::min(budget - job.verified, most_tried - (job.verified + job.failed)) - coming;
}

int64_t Dispatcher::Impl::Coming(const Job& job) const {
  int64_t coming = leases.OfJobNumber(job.row.id).candidates;
  for (const auto& [request, key] : key_by_search) {
    if (key->search_job == job.row.id) coming += key->search_batch;
  }
  return coming;
}

std::optional<std::string> Dispatcher::Impl::EndReason(const Job& job) const {
  if (job.row.stop_requested) return "stopped on request";
  const double limit = job.row.request.max_seconds();
  const bool late = limit > 0 && job.row.seconds >= limit;
  if (!job.loaded()) {
    if (!late) return std::nullopt;
    return absl::StrCat("the budget of seconds was used up before anything was measured",
                        job.held_up_by.empty() ? "" : ": ", job.held_up_by);
  }
  if (late) return "the budget of seconds is used up";
  if (Coming(job) == 0 && TrialsLeft(job) <= 0) return "the budget of trials is used up";
  const bool open = std::ranges::any_of(job.tasks, [&](const TaskRow& task) {
    const KeyState& key = job.KeyOf(task);
    const std::string state = TaskStateOf(key, task.lower_bound_us, options);
    return state == "open" ||
           (state == "exhausted" && leases.OfKeyNumber(key.number).candidates > 0) ||  // the last of its space are out
           (state == "stalled" && SiblingTeaches(job, task, key));
  });
  return open ? std::nullopt : std::optional<std::string>("");
}

bool Dispatcher::Impl::WaitsForTrials(const Job& job) const {
  const LeaseTable::OfJob& out = leases.OfJobNumber(job.row.id);
  if (out.lent > 0) return true;
  if (!fleet.PoolOfJob(job.row.id).AnyAlive()) return false;
  if (!out.trials.empty()) return true;
  if (job.row.stop_requested || !job.loaded()) return false;
  return std::ranges::any_of(job.keys, [&](const KeyState* key) { return key->Challenger(options).has_value(); });
}

void Dispatcher::Impl::EndJob(Job& job) {
  job.Advance(now);
  if (!job.ending) {
    const std::optional<std::string> reason = EndReason(job);
    if (!reason.has_value()) return;
    StopJobNow(job, *reason);
  }
  if (!fleet.PoolOfJob(job.row.id).AnyAlive()) {  // duels that nobody is left to fight
    std::vector<Write> writes;
    const std::set<uint64_t> trials = leases.OfJobNumber(job.row.id).trials;
    for (const uint64_t id : trials) {
      if (leases.Find(id)->waits()) DropTrial(id, writes);
    }
    if (!writes.empty()) CommitThen(std::move(writes), nullptr);
  }
  if (!WaitsForTrials(job) && job.open_parts.empty()) FinishJob(job);
}

void Dispatcher::Impl::StopJobNow(Job& job, const std::string& reason) {
  job.ending = true;
  job.end_reason = reason;
  touched.jobs.insert(job.row.id);
  std::vector<Write> writes;
  for (const uint64_t id : IdleTrials(job)) {
    const bool duel_to_come = leases.Find(id)->row.duel && !job.row.stop_requested;
    if (!duel_to_come) DropTrial(id, writes);
  }
  if (!writes.empty()) CommitThen(std::move(writes), nullptr);
}

std::vector<uint64_t> Dispatcher::Impl::IdleTrials(const Job& job) const {
  std::vector<uint64_t> idle;
  for (const uint64_t id : leases.OfJobNumber(job.row.id).trials) {
    if (leases.trials().at(id).phase < v1::PHASE_BUILDING) idle.push_back(id);
  }
  return idle;
}

void Dispatcher::Impl::DropTrial(uint64_t id, std::vector<Write>& writes) {
  Trial& trial = *leases.Find(id);
  KeyState& key = KeyOf(trial);
  // In this process: a later job may try again. One that is paused goes on with it.
  if (trial.row.duel && !jobs.at(trial.job).row.request.paused()) {
    key.MarkDuelled(trial.row.trace);
    touched.jobs.insert(key.jobs.begin(), key.jobs.end());  // which may have waited for that duel alone
  }
  if (!trial.row.duel) key.Forget(trial.row.trace);
  trial.row.state = TrialState::kDropped;
  if (trial.row.attempt > 0) writes.push_back(PutTrial{trial.row});
  leases.Remove(id);
}

void Dispatcher::Impl::FinishJob(Job& job) {
  job.Advance(now);
  job.ended = true;
  touched.jobs.insert(job.row.id);
  touched.jobs.insert(job.row.request.part_of());
  for (const auto& [number, tasks] : job.tasks_of_key) touched.keys.insert(number);
  TenantJobs& of_tenant = tenant_jobs.at(job.row.tenant);
  --of_tenant.open_jobs;
  of_tenant.open_tasks -= static_cast<int>(job.tasks.size());
  bool any_best = false;
  std::string hopeless;
  for (const TaskRow& task : job.tasks) {
    any_best = any_best || task.best_us > 0;
    if (task.best_us > 0 || !job.bound() || job.KeyOf(task).observed() == 0) continue;
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
    if (job.bound()) writes.push_back(PruneTrials{job.KeyOf(task).key(), options.keep_trials});
  }
  CommitThen(std::move(writes), [this, id = job.row.id] { ForgetJob(id); });
}

// And the keys and workloads that it was the last to use.
void Dispatcher::Impl::ForgetJob(uint64_t id) {
  Job& job = jobs.at(id);
  for (const auto& [number, tasks] : job.tasks_of_key) {
    KeyState& key = *key_by_number.at(number);
    key.jobs.erase(id);
    if (!key.jobs.empty()) continue;
    key_by_search.erase(key.search_request);
    key_by_number.erase(number);
    awaiting_history.erase(number);
    keys.erase(TuningKey(key.key()));
  }
  for (const TaskRow& task : job.tasks) {
    job_by_task.erase(task.id);
    const auto workload = workloads.find(task.workload_hash);
    const auto users = workload->second.tasks_of.find(job.row.tenant);
    if (--users->second == 0) workload->second.tasks_of.erase(users);
    if (workload->second.tasks_of.empty()) workloads.erase(workload);
  }
  const auto of_tenant = tenant_jobs.find(job.row.tenant);
  of_tenant->second.jobs.erase(id);
  if (of_tenant->second.jobs.empty()) {
    accounts.Close(of_tenant->first);
    tenant_jobs.erase(of_tenant);
  }
  const auto whole = jobs.find(job.row.request.part_of());
  if (whole != jobs.end()) {
    whole->second.open_parts.erase(id);
    touched.jobs.insert(whole->first);  // which may have waited for it alone
  }
  TakeFromAsking(job);
  fleet.DropJob(id);
  deadlines.Set(Deadlines::Of::kJob, id, Deadlines::kNever);
  jobs.erase(id);
  touched.jobs.insert(NextToAsk());  // a search may have become free
  effects.emplace_back(JobEnded{id});
}

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

const v1::DeviceProfile* Dispatcher::Impl::ProfileOf(const std::string& device_class) const {
  const auto found = profiles.find(device_class);
  return found == profiles.end() ? nullptr : &found->second;
}

v1::JobSnapshot Dispatcher::Impl::SnapshotOf(const Job& job, bool with_tasks) const {
  JobRow row = job.row;
  if (!job.ended) job.AdvanceRow(now, &row);
  v1::JobSnapshot snapshot = MakeJobSnapshot(row, job.tasks, with_tasks);
  if (job.ended) snapshot.set_state(v1::JOB_RUNNING);  // until its end is durable
  const LeaseTable::OfJob& out = leases.OfJobNumber(job.row.id);
  snapshot.set_in_flight(out.lent);
  size_t living = 0;
  for (const WorkerPool* pool : fleet.PoolOfJob(job.row.id).workers) living += pool->members.size() - pool->lost.size();
  snapshot.set_workers(static_cast<int>(living));
  snapshot.set_hold_up(job.hold_up);
  snapshot.set_held_up_by(job.held_up_by);
  if (job.hold_up != v1::HOLD_UP_NONE) snapshot.set_held_up_seconds(SecondsSince(job.held_up_since));
  snapshot.set_seconds_since_gain(SecondsSince(job.last_gain));
  snapshot.set_stopping(job.row.stop_requested);
  uint64_t current = 0;
  for (const uint64_t id : out.trials) {
    const Trial& trial = leases.trials().at(id);
    if (trial.place != Trial::Place::kLent) continue;
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
