// Workers and leases: who is alive, who holds what, who gets the next candidate.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/support/printable.h"
#include "database/checksum.h"
#include "tuner/dispatch/device_facts.h"
#include "tuner/dispatch/dispatcher_impl.h"

namespace hone {
namespace {

constexpr uint32_t kProtocolVersion = 2;  // 2: reports are answered by lease and secret
constexpr uint32_t kLongestQuietMs = 120'000;
constexpr Micros kShowLost = Micros{15} * 60 * 1'000'000;
constexpr size_t kMostLost = 32;
constexpr size_t kMostProfileBytes = 16 << 10;  // some of each class are kept
// What a worker says of itself is shown to others beside that of all workers, in one message.
constexpr size_t kMostHelloBytes = 24 << 10, kMostWaitingForBytes = 1 << 10;

bool UnderWork(v1::Phase phase) { return phase >= v1::PHASE_BUILDING; }

Refusal RefusalOf(absl::StatusCode code, std::string message) { return {static_cast<int>(code), std::move(message)}; }

// What makes a Hello one that can never be taken.
std::optional<Refusal> CheckHello(const v1::HelloRequest& request) {
  if (request.session().empty() || request.session().size() > 64 || request.worker_name().empty() ||
      request.profile().device_class().empty() || request.profile().device_class().size() > kLongestName) {
    return RefusalOf(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("hello: session (1 to 64 bytes), worker_name and profile.device_class (1 to ",
                                  kLongestName, " bytes) are needed"));
  }
  if (const size_t bytes = request.profile().ByteSizeLong(); bytes > kMostProfileBytes) {
    return RefusalOf(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("hello: the device's profile has ", bytes, " bytes, and ", kMostProfileBytes, " are allowed"));
  }
  if (const size_t bytes = request.ByteSizeLong(); bytes > kMostHelloBytes) {
    return RefusalOf(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("hello: it has ", bytes, " bytes, and ", kMostHelloBytes, " are allowed"));
  }
  if (request.worker_name().find('\n') != std::string::npos) {
    return RefusalOf(absl::StatusCode::kInvalidArgument, "hello: worker_name has a line feed");
  }
  const bool states_range = request.has_version() && request.version().max() != 0;
  if (states_range && (request.version().min() > kProtocolVersion || request.version().max() < kProtocolVersion)) {
    return RefusalOf(
        absl::StatusCode::kUnimplemented,
        absl::StrCat("hello: the worker speaks versions ", request.version().min(), " to ", request.version().max(),
                     ", this daemon speaks ", kProtocolVersion, "; install the same release on both"));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> Dispatcher::Impl::TakeName(const Hello& event) {
  const v1::HelloRequest& request = event.request;
  const uint64_t tenant = event.tenant;
  const LostNames::Owner* owner = lost_names.Find(now, tenant, request.worker_name());
  const auto is_its_host = [&](const std::string& name_key) {
    return !request.name_key().empty() && request.name_key() == name_key;
  };
  if (owner != nullptr && owner->principal != event.principal && !is_its_host(owner->name_key)) {
    return RefusalOf(absl::StatusCode::kAlreadyExists,
                     absl::StrCat("hello: ", request.worker_name(), " is the name of another caller's worker that was ",
                                  "lost; for ", (owner->until - now) / kSecond, " s more nobody else is called so"));
  }
  std::vector<uint64_t> over;
  for (auto next = workers_by_name.lower_bound({tenant, request.worker_name(), 0});
       next != workers_by_name.end() && std::get<1>(*next) == request.worker_name() && std::get<0>(*next) == tenant;
       ++next) {
    const uint64_t id = std::get<2>(*next);
    const Worker& other = workers.at(id);
    if (!is_its_host(other.hello.name_key())) {
      return RefusalOf(absl::StatusCode::kAlreadyExists,
                       absl::StrCat("hello: another worker has the name ", request.worker_name(), " and was heard of ",
                                    (now - other.last_seen) / kSecond, " s ago; while it lives the name is its own"));
    }
    if (!other.waiting.has_value()) over.push_back(id);
  }
  for (const uint64_t id : over) LoseWorker(id);
  Forgive(tenant, request.session());
  std::erase_if(lost_workers, [&](const LostWorker& lost) {
    return lost.tenant == tenant && lost.info.name() == request.worker_name();
  });
  return std::nullopt;
}

void Dispatcher::Impl::On(const Hello& event) {
  const v1::HelloRequest& request = event.request;
  if (const std::optional<Refusal> refusal = CheckHello(request)) return ReplyNow(event.to, *refusal);
  Worker* worker = FindSession(event.tenant, request.session());
  if (worker == nullptr && worker_by_session.count(request.session()) != 0) {
    return ReplyNow(event.to, RefusalOf(absl::StatusCode::kPermissionDenied, "hello: the session is another tenant's"));
  }
  if (worker != nullptr && worker->hello.worker_name() != request.worker_name()) {
    return ReplyNow(event.to,
                    RefusalOf(absl::StatusCode::kInvalidArgument,
                              absl::StrCat("hello: the session is that of worker ", worker->hello.worker_name(),
                                           "; another name needs a session of its own")));
  }
  if (worker == nullptr) {
    if (const std::optional<Refusal> refusal = TakeName(event)) return ReplyNow(event.to, *refusal);
    const uint64_t id = next_worker++;
    worker = &workers[id];
    worker->id = id;
    worker->tenant = event.tenant;
    worker_by_session[request.session()] = id;
  }
  workers_by_name.erase({worker->tenant, worker->hello.worker_name(), worker->id});
  workers_by_name.emplace(worker->tenant, request.worker_name(), worker->id);
  touched.workers.insert(worker->id);
  NoteGenerator(*worker, false);  // of an earlier Hello
  worker->principal = event.principal;
  worker->hello = request;
  worker->hello.set_threads(std::max(1, request.threads()));
  worker->hello.set_measure_protocol(std::max<uint32_t>(1, request.measure_protocol()));
  worker->kind = worker->MakeKind();
  NoteGenerator(*worker, true);
  worker->last_seen = now;
  worker->silent_until = now + Micros{options.lease_ms} * 1000;
  if (!worker->waiting.has_value()) worker->silent_since = now;
  v1::HelloReply reply;
  reply.set_version(kProtocolVersion);
  reply.set_worker_id(worker->id);
  reply.set_lease_ms(options.lease_ms);
  reply.set_sync_hold_ms(options.sync_hold_ms);
  if (worker->role() == WorkerRole::kBuild) return ReplyNow(event.to, reply);  // nothing is measured on its device
  v1::DeviceProfile& profile = profiles[worker->hello.profile().device_class()];
  v1::DeviceProbe probe;
  probe.set_tenant(worker->tenant);
  probe.set_worker(ToText(worker->reporter()));
  probe.set_threads(worker->hello.threads());
  *probe.mutable_profile() = worker->hello.profile();
  profile = AfterProbe(profile, std::move(probe));
  CommitThen({PutDeviceClass{{profile.device_class(), profile}}},
             [this, to = event.to, reply] { ReplyNow(to, reply); });
}

Worker* Dispatcher::Impl::FindSession(uint64_t tenant, const std::string& session) {
  const auto found = worker_by_session.find(session);
  if (found == worker_by_session.end()) return nullptr;
  Worker& worker = workers.at(found->second);
  return worker.tenant == tenant ? &worker : nullptr;
}

void Dispatcher::Impl::On(const CallGone& event) {
  const auto found = worker_by_call.find(event.to);
  if (found != worker_by_call.end()) EndWait(workers.at(found->second));
  if (const Build* build = builds.OfCall(event.to)) builds.Remove(build->id);
}

void Dispatcher::Impl::EndWait(Worker& worker) {
  worker_by_call.erase(worker.waiting_to);
  worker.waiting.reset();
  worker.silent_since = now;
  touched.workers.insert(worker.id);
}

void Dispatcher::Impl::On(Sync& event) {
  v1::SyncRequest& request = event.request;
  Worker* worker = FindSession(event.tenant, request.session());
  if (worker == nullptr) {
    v1::SyncReply reply;
    reply.set_unknown_session(true);
    reply.set_shut_down(shutting_down);
    return ReplyNow(event.to, reply);
  }
  utc = event.utc;
  touched.workers.insert(worker->id);
  worker->last_seen = now;
  const uint32_t quiet_ms = std::min(request.quiet_ms(), kLongestQuietMs);
  worker->silent_until = now + Micros{options.lease_ms} * 1000 + Micros{quiet_ms} * 1000;
  for (v1::TrialResult& result : *request.mutable_results()) TakeResult(*worker, result);
  for (const v1::BuildResult& result : request.built()) TakeBuilt(*worker, result);
  if (request.seq() < worker->seq) {
    // Overtaken by a newer call: what it says of leases is old, its results are not.
    return ReplyNow(event.to, DesiredState(*worker, request));
  }
  if (worker->waiting.has_value()) AnswerSync(*worker);
  worker->seq = request.seq();
  worker->draining = request.draining() || worker->drain_asked;
  worker->silent_since = 0;
  worker->waiting_for = Utf8Prefix(request.waiting_for(), kMostWaitingForBytes);
  worker->not_quiet = request.not_quiet();
  ChargeWallTime(*worker, request);
  for (const v1::LeaseId& id : request.given_back()) GiveBack(*worker, id);

  SortedIds said;
  for (const v1::LeaseState& held : request.held()) {
    Trial* trial = leases.Find(held.id().trial());
    if (trial == nullptr || !Serves(worker->tenant, trial->row.key.tenant)) continue;
    if (TokenOf(held.id()) != TokenOf(trial->row) || !Holds(*worker, held.id(), trial->row)) continue;
    if (trial->place == Trial::Place::kOrphan) leases.Adopt(*trial, worker->id);
    if (trial->place != Trial::Place::kLent || trial->worker != worker->id) continue;
    said.insert(trial->row.id);
    if (UnderWork(held.phase()) && trial->working_since == 0) {
      trial->working_since = now;
      touched.trials.insert(trial->row.id);
    }
    trial->phase = held.phase();
    worker->last_job = trial->job;
  }
  const auto wanted = [&](uint32_t credits) {
    return std::min<int>(static_cast<int>(std::min<uint32_t>(credits, 1u << 20)), options.max_credits);
  };
  int untold = 0;  // given to it, but the answer that said so was lost or is on its way
  for (const uint64_t id : leases.HeldBy(worker->id)) untold += said.count(id) == 0;
  const auto builds_untold = static_cast<int>(builds.LentTo(worker->id).size() - BuildsSaid(*worker, request).size());
  const bool only_builds = worker->role() == WorkerRole::kBuild;
  worker->credits = only_builds ? 0 : std::max(0, wanted(request.credits()) - untold);
  worker->build_credits = 0;
  if (worker->role() != WorkerRole::kMeasure) {
    const uint32_t offered = only_builds ? request.credits() : request.build_credits();
    worker->build_credits = std::max(0, wanted(offered) - builds_untold);
  }
  worker->waiting = std::move(event.request);  // `request` is read no more
  worker->waiting_to = event.to;
  worker_by_call[event.to] = worker->id;
  worker->quiet_until = now + Micros{quiet_ms} * 1000;
  worker->answer_by = std::max(now + Micros{options.sync_hold_ms} * 1000, worker->quiet_until);
}

void Dispatcher::Impl::GiveBack(Worker& worker, const v1::LeaseId& id) {
  Trial* trial = leases.Find(id.trial());
  if (trial == nullptr || trial->place != Trial::Place::kLent || trial->worker != worker.id) return;
  if (TokenOf(id) != TokenOf(trial->row) || !Holds(worker, id, trial->row)) return;
  ++counters.given_back;
  TakeBack(*trial, false);
}

void Dispatcher::Impl::On(const DrainWorkers& event) {
  v1::ListWorkersReply reply;
  const bool all = event.name == "*";
  std::vector<uint64_t> tenants = {event.tenant};
  if (event.tenant == kLocalTenant) tenants.push_back(kAllTenants);  // the database's owner has those that serve all
  for (const uint64_t tenant : tenants) {
    for (auto next = workers_by_name.lower_bound({tenant, all ? "" : event.name, 0});
         next != workers_by_name.end() && std::get<0>(*next) == tenant; ++next) {
      if (!all && std::get<1>(*next) != event.name) break;
      Worker& worker = workers.at(std::get<2>(*next));
      worker.draining = worker.drain_asked = true;
      touched.workers.insert(worker.id);
      *reply.add_workers() = InfoOf(worker);
    }
  }
  if (reply.workers().empty() && !all) {
    return ReplyNow(event.to, Refusal{static_cast<int>(absl::StatusCode::kNotFound),
                                      absl::StrCat("no worker is named ", event.name)});
  }
  ReplyNow(event.to, reply);
}

void Dispatcher::Impl::ChargeWallTime(Worker& worker, const v1::SyncRequest& request) {
  const auto risen = [](double& before, double after) {
    if (!std::isfinite(after) || after <= before) return 0.0;
    return after - std::exchange(before, after);
  };
  const double build = risen(worker.build_seconds, request.build_seconds());
  const double verify = risen(worker.verify_seconds, request.verify_seconds());
  const double measure = risen(worker.measure_seconds, request.measure_seconds());
  if (build + verify + measure <= 0) return;
  worker.reports_wall_time = true;
  // Shared by the jobs whose trials it has in hand, by their number; with none in hand it was the last one's.
  std::map<uint64_t, int> trials_of_job;
  int total = 0;
  for (const auto& held : request.held()) {
    const Trial* trial = leases.Find(held.id().trial());
    if (trial == nullptr || trial->worker != worker.id) continue;
    ++trials_of_job[trial->job];
    ++total;
  }
  if (total == 0) total = trials_of_job[worker.last_job] = 1;
  for (const auto& [id, count] : trials_of_job) {
    const auto found = jobs.find(id);
    if (found == jobs.end()) continue;
    Job& job = found->second;
    const double share = static_cast<double>(count) / total;
    job.row.build_seconds += build * share;
    job.row.verify_seconds += verify * share;
    job.row.measure_seconds += measure * share;
    double& busy = job.busy_by_worker[worker.id];
    busy += (build + verify + measure) * share;
    job.busiest = std::max(job.busiest, busy);
    job.row.busy_seconds = job.busy_before + job.busiest;
  }
}

bool Dispatcher::Impl::IsLost(const Worker& worker) const {
  return worker.silent_since > 0 && now - worker.silent_since >= Micros{options.lost_after_ms} * 1000;
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

void Dispatcher::Impl::ExpireWorker(uint64_t id) {
  const Worker worker = workers.at(id);
  v1::WorkerInfo info = InfoOf(worker);
  HadUnderWork blamed = LoseWorker(id);
  if (worker.draining) return;  // it has ended as it should
  ++counters.workers_lost;
  info.set_state("lost");
  info.set_leases(0);
  lost_names.Add(now, worker.tenant, info.name(), worker.principal, worker.hello.name_key());
  lost_workers.push_back({worker.tenant, std::move(info), worker.last_seen, worker.hello.session(), std::move(blamed)});
  if (lost_workers.size() > kMostLost) lost_workers.pop_front();
}

Dispatcher::Impl::HadUnderWork Dispatcher::Impl::LoseWorker(uint64_t id) {
  Worker& worker = workers.at(id);
  if (worker.waiting.has_value()) {
    v1::SyncReply reply;
    reply.set_unknown_session(true);
    ReplyNow(worker.waiting_to, reply);
  }
  HadUnderWork under_work;
  const SortedIds held = leases.HeldBy(id);
  for (const uint64_t trial : held) {
    if (UnderWork(leases.Find(trial)->phase)) under_work.trials.push_back(trial);
  }
  for (const uint64_t trial : held) TakeBack(*leases.Find(trial), true);
  const std::set<uint64_t> lent = builds.LentTo(id), asked = builds.AskedBy(id);
  for (const uint64_t build : lent) under_work.builds.push_back(builds.Find(build)->digest);
  for (const uint64_t build : lent) TakeBackBuild(*builds.Find(build));
  for (const uint64_t build : asked) {
    AnswerBuild(build, Refusal{static_cast<int>(absl::StatusCode::kUnavailable), "the session of the worker is over"});
  }
  if (worker.waiting.has_value()) EndWait(worker);
  NoteGenerator(worker, false);
  touched.workers.insert(id);
  worker_by_session.erase(worker.hello.session());
  workers_by_name.erase({worker.tenant, worker.hello.worker_name(), id});
  fleet.DropWorker(id);
  deadlines.Set(Deadlines::Of::kWorker, id, Deadlines::kNever);
  workers.erase(id);
  return under_work;
}

// A process that comes back in its session lived all the time: it was the network that was lost, and no candidate is to
// blame for that.
void Dispatcher::Impl::Forgive(uint64_t tenant, const std::string& session) {
  const auto cut_off = [&](const LostWorker& lost) { return lost.tenant == tenant && lost.session == session; };
  for (const LostWorker& lost : lost_workers) {
    if (!cut_off(lost)) continue;
    ++counters.workers_cut_off;
    for (const uint64_t id : lost.blamed.trials) {
      Trial* trial = leases.Find(id);
      if (trial != nullptr && trial->row.lost_workers > 0) --trial->row.lost_workers;
    }
    for (const std::string& digest : lost.blamed.builds) builds.Forgive(digest);
  }
  std::erase_if(lost_workers, cut_off);
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
  if (worker_was_lost && UnderWork(trial.phase)) ++trial.row.lost_workers;
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
  std::vector<Order> orders;  // of each pool
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
  std::vector<LeaseToken> granted;
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
  CommitThen({}, [this, granted] {
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
  FileJob(jobs.at(trial.job));
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
      .substr(0, 16);
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

// The whole of what the worker should hold and may forget. Complete every time: a lost or late answer does no harm.
v1::SyncReply Dispatcher::Impl::DesiredState(Worker& worker, const v1::SyncRequest& request) {
  v1::SyncReply reply;
  std::vector<LeaseToken> said;
  for (const v1::LeaseState& held : request.held()) said.push_back(TokenOf(held.id()));
  for (const v1::TrialResult& result : request.results()) said.push_back(TokenOf(result.id()));
  std::ranges::sort(said);
  for (const uint64_t id : leases.HeldBy(worker.id)) {
    const Trial& trial = *leases.Find(id);
    if (!trial.granted) continue;
    *reply.add_keep() = IdOf(trial.row);
    if (!std::ranges::binary_search(said, TokenOf(trial.row))) *reply.add_want() = MakeLease(trial);
  }
  for (const auto& [report, verdict] : std::exchange(worker.verdicts, {})) {
    if (verdict == v1::REPORT_REFUSAL_UNSPECIFIED) {
      *reply.add_acked() = IdOf(report);
      continue;
    }
    v1::RefusedReport& refused = *reply.add_refused();
    *refused.mutable_id() = IdOf(report);
    refused.set_why(verdict);
  }
  AddBuilds(worker, request, &reply);
  reply.set_shut_down(shutting_down);
  reply.set_drain(worker.drain_asked);
  return reply;
}

void Dispatcher::Impl::AnswerSync(Worker& worker) {
  if (!worker.waiting.has_value()) return;
  ReplyNow(worker.waiting_to, DesiredState(worker, *worker.waiting));
  worker.drain_told = worker.drain_asked;
  EndWait(worker);
}

// Whether its call, that is held, has something to be answered with.
bool Dispatcher::Impl::HasNews(const Worker& worker) const {
  if (!worker.waiting.has_value()) return false;
  if (shutting_down || worker.answer_by <= now) return true;
  if (IsQuiet(worker)) return false;
  if (!worker.verdicts.empty()) return true;
  if ((worker.drain_asked && !worker.drain_told) || worker.waiting->given_back_size() > 0) return true;
  if (HasBuildNews(worker)) return true;
  const SortedIds& held = leases.HeldBy(worker.id);
  if (worker.waiting->draining() && HeldBy(worker) == 0) return true;  // it may end
  std::vector<LeaseToken> said;
  for (const v1::LeaseState& state : worker.waiting->held()) {
    const auto found = leases.trials().find(state.id().trial());
    const bool kept = found != leases.trials().end() && held.count(found->first) != 0 &&
                      TokenOf(found->second.row) == TokenOf(state.id());
    if (!kept) return true;  // to be dropped
    said.push_back(TokenOf(state.id()));
  }
  std::ranges::sort(said);
  return std::ranges::any_of(held, [&](uint64_t id) {
    const Trial& trial = leases.trials().at(id);
    return trial.granted && !std::ranges::binary_search(said, TokenOf(trial.row));
  });
}

}  // namespace hone
