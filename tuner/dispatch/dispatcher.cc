#include "tuner/dispatch/dispatcher.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "tuner/dispatch/dispatcher_impl.h"

namespace hone {

Dispatcher::Dispatcher(const DispatchOptions& options, uint64_t epoch, StoredState state)
    : impl_(std::make_unique<Impl>(options, epoch, std::move(state))) {}
Dispatcher::~Dispatcher() = default;

std::vector<Effect> Dispatcher::Step(Micros now, Event event) {
  Impl& impl = *impl_;
  impl.now = std::max(impl.now, now);  // time never goes back, whatever the caller's clock does
  std::visit([&](auto& e) { impl.On(e); }, event);
  impl.Settle();
  impl.WriteChanged();
  impl.CommitStep();
  const Micros due = impl.deadlines.first();
  if (due != Deadlines::kNever) impl.effects.emplace_back(Wake{std::max(due, impl.now + 1)});
  return std::exchange(impl.effects, {});
}

bool Dispatcher::HasJob(uint64_t job) const { return impl_->jobs.count(job) != 0; }
bool Dispatcher::HasJob(uint64_t tenant, uint64_t job) const {
  const auto found = impl_->jobs.find(job);
  return found != impl_->jobs.end() && found->second.row.tenant == tenant;
}
v1::JobSnapshot Dispatcher::Snapshot(uint64_t job, bool with_tasks) const {
  const auto found = impl_->jobs.find(job);
  HONE_CHECK(found != impl_->jobs.end()) << "job " << job;
  return impl_->SnapshotOf(found->second, with_tasks);
}
std::vector<uint64_t> Dispatcher::Jobs(uint64_t tenant, uint64_t after, size_t most) const {
  std::vector<uint64_t> ids;
  const auto found = impl_->tenant_jobs.find(tenant);
  if (found == impl_->tenant_jobs.end()) return ids;
  const std::set<uint64_t>& jobs = found->second.jobs;
  for (auto it = jobs.upper_bound(after); it != jobs.end() && ids.size() < most; ++it) ids.push_back(*it);
  return ids;
}
const v1::Workload* Dispatcher::FindWorkload(uint64_t tenant, const std::string& hash) const {
  const auto found = impl_->workloads.find(hash);
  const bool its =
      found != impl_->workloads.end() && (tenant == kAllTenants || found->second.tasks_of.count(tenant) != 0);
  return its ? &found->second.workload : nullptr;
}
uint64_t Dispatcher::JobOfTask(uint64_t task) const {
  const auto found = impl_->job_by_task.find(task);
  return found == impl_->job_by_task.end() ? 0 : found->second;
}
uint64_t Dispatcher::TaskOfTrial(uint64_t trial) const {
  const Trial* found = impl_->leases.Find(trial);
  return found == nullptr ? 0 : found->row.task;
}
bool Dispatcher::Idle() const { return impl_->jobs.size() == impl_->jobs.count(impl_->checks.job); }
void Dispatcher::CheckInvariants() const { impl_->CheckInvariants(); }

std::vector<v1::WorkerInfo> Dispatcher::Workers(uint64_t tenant, Micros now) const {
  return impl_->Workers(tenant, now);
}

v1::JobExplanation Dispatcher::Explain(uint64_t job) const {
  const auto found = impl_->jobs.find(job);
  HONE_CHECK(found != impl_->jobs.end()) << "job " << job;
  return impl_->Explain(found->second);
}
FleetCounts Dispatcher::Counts() const { return impl_->Counts(std::nullopt); }
FleetCounts Dispatcher::Counts(uint64_t tenant) const { return impl_->Counts(tenant); }
const DispatchCounters& Dispatcher::counters() const { return impl_->counters; }

std::string Dispatcher::DebugString() const {
  std::string text;
  for (const auto& [id, job] : impl_->jobs) {
    absl::StrAppend(&text, "job ", id, " state ", static_cast<int>(job.row.state), " ending ", job.ending, " lent ",
                    impl_->leases.OfJobNumber(id).lent, " ", job.row.reason, "\n");
    for (const TaskRow& task : job.tasks) {
      absl::StrAppend(&text, "  task ", task.id, " ", task.state, " trials ", task.trials, " best ", task.best_us,
                      "\n");
    }
  }
  for (const auto& [key, state] : impl_->keys) {
    absl::StrAppend(&text, "key loaded ", state.loaded(), " request ", state.search_request, " failures ",
                    state.search_failures, " exhausted ", state.exhausted, " queue ",
                    impl_->leases.OfKeyNumber(state.number).waiting, " live ",
                    impl_->leases.OfKeyNumber(state.number).candidates, " duels ",
                    impl_->leases.OfKeyNumber(state.number).duels, "\n");
  }
  for (const auto& [id, worker] : impl_->workers) {
    absl::StrAppend(&text, "worker ", id, " credits ", worker.credits, " held ", impl_->leases.HeldBy(id).size(),
                    " waiting ", worker.waiting.has_value(), " draining ", worker.draining, "\n");
  }
  return text;
}

// ---- Impl: state in and out ----

Dispatcher::Impl::Impl(const DispatchOptions& o, uint64_t e, StoredState state)
    : options(o), epoch(e), restored(std::move(state)) {
  next_job = restored.last_job + 1;
  next_task = restored.last_task + 1;
  next_trial = restored.last_trial + 1;
}

void Dispatcher::Impl::On(const Committed& event) {
  const auto found = after_commit.find(event.commit);
  HONE_CHECK(found != after_commit.end()) << "commit " << event.commit << " was not asked for, or came twice";
  const std::vector<std::function<void()>> all = std::move(found->second);
  after_commit.erase(found);
  for (const std::function<void()>& after : all) after();
}

void Dispatcher::Impl::On(const Tick& event) {}

void Dispatcher::Impl::On(const ShutDown& event) {
  shutting_down = true;
  for (auto& [id, worker] : workers) AnswerSync(worker);
  for (auto& [id, job] : jobs) {
    if (job.ended) continue;
    job.Advance(now);
    changed_jobs.insert(id);
  }
}

void Dispatcher::Impl::On(const ImportLines& event) {
  const v1::ImportReply reply = event.reply;
  const ReplyTo to = event.to;
  std::vector<Write> writes;
  for (const Write& write : event.writes) {
    // A key in use has its champion already or is about to have one. What is imported for it is a claim: it is measured
    // as a candidate like others, now where a job has the budget, else by the next job.
    const SetBest* best = std::get_if<SetBest>(&write);
    const auto state = best == nullptr ? keys.end() : keys.find(best->key);
    if (state != keys.end()) {
      if (!state->second.loaded() || state->second.best_record() != 0) continue;
    }
    writes.push_back(write);
    if (const PutRecord* put = std::get_if<PutRecord>(&write)) {
      const auto known = keys.find(put->row.key);
      const std::string& trace = put->row.record.trace();
      if (known == keys.end() || !known->second.loaded() || known->second.Knows(trace)) continue;
      for (const uint64_t id : known->second.jobs) {
        Job& job = jobs.at(id);
        if (job.ending || !job.loaded() || TrialsLeft(job) <= 0) continue;
        QueueCandidate(job, *job.TaskOf(known->second), known->second, trace, "imported");
        break;
      }
    }
  }
  CommitThen(std::move(writes), [this, to, reply] { ReplyNow(to, reply); });
}

void Dispatcher::Impl::On(const KeepChoices& event) {
  if (event.request.model_hash().size() > kLongestName) {
    return ReplyNow(event.to, Refusal{static_cast<int>(absl::StatusCode::kInvalidArgument),
                                      "keep choices: model_hash is longer than any digest"});
  }
  std::vector<Write> writes;
  for (const v1::KernelChoice& choice : event.request.choices()) {
    writes.push_back(PutChoice{.tenant = event.tenant,
                               .model_hash = event.request.model_hash(),
                               .record = choice.record(),
                               .faster_default = choice.faster_default()});
  }
  for (const uint64_t record : event.request.locked()) writes.push_back(LockRecord{event.tenant, record});
  CommitThen(std::move(writes), [this, to = event.to] { ReplyNow(to, v1::KeepChoicesReply()); });
}

void Dispatcher::Impl::CommitThen(std::vector<Write> writes, std::function<void()> after) {
  for (Write& write : writes) step_writes.push_back(std::move(write));
  if (!after) return;
  if (step_after.empty()) step_after.reserve(kUsualWrites / 4);
  step_after.push_back(std::move(after));
}

void Dispatcher::Impl::CommitStep() {
  if (step_writes.empty() && step_after.empty()) return;
  after_commit[next_commit] = std::exchange(step_after, {});
  effects.push_back(Commit{next_commit++, std::exchange(step_writes, {})});
}

void Dispatcher::Impl::NoteProgress(Job& job) {
  if (now - job.progress_saved < kSaveAccountsEvery) return;
  job.progress_saved = now;
  changed_jobs.insert(job.row.id);
}

void Dispatcher::Impl::WriteChanged() {
  for (const uint64_t id : std::exchange(changed_jobs, {})) step_writes.push_back(PutJob{jobs.at(id).row});
  for (const uint64_t id : std::exchange(changed_tasks, {})) {
    step_writes.push_back(PutTask{jobs.at(job_by_task.at(id)).TaskOfId(id)});
  }
}

void Dispatcher::Impl::ReplyNow(ReplyTo to, Message message) { effects.push_back(Reply{to, std::move(message)}); }

}  // namespace hone
