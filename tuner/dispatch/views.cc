// What is shown of the dispatcher's state: a job, why it stands where it does, workers, and how much there is.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tuner/dispatch/dispatcher_impl.h"
#include "tuner/dispatch/state/device_facts.h"

namespace hone {
namespace {

constexpr Micros kShowLost = Micros{15} * 60 * kSecond;

// Of a lease, as the worker said it last. A phase it has not told yet is its queue.
const char* PhaseName(v1::Phase phase) {
  switch (phase) {
    case v1::PHASE_BUILDING: return "building";
    case v1::PHASE_VERIFYING: return "verifying";
    case v1::PHASE_VERIFIED: return "verified";
    case v1::PHASE_MEASURING: return "measuring";
    default: return "queued";
  }
}

}  // namespace

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

v1::JobExplanation Dispatcher::Impl::Explain(const Job& job) const {
  v1::JobExplanation explanation;
  *explanation.mutable_job() = SnapshotOf(job, true);
  std::map<uint64_t, int64_t> leases_of;  // by worker
  int64_t queued = 0, retried = 0, searches = 0;
  for (const uint64_t id : leases.OfJobNumber(job.row.id).trials) {
    const Trial& trial = leases.trials().at(id);
    const bool is_queued = trial.waits();
    retried += trial.row.attempt > (is_queued ? 0u : 1u);
    queued += is_queued;
    if (is_queued) continue;
    ++(*explanation.mutable_lent())[PhaseName(trial.phase)];
    if (trial.place == Trial::Place::kLent) ++leases_of[trial.worker];
  }
  for (const auto& [request, key] : key_by_search) searches += key->search_job == job.row.id;
  explanation.set_queued(queued);
  explanation.set_retried(retried);
  explanation.set_searches(searches);
  int64_t before = 0;
  for (const auto& [id, other] : jobs) {
    before += id != job.row.id && other.row.tenant == job.row.tenant && !other.ended && !other.row.request.paused() &&
              other.virtual_seconds < job.virtual_seconds;
  }
  explanation.set_jobs_before(before);
  for (const auto& [id, worker] : workers) {
    if (!Serves(worker.tenant, job.row.tenant)) continue;
    v1::WorkerFit& fit = *explanation.add_workers();
    *fit.mutable_worker() = InfoOf(worker);
    fit.mutable_worker()->set_last_seen_seconds(SecondsSince(worker.last_seen));
    fit.set_leases(leases_of[id]);
    const v1::DeviceProfile& profile = worker.hello.profile();
    switch (FitOf(worker, job)) {
      case Fit::kFits:
      case Fit::kOtherTenant: break;
      case Fit::kBuildsOnly: fit.set_misfit("it builds for others, and measures nothing"); break;
      case Fit::kOtherDevice:
        fit.set_misfit(absl::StrCat("it is ", profile.device_class(), ", the job is bound to ", job.row.device_class));
        break;
      case Fit::kOtherProtocol:
        fit.set_misfit(absl::StrCat("it measures by protocol ", worker.hello.measure_protocol(), ", the job by ",
                                    job.row.protocol, ": another release of Hone"));
        break;
      case Fit::kFewerThreads:
        fit.set_misfit(absl::StrCat("it measures with ", worker.hello.threads(), " threads, the job needs ",
                                    job.bound() ? job.row.threads : job.row.request.threads()));
        break;
      case Fit::kOtherTarget:
        fit.set_misfit(absl::StrCat("it is ", profile.device_class(), ", the job is for ", job.row.request.target()));
        break;
    }
  }
  return explanation;
}

v1::WorkerInfo Dispatcher::Impl::InfoOf(const Worker& worker) const {
  v1::WorkerInfo info;
  const int held = HeldBy(worker);
  info.set_worker_id(worker.id);
  info.set_name(worker.hello.worker_name());
  info.set_state(IsLost(worker) ? "lost" : worker.draining ? "draining" : held > 0 ? "busy" : "idle");
  *info.mutable_profile() = worker.hello.profile();
  info.set_leases(held);
  info.set_threads(worker.hello.threads());
  info.set_trials(worker.trials);
  info.set_refused_reports(worker.refused_reports);
  *info.mutable_missing_layers() = worker.hello.missing_layers();
  info.set_waiting_for(worker.waiting_for);
  if (worker.faults >= options.faulty_after && worker.waiting_for.empty()) {
    info.set_waiting_for(
        absl::StrCat("a trial that succeeds: the last ", worker.faults, " failed for no fault of theirs"));
  }
  const WorkerRole role = worker.role();
  info.set_role(role == WorkerRole::kBuild ? "build" : role == WorkerRole::kMeasure ? "measure" : "both");
  const v1::DeviceProfile* facts = ProfileOf(worker.hello.profile().device_class());
  if (role != WorkerRole::kBuild && facts != nullptr) info.set_probe(ProbeStanding(*facts, worker.hello.profile()));
  return info;
}

std::vector<v1::WorkerInfo> Dispatcher::Impl::Workers(uint64_t tenant, Micros at) const {
  std::vector<v1::WorkerInfo> infos;
  const auto seen = [&](v1::WorkerInfo info, Micros then) {
    info.set_last_seen_seconds(std::max(0.0, static_cast<double>(at - then) * 1e-6));
    infos.push_back(std::move(info));
  };
  for (const LostWorker& lost : lost_workers) {
    if (Serves(lost.tenant, tenant) && at - lost.last_seen <= kShowLost) seen(lost.info, lost.last_seen);
  }
  for (const auto& [id, worker] : workers) {
    if (Serves(worker.tenant, tenant)) seen(InfoOf(worker), worker.last_seen);
  }
  return infos;
}

FleetCounts Dispatcher::Impl::Counts(std::optional<uint64_t> tenant) const {
  FleetCounts counts;
  const auto counts_in = [&](uint64_t whose) { return !tenant.has_value() || *tenant == whose; };
  for (const auto& [id, job] : jobs) {
    if (!counts_in(job.row.tenant)) continue;
    (job.row.request.paused()           ? counts.jobs_paused
     : job.row.state == v1::JOB_WAITING ? counts.jobs_waiting
                                        : counts.jobs_running) += 1;
  }
  for (const auto& [id, trial] : leases.trials()) {
    if (!counts_in(trial.row.key.tenant)) continue;
    (trial.waits() ? counts.queued : counts.lent.at(static_cast<size_t>(trial.phase))) += 1;
  }
  for (const auto& [id, build] : builds.builds()) {
    if (counts_in(build.tenant)) (build.builder == 0 ? counts.builds_waiting : counts.builds_lent) += 1;
  }
  for (const auto& [request, key] : key_by_search) counts.searches += counts_in(key->key().tenant);
  for (const auto& [id, worker] : workers) {
    if (tenant.has_value() && !Serves(worker.tenant, *tenant)) continue;
    (IsLost(worker)        ? counts.workers_lost
     : worker.draining     ? counts.workers_draining
     : HeldBy(worker) == 0 ? counts.workers_idle
                           : counts.workers_busy) += 1;
    counts.workers_waiting += !worker.waiting_for.empty();
  }
  return counts;
}

}  // namespace hone
