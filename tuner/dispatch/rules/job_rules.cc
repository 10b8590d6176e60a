// Jobs: taken in, stopped and paused, bound to a kind of device.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "tuner/dispatch/dispatcher_impl.h"
#include "tuner/dispatch/state/roofline.h"

namespace hone {
namespace {

// Imported traces of a key that are measured first; the others are seeds of the search.
constexpr size_t kMostClaims = 4;

}  // namespace

void Dispatcher::Impl::On(const Start& event) {
  began = now;
  for (const DeviceClassRow& row : restored.device_classes) profiles[row.name] = row.profile;
  for (JobRow& row : restored.jobs) {
    Job job;
    job.row = std::move(row);
    job.busy_before = job.row.busy_seconds;
    job_requests.Add(job.row.tenant, job.row.request.request_id(), job.row.id);
    if (job.checks_records()) checks.job = job.row.id;
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
  job.kind = job.MakeKind();
  TenantJobs& of_tenant = tenant_jobs[job.row.tenant];
  if (of_tenant.jobs.empty()) accounts.Open(job.row.tenant);
  of_tenant.jobs.insert(id);
  ++of_tenant.open_jobs;
  if (++open_jobs == 2) YieldToJobs();
  touched.jobs.insert(id);
  return jobs.emplace(id, std::move(job)).first->second;
}

TaskRow& Dispatcher::Impl::AddTask(Job& job, TaskRow row) {
  job.verified += row.trials;
  for (const auto& [kind, count] : row.failed) job.failed += count;
  ++tenant_jobs[job.row.tenant].open_tasks;
  ++workloads[row.workload_hash].tasks_of[job.row.tenant];
  job_by_task[row.id] = job.row.id;
  if (const std::string& anchor = job.AnchorOf(row); !anchor.empty())
    job.tasks_of_anchor[anchor].push_back(job.tasks.size());
  return job.tasks.emplace_back(std::move(row));
}

void Dispatcher::Impl::On(const Submit& event) {
  const v1::SubmitRequest& request = event.request;
  const absl::Status valid = event.checked ? absl::OkStatus() : CheckSubmit(request);
  if (!valid.ok()) { return ReplyNow(event.to, Refusal{static_cast<int>(valid.code()), std::string(valid.message())}); }
  v1::SubmitReply reply;
  if (const std::optional<uint64_t> known = job_requests.Find(event.tenant.id, request.request_id())) {
    reply.set_job_id(*known);
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
  job.row.request.clear_checked_against();
  job.row.request.clear_checked_driver();
  for (int i = 0; i < request.parts_size(); ++i) job.row.request.add_part_jobs(next_job + static_cast<uint64_t>(i));
  job.row.request.set_part_of(part_of);
  job.kind = job.MakeKind();
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
  job_requests.Add(event.tenant.id, request.request_id(), job.row.id);
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
  int open_jobs = found == tenant_jobs.end() ? 0 : found->second.open_jobs;
  int open_tasks = found == tenant_jobs.end() ? 0 : found->second.open_tasks;
  // What the daemon does for itself takes nobody's place.
  if (const auto own = jobs.find(checks.job); own != jobs.end() && own->second.row.tenant == tenant.id) {
    if (!own->second.ended) --open_jobs, open_tasks -= static_cast<int>(own->second.tasks.size());
  }
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

Job* Dispatcher::Impl::JobOrRefuse(ReplyTo to, uint64_t tenant, uint64_t id) {
  const auto found = jobs.find(id);
  if (found != jobs.end() && found->second.row.tenant == tenant) return &found->second;
  ReplyNow(to, Refusal{static_cast<int>(absl::StatusCode::kNotFound), absl::StrCat("there is no job ", id)});
  return nullptr;
}

void Dispatcher::Impl::On(const StopJob& event) {
  Job* whole = JobOrRefuse(event.to, event.tenant, event.job);
  if (whole == nullptr) return;
  std::vector<Write> writes;
  for (Job* job : WithParts(*whole)) {
    if (job->ended) continue;  // before it was told
    job->Advance(now);
    job->row.stop_requested = true;
    touched.jobs.insert(job->row.id);
    writes.push_back(PutJob{job->row});
  }
  CommitThen(std::move(writes), [this, to = event.to, snapshot = SnapshotOf(*whole, true)] { ReplyNow(to, snapshot); });
}

void Dispatcher::Impl::On(const PauseJob& event) {
  Job* whole = JobOrRefuse(event.to, event.tenant, event.job);
  if (whole == nullptr) return;
  std::vector<Write> writes;
  for (Job* job : WithParts(*whole)) SetPaused(*job, event.paused, writes);
  CommitThen(std::move(writes), [this, to = event.to, snapshot = SnapshotOf(*whole, true)] { ReplyNow(to, snapshot); });
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
  job.kind = job.MakeKind();
  job.Advance(now);
  touched.jobs.insert(job.row.id);
  std::vector<Write> writes;
  const v1::DeviceProfile& facts = *ProfileOf(job.row.device_class);
  job.limits_agreed = facts.agreed_by() > 1;
  for (TaskRow& task : job.tasks) {
    const double least_flop = job.checks_records() ? 0 : task.least_flop;  // the database does not have it
    task.lower_bound_us = LowerBoundUs(least_flop, task.bytes, facts, job.row.threads);
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
    std::vector<v1::TrialResult>& unjudged = worker->second.waiting->unjudged;
    std::erase_if(unjudged, [&](v1::TrialResult& result) { return TakeResult(worker->second, result); });
  }
}

// The first candidate of every task is what an untuned build uses; then what imported records claim to be the best.
void Dispatcher::Impl::QueueDefaults(Job& job) {
  if (job.checks_records()) return NoteWhatToCheck(job);
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

const v1::DeviceProfile* Dispatcher::Impl::ProfileOf(const std::string& device_class) const {
  const auto found = profiles.find(device_class);
  return found == profiles.end() ? nullptr : &found->second;
}

}  // namespace hone
