// Builds for workers that only measure: asked for in a call, lent to workers that only build, or that may not measure
// now, answered to the call.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/support/sha256.h"
#include "tuner/dispatch/dispatcher_impl.h"

namespace hone {
namespace {

Micros Milliseconds(uint32_t ms) { return Micros{ms} * 1000; }

v1::BuildOutcome Failed(bool infrastructure, const std::string& error) {
  v1::BuildOutcome outcome;
  outcome.mutable_reply()->set_error(error);
  outcome.set_infrastructure(infrastructure);
  return outcome;
}

}  // namespace

void Dispatcher::Impl::On(const AskBuild& event) {
  const auto refuse = [&](absl::StatusCode code, std::string message) {
    ReplyNow(event.to, Refusal{static_cast<int>(code), std::move(message)});
  };
  const Worker* worker = FindSession(event.tenant, event.request.session());
  if (worker == nullptr) return refuse(absl::StatusCode::kNotFound, "build: no worker has that session; say hello");
  if (worker->role() != WorkerRole::kMeasure) {
    return refuse(absl::StatusCode::kFailedPrecondition, "build: the worker did not say that it only measures");
  }
  const BuildTable::OfTenant& tenant = builds.Tenant(event.tenant);
  Build build{.tenant = event.tenant,
              .asker = worker->id,
              .to = event.to,
              .request = event.request.request(),
              .bytes = static_cast<int64_t>(event.request.ByteSizeLong()),
              .limit_ms = std::min(event.request.limit_ms(), options.build_wait_ms),
              .answer_by = now + Milliseconds(options.build_wait_ms)};
  if (static_cast<int>(builds.AskedBy(worker->id).size()) >= options.max_builds_asked ||
      tenant.bytes + build.bytes > options.max_build_bytes) {
    return refuse(absl::StatusCode::kResourceExhausted,
                  absl::StrCat("build: the worker waits for ", builds.AskedBy(worker->id).size(), " builds (at most ",
                               options.max_builds_asked, "), its tenant for ", tenant.bytes,
                               " bytes of requests (at most ", options.max_build_bytes, ")"));
  }
  builds.Add(std::move(build));
}

void Dispatcher::Impl::AnswerBuild(uint64_t id, Message answer) {
  ReplyNow(builds.Find(id)->to, std::move(answer));
  builds.Remove(id);
}

const Build* Dispatcher::Impl::FindBuild(const v1::BuildId& id) const {
  const Build* build = builds.Find(id.build());
  const bool is_latest = build != nullptr && id.attempt() > 0 && id.attempt() == build->attempt && id.epoch() == epoch;
  return is_latest ? build : nullptr;
}

// A result is good until the build is lent again, whether or not the lease has ended meanwhile.
void Dispatcher::Impl::TakeBuilt(Worker& worker, const v1::BuildResult& result) {
  const Build* build = FindBuild(result.id());
  if (build == nullptr || !Serves(worker.tenant, build->tenant)) return;
  if (result.id().secret() != build->secret) {
    ++worker.refused_reports;
    return;
  }
  ++worker.trials;
  ++counters.builds;
  NoteMissingLayersOfBuilder(worker, *build);
  AnswerBuild(build->id, result.outcome());
}

// It was built for the trials of that workload that its asker holds.
void Dispatcher::Impl::NoteMissingLayersOfBuilder(const Worker& builder, const Build& build) {
  if (builder.hello.missing_layers().empty()) return;
  const std::string workload = Sha256(build.request.workload());
  for (const uint64_t id : leases.HeldBy(build.asker)) {
    const Trial& trial = leases.trials().at(id);
    if (trial.row.key.workload_hash == workload) NoteMissingLayers(builder, jobs.at(trial.job));
  }
}

void Dispatcher::Impl::TakeBackBuild(Build& build) {
  ++counters.builds_taken_back;
  builds.CountLost(build.digest);
  builds.TakeBack(build);
}

bool Dispatcher::Impl::IsQuarantined(const Build& build) const {
  return static_cast<int>(builds.LostWith(build.digest)) >= options.quarantine_after;
}

void Dispatcher::Impl::MeetDeadline(Build& build) {
  if (build.answer_by <= now) {
    AnswerBuild(build.id, Failed(true, absl::StrCat("no worker built it within ", options.build_wait_ms / 1000, " s")));
  } else if (build.builder != 0 && build.lent_until <= now) {
    TakeBackBuild(build);
  }
}

Micros Dispatcher::Impl::DeadlineOf(const Build& build) const {
  return build.builder == 0 ? build.answer_by : std::min(build.answer_by, build.lent_until);
}

bool Dispatcher::Impl::Builds(const Worker& worker) const {
  if (worker.role() == WorkerRole::kBuild) return true;
  return worker.role() == WorkerRole::kBoth && (worker.build_credits > 0 || !builds.LentTo(worker.id).empty());
}

bool Dispatcher::Impl::MayBuild(const Worker& worker) const {
  return !worker.draining && worker.waiting.has_value() && !IsQuiet(worker) && worker.build_credits > 0 &&
         HeldBy(worker) < options.max_credits;
}

// To builders in turn, oldest first.
void Dispatcher::Impl::LendBuilds(const Touched& batch) {
  if (shutting_down) return;
  std::set<uint64_t> tenants(batch.builds_of.begin(), batch.builds_of.end());
  for (const uint64_t id : batch.workers) {
    const auto found = workers.find(id);
    if (found != workers.end() && MayBuild(found->second)) tenants.insert(found->second.tenant);
  }
  for (const uint64_t number : tenants) {
    BuildTable::OfTenant& tenant = builds.Tenant(number);
    while (!fleet.BuildersOf(number).hungry.empty() && !tenant.waiting.empty()) {
      const std::set<uint64_t>& hungry = fleet.BuildersOf(number).hungry;
      ++counters.looked_at;
      Build& build = *builds.Find(*tenant.waiting.begin());
      if (IsQuarantined(build)) {
        AnswerBuild(build.id, Failed(false, absl::StrCat("quarantined: ", builds.LostWith(build.digest),
                                                         " builders were lost while they built it")));
        continue;
      }
      auto next = hungry.upper_bound(tenant.last_builder);
      if (next == hungry.end()) next = hungry.begin();
      Worker& worker = workers.at(*next);
      tenant.last_builder = worker.id;
      const Micros until = now + Milliseconds(build.limit_ms) + Milliseconds(options.build_slack_ms);
      builds.Lend(build, worker.id, SecretOf("build", build.id, build.attempt + 1, worker), until);
      --worker.build_credits;
      FileWorker(worker);
    }
  }
}

v1::BuildId Dispatcher::Impl::BuildIdOf(const Build& build) const {
  v1::BuildId id;
  id.set_build(build.id);
  id.set_attempt(build.attempt);
  id.set_epoch(epoch);
  id.set_secret(build.secret);
  return id;
}

bool Dispatcher::Impl::HasBuild(const Worker& worker, const v1::BuildId& id) const {
  const Build* build = FindBuild(id);
  return build != nullptr && build->builder == worker.id;
}

void Dispatcher::Impl::AddBuilds(const Worker& worker, const BuildIds& building, v1::SyncReply* reply) {
  const std::set<uint64_t> said = BuildsSaid(worker, building);
  for (const uint64_t number : builds.LentTo(worker.id)) {
    const Build& build = *builds.Find(number);
    *reply->add_keep_builds() = BuildIdOf(build);
    if (said.count(number) != 0) continue;
    v1::BuildLease& lease = *reply->add_build();
    *lease.mutable_id() = BuildIdOf(build);
    *lease.mutable_request() = build.request;
    lease.set_limit_ms(build.limit_ms);
  }
}

std::set<uint64_t> Dispatcher::Impl::BuildsSaid(const Worker& worker, const BuildIds& building) const {
  std::set<uint64_t> said;
  for (const v1::BuildId& id : building) {
    if (HasBuild(worker, id)) said.insert(id.build());
  }
  return said;
}

bool Dispatcher::Impl::HasBuildNews(const Worker& worker) const {
  if (worker.waiting->built) return true;  // taken, or of no use: to be forgotten
  const std::set<uint64_t> said = BuildsSaid(worker, worker.waiting->building);
  return static_cast<int>(said.size()) < worker.waiting->building.size() || said != builds.LentTo(worker.id);
}

}  // namespace hone
