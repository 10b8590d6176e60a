// How a worker leaves the fleet: it is drained, or it falls silent and is lost, its leases go to others, and it may
// come back.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/dispatch/dispatcher_impl.h"

namespace hone {
namespace {

constexpr size_t kMostLost = 32;

}  // namespace

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

bool Dispatcher::Impl::IsLost(const Worker& worker) const {
  return worker.silent_since > 0 && now - worker.silent_since >= Micros{options.lost_after_ms} * 1000;
}

void Dispatcher::Impl::ExpireWorker(uint64_t id) {
  const Worker worker = workers.at(id);
  v1::WorkerInfo info = InfoOf(worker);
  HadUnderWork blamed = LoseWorker(id);
  if (worker.draining) return;  // it has ended as it should
  ++counters.workers_lost;
  info.set_state("lost");
  info.set_leases(0);
  lost_names.Add(now, worker.tenant, info.name(), worker.reporter->principal, worker.hello.name_key());
  lost_workers.push_back({worker.tenant, std::move(info), worker.last_seen, worker.hello.session(), std::move(blamed)});
  if (lost_workers.size() > kMostLost) lost_workers.pop_front();
}

Dispatcher::Impl::HadUnderWork Dispatcher::Impl::LoseWorker(uint64_t id) {
  Worker& worker = workers.at(id);
  if (worker.waiting.has_value()) {
    v1::SyncReply reply;
    reply.set_unknown_session(true);
    ReplyNow(worker.waiting->to, reply);
  }
  HadUnderWork under_work;
  const SortedIds held = leases.HeldBy(id);
  for (const uint64_t trial : held) {
    if (leases.Find(trial)->under_work()) under_work.trials.push_back(trial);
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

}  // namespace hone
