// Leases: who may have one, whose candidate is lent next, and what becomes of one that ends without a result.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "database/store/checksum.h"
#include "tuner/dispatch/dispatcher_impl.h"

namespace hone {
namespace {

constexpr size_t kSecretBytes = 15;  // not to be guessed, and no std::string of so many needs memory beside itself

}  // namespace

int Dispatcher::Impl::HeldBy(const Worker& worker) const {
  return static_cast<int>(leases.HeldBy(worker.id).size() + builds.LentTo(worker.id).size());
}

bool Dispatcher::Impl::Rests(const Worker& worker) const {
  if (worker.faults < options.faulty_after) return false;
  return worker.rests_until > now || !leases.HeldBy(worker.id).empty();
}

bool Dispatcher::Impl::MayTake(const Worker& worker) const {
  return !worker.draining && worker.waiting.has_value() && !IsQuiet(worker) && !Rests(worker) && worker.credits > 0 &&
         HeldBy(worker) < options.max_credits &&
         (worker.role() != WorkerRole::kMeasure || fleet.HasBuilder(worker.tenant));
}

TenantCharge Dispatcher::Impl::ChargeOf(uint64_t tenant) const {
  const double charged = accounts.charged(tenant);
  return {.charged = charged,
          .charged_and_lent = charged + kUsualSeconds * leases.LentOf(tenant) / accounts.weight(tenant)};
}

// The tenant that was charged least comes first, and of its jobs the least charged; what is lent counts as charged.
uint64_t Dispatcher::Impl::NextTrialFor(const Worker& worker, bool* kept_away) {
  const WorkerPool& pool = fleet.PoolOfWorker(worker.id);
  for (const auto& [charged, tenant] : pool.ready_tenants) {
    ++counters.looked_at;
    if (const uint64_t trial = NextTrialOfTenant(pool.tenants.at(tenant), worker, kept_away)) return trial;
  }
  return 0;
}

uint64_t Dispatcher::Impl::NextTrialOfTenant(const TenantInPool& tenant, const Worker& worker, bool* kept_away) {
  struct Order {
    ByCharge::const_iterator next, end;
  };
  absl::InlinedVector<Order, 4> orders;  // of each pool
  for (const JobPool* pool : tenant.jobs) {
    ++counters.looked_at;
    if (!pool->ready.empty()) orders.push_back({pool->ready.begin(), pool->ready.end()});
  }
  while (!orders.empty()) {
    const auto least = std::ranges::min_element(orders, {}, [](const Order& order) { return *order.next; });
    ++counters.looked_at;
    if (const uint64_t trial = NextTrialOf(least->next->second, worker, kept_away)) return trial;
    if (++least->next == least->end) orders.erase(least);
  }
  return 0;
}

uint64_t Dispatcher::Impl::NextTrialOf(uint64_t job, const Worker& worker, bool* kept_away) {
  const LeaseTable::OfJob& out = leases.OfJobNumber(job);
  const auto first_of = [&](const LeaseTable::Queue& queue) -> uint64_t {
    for (const uint64_t id : queue) {
      const Trial& trial = *leases.Find(id);
      if (!IsKeptFrom(trial, worker)) return id;
      *kept_away = true;
    }
    return 0;
  };
  const auto same = out.queues.find(worker.last_key);
  if (same != out.queues.end()) {
    if (const uint64_t trial = first_of(same->second)) return trial;
  }
  for (const auto& [oldest, key] : out.heads) {
    if (const uint64_t trial = first_of(out.queues.at(key))) return trial;
  }
  return 0;
}

// To workers that have come to want one, and of jobs that have come to have one.
void Dispatcher::Impl::LendTrials(const Touched& batch) {
  if (shutting_down) return;
  std::vector<const WorkerPool*> pools;
  const auto add = [&](const WorkerPool& pool) {
    if (!pool.hungry.empty() && std::ranges::find(pools, &pool) == pools.end()) pools.push_back(&pool);
  };
  for (const uint64_t id : batch.workers) {
    if (workers.count(id) != 0 && fleet.StandingOfWorker(id).hungry) add(fleet.PoolOfWorker(id));
  }
  for (const uint64_t id : batch.jobs) {
    if (!fleet.HasJob(id) || !fleet.StandingOfJob(id).ready) continue;
    for (const WorkerPool* pool : fleet.PoolOfJob(id).workers) add(*pool);
  }
  if (pools.empty()) return;
  std::vector<LeaseToken> granted;
  granted.reserve(kUsualWrites);
  for (const WorkerPool* pool : pools) {
    uint64_t next = 0;
    for (auto who = pool->hungry.begin(); who != pool->hungry.end(); who = pool->hungry.upper_bound(next)) {
      next = *who;
      Worker& worker = workers.at(next);
      bool kept_away = false;
      while (MayTake(worker)) {
        const uint64_t id = NextTrialFor(worker, &kept_away);
        if (id == 0) break;
        Trial& trial = *leases.Find(id);
        Lend(trial, worker);
        step_writes.push_back(PutTrial{trial.row});
        granted.push_back(TokenOf(trial.row));
      }
      const bool hungry = MayTake(worker);
      FileWorker(worker);
      if (!hungry || kept_away) continue;
      AskOneFor(*pool);
      break;  // there is nothing for its kind
    }
  }
  if (granted.empty()) return;
  CommitThen({}, [this, granted = std::move(granted)] {
    for (const LeaseToken& token : granted) {
      Trial* trial = leases.Find(token.trial);
      if (trial == nullptr || TokenOf(trial->row) != token || trial->place != Trial::Place::kLent) continue;
      trial->granted = true;
      touched.workers.insert(trial->worker);
    }
  });
}

void Dispatcher::Impl::Lend(Trial& trial, Worker& worker) {
  leases.Lend(trial, worker.id, epoch);
  trial.row.secret = SecretOf("trial", trial.row.id, trial.row.attempt, worker);
  worker.last_key = trial.key;
  worker.last_job = trial.job;
  --worker.credits;
  ++counters.lent;
  Job& job = jobs.at(trial.job);
  FileJob(job);
  NoteWhetherItAsks(job);
}

// Known to this daemon and to whom the lease is sent; a restarted daemon reads it from the trial's row.
std::string Dispatcher::Impl::SecretOf(std::string_view what, uint64_t id, uint32_t attempt,
                                       const Worker& worker) const {
  return Digester()
      .Add(options.lease_key)
      .Add(what)
      .Add(int64_t(id))
      .Add(int64_t{attempt})
      .Add(int64_t(epoch))
      .Add(worker.hello.session())
      .Finish()
      .substr(0, kSecretBytes);
}

v1::Lease Dispatcher::Impl::MakeLease(const Trial& trial) {
  const KeyState& key = KeyOf(trial);
  v1::Lease lease;
  *lease.mutable_id() = IdOf(trial.row);
  lease.mutable_id()->set_secret(trial.row.secret);
  lease.set_task(trial.row.task);
  lease.set_workload_hash(trial.row.key.workload_hash);
  lease.set_trace(trial.row.trace);
  lease.set_threads(trial.row.key.threads);
  lease.set_numeric(trial.row.key.numeric);
  if (trial.row.source == kCheckSource) {  // alone
    const bool holds = trial.row.trace == key.best_trace() && IsOfDriver(jobs.at(trial.job), key);
    if (holds) lease.set_measured_digest(key.best_digest());  // where its code is the same
  } else {
    lease.set_champion_us(key.best_us());
    lease.set_champion_trace(key.best_trace());
  }
  lease.set_build_limit_ms(options.build_limit_ms);
  lease.set_run_limit_ms(options.run_limit_ms);
  lease.set_memory_limit_bytes(options.memory_limit_bytes);
  lease.set_duel(trial.row.duel);
  return lease;
}

void Dispatcher::Impl::GiveBack(Worker& worker, const v1::LeaseId& id) {
  Trial* trial = leases.Find(id.trial());
  if (trial == nullptr || trial->place != Trial::Place::kLent || trial->worker != worker.id) return;
  if (TokenOf(id) != TokenOf(trial->row) || !Holds(worker, id, trial->row)) return;
  ++counters.given_back;
  TakeBack(*trial, false);
}

void Dispatcher::Impl::TakeBack(Trial& trial, bool worker_was_lost) {
  ++counters.taken_back;
  const auto holder = workers.find(trial.worker);
  effects.emplace_back(LeaseTakenBack{.job = trial.job,
                                      .task = trial.row.task,
                                      .trial = trial.row.id,
                                      .attempt = trial.row.attempt,
                                      .epoch = trial.row.epoch,
                                      .worker = holder == workers.end() ? "" : holder->second.hello.worker_name(),
                                      .worker_was_lost = worker_was_lost});
  if (worker_was_lost && trial.under_work()) ++trial.row.lost_workers;
  const bool quarantine = static_cast<int>(trial.row.lost_workers) >= options.quarantine_after;
  const Job& job = jobs.at(trial.job);
  if (!quarantine && static_cast<int>(trial.row.attempt) < options.max_attempts && !job.ending) {
    leases.Requeue(trial, now, now);
    return;
  }
  std::vector<Write> writes;
  v1::Outcome outcome;
  if (quarantine) {
    outcome.set_kind(v1::OUTCOME_CRASH);
    outcome.set_detail(
        absl::StrCat("quarantined: ", trial.row.lost_workers, " workers were lost while they worked on it"));
  } else if (job.ending) {
    DropTrial(trial.row.id, writes);
    CommitThen(std::move(writes), nullptr);
    return;
  } else {
    outcome.set_kind(v1::OUTCOME_INFRA);
    outcome.set_detail(absl::StrCat("given up after ", trial.row.attempt, " attempts that did not come back"));
  }
  EndTrial(trial, outcome, nullptr, writes);
  CommitThen(std::move(writes), nullptr);
}

}  // namespace hone
