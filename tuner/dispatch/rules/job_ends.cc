// Budgets of jobs, and how jobs end: why one should, what it waits for, what is forgotten with it.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tuner/dispatch/dispatcher_impl.h"

namespace hone {
namespace {

// A budget counts the job's own verified trials; this many candidates tried for each of them end a job whose candidates
// mostly fail.
constexpr int64_t kTriedPerTrial = 4;
constexpr int64_t kTriedAtLeast = 64;

}  // namespace

int64_t Dispatcher::Impl::TrialsLeft(const Job& job) const {
  const int64_t budget = job.row.request.max_trials();
  if (budget == 0) return std::numeric_limits<int64_t>::max();
  const int64_t coming = Coming(job);
  constexpr int64_t kMostBudget = std::numeric_limits<int64_t>::max() / kTriedPerTrial;
  const int64_t most_tried = std::max(kTriedAtLeast, kTriedPerTrial * std::min(budget, kMostBudget));
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
  const auto goes_on = [&](const TaskRow& task) {
    ++counters.looked_at;
    const KeyState& key = job.KeyOf(task);
    const std::string state = StateOf(job, task);
    return state == "open" ||
           (state == "exhausted" && leases.OfKeyNumber(key.number).candidates > 0) ||  // the last of its space are out
           (state == "stalled" && SiblingTeaches(job, task, key));
  };
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const size_t index = (job.open_task + i) % job.tasks.size();
    if (!goes_on(job.tasks[index])) continue;
    job.open_task = index;
    return std::nullopt;
  }
  return "";
}

bool Dispatcher::Impl::WaitsForTrials(const Job& job) const {
  const LeaseTable::OfJob& out = leases.OfJobNumber(job.row.id);
  if (out.lent > 0) return true;
  if (!fleet.PoolOfJob(job.row.id).AnyAlive()) return false;
  if (!out.trials.empty()) return true;
  if (job.row.stop_requested || !job.loaded()) return false;
  return std::ranges::any_of(job.keys, [&](const KeyState* key) { return ChallengerFor(job, *key) != nullptr; });
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
    const SortedIds trials = leases.OfJobNumber(job.row.id).trials;
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
    if (!leases.trials().at(id).under_work()) idle.push_back(id);
  }
  return idle;
}

void Dispatcher::Impl::DropTrial(uint64_t id, std::vector<Write>& writes) {
  Trial& trial = *leases.Find(id);
  KeyState& key = KeyOf(trial);
  // In this process: a later job may try again. One that is paused goes on with it.
  const Job& job = jobs.at(trial.job);
  if (trial.row.duel && !job.row.request.paused() && !Yields(job)) key.MarkDuelled(trial.row.trace);
  // Those may have waited for that duel alone, or for the last candidate of a space that is used up.
  touched.jobs.insert(key.jobs.begin(), key.jobs.end());
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
  if (--open_jobs == 1) ResumeChecks();
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
  if (id == checks.job) ChecksEnded(job);
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
  job_requests.End(now, job.row.tenant, job.row.request.request_id());
  fleet.DropJob(id);
  deadlines.Set(Deadlines::Of::kJob, id, Deadlines::kNever);
  jobs.erase(id);
  touched.jobs.insert(NextToAsk());  // a search may have become free
  effects.emplace_back(JobEnded{id});
}

}  // namespace hone
