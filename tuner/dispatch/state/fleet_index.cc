#include "tuner/dispatch/state/fleet_index.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "tuner/dispatch/state/id_containers.h"

namespace hone {

namespace {

// A target of devices beside the host's CPU.
bool NamesDevice(std::string_view target) { return target.starts_with("opencl:") || target.starts_with("cuda:"); }

// Whether a job for `target` is meant for the worker's machine: any CPU, any device of a kind ("opencl:generic"), or
// the one that it names.
bool IsMeant(const std::string& target, const WorkerKind& worker) {
  if (target.empty() || target == "cpu:native") return !NamesDevice(worker.target);
  if (NamesDevice(target) && worker.target.starts_with(target + ",")) return true;
  return target == worker.target || target == absl::StrCat("cpu:", worker.device_class) ||
         target == worker.device_class;
}

}  // namespace

Fit FitOf(const WorkerKind& worker, const JobKind& job) {
  if (!Serves(worker.tenant, job.tenant)) return Fit::kOtherTenant;
  if (worker.role == WorkerRole::kBuild) return Fit::kBuildsOnly;
  if (job.bound() && worker.device_class != job.device_class) return Fit::kOtherDevice;
  if (job.bound() && worker.protocol != job.protocol) return Fit::kOtherProtocol;
  if (job.threads > worker.threads) return Fit::kFewerThreads;
  return IsMeant(job.target, worker) ? Fit::kFits : Fit::kOtherTarget;
}

WorkerKind BuilderKind(uint64_t tenant) {
  return {.tenant = tenant, .role = WorkerRole::kBuild, .device_class = "", .target = "", .protocol = 0, .threads = 0};
}

bool JobPool::AnyAlive() const {
  return std::ranges::any_of(workers, [](const WorkerPool* pool) { return !pool->alive.empty(); });
}

// ---- workers ----

WorkerPool& FleetIndex::PoolFor(const WorkerKind& kind) {
  std::unique_ptr<WorkerPool>& pool = worker_pools_[kind];
  if (pool != nullptr) return *pool;
  pool = std::make_unique<WorkerPool>();
  pool->kind = kind;
  for (JobPool* jobs : JobsOf(kind.tenant)) {
    if (FitOf(kind, jobs->kind) == Fit::kFits) Link(*pool, *jobs);
  }
  return *pool;
}

void FleetIndex::Move(uint64_t id, WorkerPool& pool, const WorkerStanding* before, const WorkerStanding* after) {
  // A set that the change leaves as it was is not touched: most changes are of one, or of numbers alone.
  const auto move = [&](std::set<uint64_t>& set, bool (*has)(const WorkerStanding&)) {
    const bool was = before != nullptr && has(*before), is = after != nullptr && has(*after);
    if (was && !is) set.erase(id);
    if (is && !was) set.insert(id);
  };
  move(pool.members, [](const WorkerStanding&) { return true; });
  move(pool.alive, [](const WorkerStanding& s) { return !s.draining; });
  move(pool.lost, [](const WorkerStanding& s) { return s.lost; });
  move(pool.ready, [](const WorkerStanding& s) { return s.ready(); });
  move(pool.waiting, [](const WorkerStanding& s) { return s.waits(); });
  move(pool.hungry, [](const WorkerStanding& s) { return !s.draining && s.hungry; });
  const auto alive = [](const WorkerStanding* s) {
    return s == nullptr || s->draining ? nullptr : &s->reporter->principal;
  };
  if (const std::string* was = alive(before), *is = alive(after); was != is) {
    if (was != nullptr && --pool.alive_of.at(*was) == 0) pool.alive_of.erase(*was);
    if (is != nullptr) ++pool.alive_of[*is];
  }
  const auto sum = [&](const auto& of) {
    return int64_t{after == nullptr ? 0 : of(*after)} - int64_t{before == nullptr ? 0 : of(*before)};
  };
  pool.not_quiet += static_cast<int>(sum([](const WorkerStanding& s) { return int{s.waits_for_quiet()}; }));
  pool.credits += sum([](const WorkerStanding& s) { return s.draining ? 0 : s.credits; });
  pool.held += sum([](const WorkerStanding& s) { return s.held; });
}

void FleetIndex::TouchJobsOf(const WorkerPool& pool) {
  for (const auto& [tenant, fitting] : pool.tenants) {
    for (const JobPool* jobs : fitting.jobs) touched_.jobs.insert(jobs->members.begin(), jobs->members.end());
  }
}

void FleetIndex::TouchMeasurers(uint64_t tenant) {
  for (const WorkerPool* pool : WorkersOf(tenant)) {
    if (pool->kind.role == WorkerRole::kMeasure) touched_.workers.insert(pool->members.begin(), pool->members.end());
  }
}

void FleetIndex::FileWorker(uint64_t id, const WorkerKind& kind, const WorkerStanding& standing) {
  const auto found = workers_.find(id);
  if (found != workers_.end() && found->second.pool->kind != kind) DropWorker(id);
  FiledWorker& worker = workers_[id];
  const bool fresh = worker.pool == nullptr;
  if (fresh) worker.pool = &PoolFor(kind);
  if (!fresh && worker.standing == standing) return;
  const WorkerStanding before = worker.standing;
  const bool was_alive = !worker.pool->alive.empty();
  Move(id, *worker.pool, fresh ? nullptr : &before, &standing);
  worker.standing = standing;
  FileBuilder(id, kind.tenant, standing);
  if (fresh || before.lost != standing.lost || before.draining != standing.draining ||
      before.not_quiet != standing.not_quiet || before.waiting_for != standing.waiting_for) {
    changed_tenants_.insert(kind.tenant);
  }
  if (was_alive == worker.pool->alive.empty()) TouchJobsOf(*worker.pool);
}

void FleetIndex::FileBuilder(uint64_t id, uint64_t tenant, const WorkerStanding& standing) {
  BuilderSet& builders = builders_[tenant];
  const bool had = HasBuilder(tenant);
  const auto put = [&](std::set<uint64_t>& set, bool is) {
    if (is) set.insert(id);
    if (!is) set.erase(id);
  };
  put(builders.ready, standing.builds && standing.ready());
  put(builders.hungry, standing.may_build);
  if (had == HasBuilder(tenant)) return;
  TouchMeasurers(tenant);
  changed_tenants_.insert(tenant);  // what holds their jobs up
}

void FleetIndex::DropWorker(uint64_t id) {
  const auto found = workers_.find(id);
  if (found == workers_.end()) return;
  WorkerPool* pool = found->second.pool;
  Move(id, *pool, &found->second.standing, nullptr);
  workers_.erase(found);
  changed_tenants_.insert(pool->kind.tenant);
  FileBuilder(id, pool->kind.tenant, {});
  if (pool->alive.empty()) TouchJobsOf(*pool);
  if (!pool->members.empty()) return;
  for (const auto& [tenant, fitting] : pool->tenants) {
    for (JobPool* jobs : fitting.jobs) std::erase(jobs->workers, pool);
  }
  worker_pools_.erase(WorkerKind(pool->kind));
}

std::vector<const WorkerPool*> FleetIndex::WorkersOf(uint64_t tenant) const {
  std::vector<const WorkerPool*> pools;
  for (const uint64_t of : std::set<uint64_t>{tenant, kAllTenants}) {
    for (auto next = worker_pools_.lower_bound(BuilderKind(of));
         next != worker_pools_.end() && next->first.tenant == of; ++next) {
      pools.push_back(next->second.get());
    }
  }
  return pools;
}

const BuilderSet& FleetIndex::BuildersOf(uint64_t tenant) const {
  static const BuilderSet kNone;
  const auto found = builders_.find(tenant);
  return found == builders_.end() ? kNone : found->second;
}

bool FleetIndex::HasBuilder(uint64_t tenant) const { return !BuildersOf(tenant).ready.empty(); }

// ---- jobs ----

JobPool& FleetIndex::PoolFor(const JobKind& kind) {
  std::unique_ptr<JobPool>& pool = job_pools_[kind];
  if (pool != nullptr) return *pool;
  pool = std::make_unique<JobPool>();
  pool->kind = kind;
  changed_tenants_.insert(kind.tenant);
  for (const auto& [of, workers] : worker_pools_) {
    if (FitOf(of, kind) == Fit::kFits) Link(*workers, *pool);
  }
  return *pool;
}

void FleetIndex::Link(WorkerPool& workers, JobPool& jobs) {
  jobs.workers.push_back(&workers);
  workers.tenants[jobs.kind.tenant].jobs.push_back(&jobs);
  workers.active_jobs += static_cast<int64_t>(jobs.active.size());
  PlaceTenant(workers, jobs.kind.tenant);
}

// Of a pool without members, which is about to go.
void FleetIndex::Unlink(WorkerPool& workers, JobPool& jobs) {
  const auto found = workers.tenants.find(jobs.kind.tenant);
  std::erase(found->second.jobs, &jobs);
  PlaceTenant(workers, jobs.kind.tenant);
  if (found->second.jobs.empty()) workers.tenants.erase(found);
}

void FleetIndex::PlaceTenant(WorkerPool& workers, uint64_t tenant) {
  TenantInPool& fitting = workers.tenants.at(tenant);
  const TenantCharge charge = ChargeOf(tenant);
  const auto place = [&](ByCharge& order, std::optional<double>& at, ByCharge JobPool::*of_jobs, double charged) {
    const bool is = std::ranges::any_of(fitting.jobs, [&](const JobPool* jobs) { return !(jobs->*of_jobs).empty(); });
    const std::optional<double> to = is ? std::optional(charged) : std::nullopt;
    if (at == to) return;
    if (at.has_value() && is) {
      Replace(order, {*at, tenant}, {charged, tenant});
    } else if (is) {
      order.emplace(charged, tenant);
    } else {
      order.erase({*at, tenant});
    }
    at = to;
  };
  place(workers.ready_tenants, fitting.ready_at, &JobPool::ready, charge.charged_and_lent);
  place(workers.active_tenants, fitting.active_at, &JobPool::active, charge.charged);
}

TenantCharge FleetIndex::ChargeOf(uint64_t tenant) const {
  const auto found = charge_of_.find(tenant);
  return found == charge_of_.end() ? TenantCharge{} : found->second;
}

void FleetIndex::FileTenant(uint64_t tenant, const TenantCharge& charge) {
  TenantCharge& before = charge_of_[tenant];
  if (before == charge) return;
  before = charge;
  for (JobPool* jobs : JobsOf(tenant)) {
    for (WorkerPool* workers : jobs->workers) PlaceTenant(*workers, tenant);
  }
}

void FleetIndex::Take(uint64_t id, FiledJob& job) {
  job.pool->members.erase(id);
  const auto was_active = static_cast<int64_t>(job.pool->active.erase({job.standing.charged, id}));
  job.pool->idle.erase({job.standing.charged, id});
  job.pool->ready.erase({job.standing.charged_and_lent, id});
  for (WorkerPool* workers : job.pool->workers) {
    workers->active_jobs -= was_active;
    PlaceTenant(*workers, job.pool->kind.tenant);
  }
}

double FleetIndex::LeastCharged(uint64_t tenant) const {
  std::optional<double> least;
  for (const JobPool* pool : JobsOf(tenant)) {
    for (const ByCharge* order : {&pool->active, &pool->idle}) {
      if (!order->empty()) least = std::min(least.value_or(order->begin()->first), order->begin()->first);
    }
  }
  return least.value_or(0);
}

void FleetIndex::FileJob(uint64_t id, const JobKind& kind, const JobStanding& standing) {
  const auto found = jobs_.find(id);
  if (found != jobs_.end() && found->second.pool->kind != kind) DropJob(id);
  FiledJob& job = jobs_[id];
  const bool fresh = job.pool == nullptr;
  if (fresh) {
    job.pool = &PoolFor(kind);
    job.pool->members.insert(id);
  }
  if (!fresh && job.standing == standing) return;
  const JobStanding before = fresh ? JobStanding{} : job.standing;
  job.standing = standing;
  // An order that the change leaves as it was is not touched: most changes are of one.
  const auto move = [&](ByCharge& order, bool was, double from, bool is, double to) {
    if (was == is && (!is || from == to)) return;
    if (was && is) return Replace(order, {from, id}, {to, id});
    if (was) order.erase({from, id});
    if (is) order.emplace(to, id);
  };
  move(job.pool->active, before.active, before.charged, standing.active, standing.charged);
  move(job.pool->idle, before.open && !before.active, before.charged, standing.open && !standing.active,
       standing.charged);
  move(job.pool->ready, before.ready, before.charged_and_lent, standing.ready, standing.charged_and_lent);
  if (before.active != standing.active || before.ready != standing.ready) {
    for (WorkerPool* workers : job.pool->workers) {
      workers->active_jobs += int64_t{standing.active} - int64_t{before.active};
      PlaceTenant(*workers, kind.tenant);
    }
  }
}

void FleetIndex::DropJob(uint64_t id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  JobPool* pool = found->second.pool;
  Take(id, found->second);
  jobs_.erase(found);
  if (!pool->members.empty()) return;
  for (WorkerPool* workers : pool->workers) Unlink(*workers, *pool);
  job_pools_.erase(JobKind(pool->kind));
}

std::vector<JobPool*> FleetIndex::JobsOf(uint64_t tenant) const {
  const bool all = tenant == kAllTenants;
  std::vector<JobPool*> pools;
  for (auto next = all ? job_pools_.begin() : job_pools_.lower_bound({.tenant = tenant});
       next != job_pools_.end() && (all || next->first.tenant == tenant); ++next) {
    pools.push_back(next->second.get());
  }
  return pools;
}

void FleetIndex::CheckOrders(const WorkerPool& pool) {
  int64_t active_jobs = 0;
  size_t ready = 0, active = 0;
  for (const auto& [tenant, fitting] : pool.tenants) {
    HONE_CHECK(!fitting.jobs.empty()) << "tenant " << tenant;
    bool any_ready = false, any_active = false;
    for (const JobPool* jobs : fitting.jobs) {
      any_ready = any_ready || !jobs->ready.empty();
      any_active = any_active || !jobs->active.empty();
      active_jobs += static_cast<int64_t>(jobs->active.size());
    }
    HONE_CHECK(any_ready == fitting.ready_at.has_value() && any_active == fitting.active_at.has_value())
        << "tenant " << tenant;
    if (any_ready) ready += pool.ready_tenants.count({*fitting.ready_at, tenant});
    if (any_active) active += pool.active_tenants.count({*fitting.active_at, tenant});
  }
  HONE_CHECK(ready == pool.ready_tenants.size() && active == pool.active_tenants.size());
  HONE_CHECK(active_jobs == pool.active_jobs);
}

void FleetIndex::CheckInvariants() const {
  size_t members = 0;
  for (const auto& [kind, pool] : worker_pools_) {
    HONE_CHECK(!pool->members.empty()) << "a pool without workers";
    members += pool->members.size();
    int64_t credits = 0, held = 0;
    int not_quiet = 0;
    std::map<std::string, int> alive_of;
    for (const uint64_t id : pool->members) {
      const WorkerStanding& s = workers_.at(id).standing;
      held += s.held;
      if (!s.draining) credits += s.credits, ++alive_of[s.reporter->principal];
      not_quiet += pool->waiting.count(id) != 0 && s.not_quiet;
      HONE_CHECK(workers_.at(id).pool == pool.get() && (pool->alive.count(id) != 0) == !s.draining) << "worker " << id;
    }
    HONE_CHECK(credits == pool->credits && held == pool->held && not_quiet == pool->not_quiet);
    HONE_CHECK(alive_of == pool->alive_of) << "a pool of device " << kind.device_class;
    CheckOrders(*pool);
    for (const auto& [of, jobs] : job_pools_) {
      const auto fitting = pool->tenants.find(of.tenant);
      const bool linked = fitting != pool->tenants.end() &&
                          std::ranges::find(fitting->second.jobs, jobs.get()) != fitting->second.jobs.end();
      const bool back = std::ranges::find(jobs->workers, pool.get()) != jobs->workers.end();
      HONE_CHECK(linked == back && linked == (FitOf(kind, of) == Fit::kFits)) << "a pool of device " << of.device_class;
    }
  }
  HONE_CHECK(members == workers_.size());
  size_t builders = 0, hungry = 0;
  for (const auto& [tenant, set] : builders_) {
    builders += set.ready.size();
    hungry += set.hungry.size();
    for (const uint64_t id : set.hungry) HONE_CHECK(set.ready.count(id) != 0) << "worker " << id;
  }
  for (const auto& [id, worker] : workers_) {
    const BuilderSet& set = BuildersOf(worker.pool->kind.tenant);
    const WorkerStanding& s = worker.standing;
    builders -= s.builds && s.ready();
    hungry -= s.may_build;
    HONE_CHECK((set.ready.count(id) != 0) == (s.builds && s.ready()) && (set.hungry.count(id) != 0) == s.may_build)
        << "worker " << id;
  }
  HONE_CHECK(builders == 0 && hungry == 0) << "builders that are no workers";
}

}  // namespace hone
