// Workers: what they say, what becomes of what they try, and how they fail, lie and forge.
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/support/sha256.h"
#include "tests/tuner/dispatch/sim_parts.h"

namespace hone {

bool SimWorld::IsPoison(const std::string& trace) const { return UniformOf("poison" + trace) < faults_.poison; }
double SimWorld::TrueTime(const std::string& trace) const { return 20 + 400 * UniformOf("time" + trace); }

void SimWorld::StartWorker(int index) {
  Worker& worker = *workers_[index];
  worker.up = true;
  worker.life += 1;
  worker.session = absl::StrCat("session ", index, ".", worker.life);
  worker.known = false;
  worker.waiting = false;
  worker.seq = 0;
  worker.working.reset();
  worker.asks = false;
  worker.builds.clear();
  worker.built.clear();
  worker.building = false;
  const bool spool_survived = random_.Chance(0.5);  // and speaks for an older session
  worker.queue = WithResultsOf(spool_survived ? SaidBy(worker) : v1::SyncRequest());
  if (!spool_survived) worker.forged.clear();
  SayHello(index);
}

void SimWorld::SayHello(int index) {
  Worker& worker = *workers_[index];
  if (!worker.up || worker.known) return;
  const uint64_t life = worker.life;
  if (worker.silent_until <= now_) {
    v1::HelloRequest request;
    request.set_worker_name(absl::StrCat("worker ", index));
    request.set_session(worker.session);
    const bool big = index % faults_.kinds == 1;
    request.set_threads(big ? 4 : 2);
    request.set_can_build(!worker.measures_only);
    request.set_can_measure(!worker.builds_only);
    request.set_name_key(absl::StrCat("key of ", index));
    request.mutable_profile()->set_device_class(big ? "sim/c4" : "sim/c2");
    request.mutable_profile()->set_target("cpu:sim");
    request.mutable_profile()->set_cores(2);
    request.mutable_profile()->set_peak_gflops_1(50);
    request.mutable_profile()->set_peak_gflops_all(100);
    Send([this, index, life, request] {
      if (dispatcher_ == nullptr) return;
      const ReplyTo to = Expect([this, index, life](const Message& message) {
        Worker& w = *workers_[index];
        if (w.life != life || w.known || !std::holds_alternative<v1::HelloReply>(message)) return;
        w.known = true;
        SaySync(index);
      });
      ToDaemon(hone::Hello{to, request, WorkersTenant()});
    });
  }
  At(now_ + 3 * kSecond, [this, index, life] {
    if (workers_[index]->life == life) SayHello(index);
  });
}

void SimWorld::SaySync(int index) {
  Worker& worker = *workers_[index];
  if (!worker.up || !worker.known || worker.silent_until > now_) return;
  v1::SyncRequest request;
  request.set_session(worker.session);
  request.set_seq(++worker.seq);
  if (random_.Chance(faults_.give_back)) worker.queue->GiveBack(/*all=*/false);  // its machine is not quiet
  worker.queue->Describe(std::max<int>(0, faults_.credits - static_cast<int>(worker.builds.size())), &request);
  for (const auto& [token, lease] : worker.builds) *request.add_building() = lease.id();
  for (const auto& [token, result] : worker.built) *request.add_built() = result;
  for (const auto& [report, result] : worker.forged) *request.add_results() = result;
  worker.waiting = true;
  const uint64_t life = worker.life, seq = worker.seq;
  Send([this, index, life, request] {
    if (dispatcher_ == nullptr) return;
    const ReplyTo to = Expect([this, index, life, request](const Message& message) {
      if (workers_[index]->life != life) return;
      if (const v1::SyncReply* reply = std::get_if<v1::SyncReply>(&message)) TakeReply(index, request, *reply);
    });
    ToDaemon(hone::Sync{to, request, "2026-01-01T00:00:00Z", WorkersTenant()});
  });
  // An answer that does not come is not waited for longer than the daemon may hold it.
  At(now_ + 15 * kSecond, [this, index, life, seq] {
    Worker& w = *workers_[index];
    if (w.life == life && w.seq == seq) SaySync(index);
  });
}

void SimWorld::TakeReply(int index, const v1::SyncRequest& asked, const v1::SyncReply& reply) {
  Worker& worker = *workers_[index];
  if (!worker.up || worker.silent_until > now_) return;
  if (reply.unknown_session()) {
    worker.queue->ForgetLeases();
    worker.known = false;
    SayHello(index);
    return;
  }
  if (worker.builds_only) {
    HONE_CHECK(reply.want().empty()) << "a worker that only builds was lent a trial";
    TakeBuilds(index, reply);
  }
  CheckVerdicts(reply);
  const v1::SyncRequest before = SaidBy(worker);
  worker.queue->Apply(asked, reply);
  const v1::SyncRequest after = SaidBy(worker);
  std::set<LeaseToken> told;
  for (const v1::TrialResult& result : after.results()) told.insert(TokenOf(result.id()));
  for (const v1::TrialResult& result : before.results()) {
    if (told.count(TokenOf(result.id())) == 0) CheckForgotten(result.id());
  }
  for (const v1::LeaseId& id : reply.acked()) worker.forged.erase({TokenOf(id), id.secret()});
  for (const v1::RefusedReport& refused : reply.refused()) {
    worker.forged.erase({TokenOf(refused.id()), refused.id().secret()});
  }
  WorkOn(index);
  if (asked.seq() == worker.seq) SaySync(index);  // else a newer one is out already
}

void SimWorld::CheckVerdicts(const v1::SyncReply& reply) const {
  for (const v1::LeaseId& id : reply.acked()) {
    HONE_CHECK(lent_.count({TokenOf(id), id.secret()}) != 0)
        << "trial " << id.trial() << ": a report was acknowledged whose secret was never told";
    HONE_CHECK(store_.trials().count(id.trial()) == 0 || store_.HasMeasurement(id.trial(), id.attempt()))
        << "trial " << id.trial() << " was acknowledged before it was durable";
  }
  for (const v1::RefusedReport& refused : reply.refused()) {
    const v1::LeaseId& id = refused.id();
    HONE_CHECK(refused.why() != v1::REPORT_REFUSAL_NOT_HOLDER || lent_.count({TokenOf(id), id.secret()}) == 0)
        << "trial " << id.trial() << ": who holds the lease was refused as if he did not";
  }
}

// A result is durable by then, or its lease is over.
void SimWorld::CheckForgotten(const v1::LeaseId& id) const {
  const auto row = store_.trials().find(id.trial());
  if (row == store_.trials().end() || TokenOf(row->second) != TokenOf(id)) return;
  HONE_CHECK(row->second.state != TrialState::kLeased || store_.HasMeasurement(id.trial(), id.attempt()))
      << "trial " << id.trial() << ": the result of attempt " << id.attempt() << " is lost";
}

v1::SyncRequest SimWorld::SaidBy(const Worker& worker) {
  v1::SyncRequest said;
  if (worker.queue != nullptr) worker.queue->Describe(0, &said);
  return said;
}

// As a spool gives them to a worker that is started again.
std::unique_ptr<WorkQueue> SimWorld::WithResultsOf(const v1::SyncRequest& said) {
  auto queue = std::make_unique<WorkQueue>();
  v1::SyncReply lent;
  for (const v1::TrialResult& result : said.results()) *lent.add_want()->mutable_id() = result.id();
  queue->Apply({}, lent);
  queue->Take(static_cast<size_t>(said.results_size()));
  for (const v1::TrialResult& result : said.results()) queue->Finish(result.id(), result.outcome());
  return queue;
}

void SimWorld::WorkOn(int index) {
  Worker& worker = *workers_[index];
  if (!worker.up || worker.working.has_value()) return;
  const std::vector<v1::Lease> next = worker.queue->Take(1);
  if (next.empty()) return;
  const v1::Lease& lease = next[0];
  worker.working = lease.id();
  if (!worker.measures_only) worker.queue->SetPhase(lease.id(), v1::PHASE_MEASURING);
  SaySync(index);  // the phase has changed
  if (worker.measures_only) return AskToBuild(index, lease, now_ + 300 * kSecond);
  Measure(index, lease);
}

void SimWorld::Crash(int index) {
  Worker& worker = *workers_[index];
  ++worker_crashes_;
  worker.up = false;
  worker.life += 1;
  At(now_ + kSecond + random_.Below(60 * kSecond), [this, index] {
    if (!workers_[index]->up) StartWorker(index);
  });
}

void SimWorld::Vanish(int index) {
  Worker& worker = *workers_[index];
  worker.silent_until = now_ + random_.Below(200 * kSecond);
  At(worker.silent_until, [this, index, life = worker.life] {
    if (workers_[index]->life == life) SaySync(index);
  });
}

void SimWorld::Measure(int index, const v1::Lease& lease) {
  Worker& worker = *workers_[index];
  const uint64_t life = worker.life;
  worker.queue->SetPhase(lease.id(), v1::PHASE_MEASURING);
  const bool poison = IsPoison(lease.trace());
  if (poison || random_.Chance(faults_.worker_crash)) {
    At(now_ + 50'000 + random_.Below(kSecond), [this, index, life, trial = lease.id().trial(), poison] {
      if (workers_[index]->life != life) return;
      if (poison) ++poison_deaths_[trial];
      Crash(index);
    });
    return;
  }
  if (random_.Chance(faults_.worker_vanish)) Vanish(index);
  At(now_ + 100'000 + random_.Below(300'000), [this, index, life, lease] {
    if (workers_[index]->life != life || !workers_[index]->working.has_value()) return;
    Finish(index, lease, Judge(lease.trace(), lease.duel() ? lease.champion_us() : 0));
  });
}

void SimWorld::Finish(int index, const v1::Lease& lease, const v1::Outcome& outcome) {
  Worker& w = *workers_[index];
  w.working.reset();
  v1::TrialResult result;
  *result.mutable_id() = lease.id();
  *result.mutable_outcome() = outcome;
  const bool challenges = !lease.duel() && !lease.champion_trace().empty();
  if (challenges && result.outcome().has_timing() && random_.Chance(faults_.lucky)) {
    v1::Timing& timing = *result.mutable_outcome()->mutable_timing();
    timing.set_median_us(0.965 * timing.median_us());
    timing.set_low_us(std::min(timing.low_us(), timing.median_us()));
  }
  w.queue->Finish(lease.id(), result.outcome());
  Forge(index, result);
  SaySync(index);
  WorkOn(index);
}

// Results of leases that the worker never had.
void SimWorld::Forge(int index, const v1::TrialResult& result) {
  Worker& w = *workers_[index];
  const auto say = [&](v1::TrialResult forged) { w.forged[{TokenOf(forged.id()), forged.id().secret()}] = forged; };
  if (random_.Chance(faults_.lie)) {
    v1::TrialResult forged = result;
    forged.mutable_id()->set_attempt(result.id().attempt() + 1 + random_.Below(3));
    say(forged);
  }
  const Worker& victim = *workers_[random_.Below(workers_.size())];
  const v1::SyncRequest said = SaidBy(victim);
  if (!random_.Chance(faults_.lie) || said.held_size() + said.results_size() == 0) return;
  // A plausible result of another's lease, whose numbers can be guessed and whose secret cannot.
  v1::TrialResult forged = result;
  *forged.mutable_id() = said.results_size() > 0 ? said.results(0).id() : said.held(0).id();
  forged.mutable_id()->set_secret(random_.Chance(0.5) ? "" : result.id().secret() + "x");
  *forged.mutable_outcome() = Judge("what is fastest", 0);
  if (victim.index != index) say(forged);
  // The same in the victim's own session, which hears what becomes of it.
  if (!random_.Chance(0.5)) return;
  v1::SyncRequest request;
  request.set_session(victim.session);
  *request.add_results() = forged;
  Send([this, request] {
    if (dispatcher_ == nullptr) return;
    ToDaemon(hone::Sync{Expect([](const Message&) {}), request, "2026-01-01T00:00:00Z", WorkersTenant()});
  });
}

// ---- building for others ----

bool SimWorld::IsBuildPoison(const std::string& trace) const {
  return UniformOf("build poison" + trace) < faults_.build_poison;
}

void SimWorld::AskToBuild(int index, const v1::Lease& lease, Micros give_up) {
  Worker& worker = *workers_[index];
  const uint64_t life = worker.life, call = ++worker.calls;
  worker.asks = true;
  worker.build_call = 0;
  v1::BuildCall request;
  request.set_session(worker.session);
  request.mutable_request()->set_trace(lease.trace());
  request.set_limit_ms(30'000);
  Send([this, index, life, call, lease, request] {
    if (dispatcher_ == nullptr) return;
    const ReplyTo to = Expect([this, index, life, call, lease](const Message& message) {
      Worker& w = *workers_[index];
      const v1::BuildOutcome* outcome = std::get_if<v1::BuildOutcome>(&message);
      if (w.life == life && w.asks && w.calls == call && w.silent_until <= now_ && outcome != nullptr) {
        TakeBuilt(index, lease, *outcome);
      }
    });
    if (workers_[index]->calls == call) workers_[index]->build_call = to;
    ToDaemon(AskBuild{to, request, WorkersTenant()});
  });
  // A call that was lost, or refused, is made again.
  At(now_ + 40 * kSecond, [this, index, life, call, lease, give_up] {
    Worker& w = *workers_[index];
    if (w.life != life || !w.asks || w.calls != call) return;
    Send([this, to = w.build_call] { ToDaemon(CallGone{to}); });
    if (now_ < give_up) return AskToBuild(index, lease, give_up);
    v1::Outcome infra;
    infra.set_kind(v1::OUTCOME_INFRA);
    w.asks = false;
    Finish(index, lease, infra);
  });
}

void SimWorld::TakeBuilt(int index, const v1::Lease& lease, const v1::BuildOutcome& outcome) {
  workers_[index]->asks = false;
  if (outcome.reply().error().empty()) {
    HONE_CHECK(outcome.reply().object() == absl::StrCat("object of ", lease.trace())) << "another object was built";
    ++built_;
    return Measure(index, lease);
  }
  v1::Outcome failure;
  failure.set_kind(outcome.infrastructure() ? v1::OUTCOME_INFRA : v1::OUTCOME_BUILD_ERROR);
  Finish(index, lease, failure);
}

void SimWorld::TakeBuilds(int index, const v1::SyncReply& reply) {
  Worker& worker = *workers_[index];
  std::set<Worker::BuildToken> keep;
  for (const v1::BuildId& id : reply.keep_builds()) keep.insert(Worker::TokenOf(id));
  std::erase_if(worker.built, [&](const auto& entry) { return keep.count(entry.first) == 0; });
  for (const v1::BuildLease& lease : reply.build()) {
    const Worker::BuildToken token = Worker::TokenOf(lease.id());
    if (worker.built.count(token) == 0) worker.builds.emplace(token, lease);
  }
  BuildNext(index);
}

void SimWorld::BuildNext(int index) {
  Worker& worker = *workers_[index];
  if (!worker.up || worker.building || worker.builds.empty()) return;
  worker.building = true;
  const v1::BuildLease lease = worker.builds.begin()->second;
  const bool poison = IsBuildPoison(lease.request().trace());
  const bool crash = poison || random_.Chance(faults_.worker_crash);
  if (!crash && random_.Chance(faults_.worker_vanish)) Vanish(index);
  At(now_ + 20'000 + random_.Below(200'000), [this, index, life = worker.life, lease, poison, crash] {
    Worker& w = *workers_[index];
    if (w.life != life) return;
    if (poison) ++build_deaths_[lease.request().trace()];
    if (crash) return Crash(index);
    w.building = false;
    w.builds.erase(Worker::TokenOf(lease.id()));
    v1::BuildResult& result = w.built[Worker::TokenOf(lease.id())];
    *result.mutable_id() = lease.id();
    result.mutable_outcome()->mutable_reply()->set_object(absl::StrCat("object of ", lease.request().trace()));
    const Worker& victim = *workers_[random_.Below(workers_.size())];
    if (random_.Chance(faults_.lie) && victim.index != index && !victim.builds.empty()) {
      // Of another's lease, whose numbers can be guessed and whose secret cannot.
      v1::BuildResult forged;
      *forged.mutable_id() = victim.builds.begin()->second.id();
      forged.mutable_id()->set_secret(random_.Chance(0.5) ? "" : lease.id().secret());
      forged.mutable_outcome()->mutable_reply()->set_object("what nobody asked for");
      w.built[Worker::TokenOf(forged.id())] = forged;
    }
    SaySync(index);
    BuildNext(index);
  });
}

v1::Outcome SimWorld::Judge(const std::string& trace, double champion_us) {
  v1::Outcome outcome;
  outcome.set_build_seconds(0.05);
  outcome.set_measure_seconds(0.2);
  if (random_.Chance(faults_.infra)) {
    outcome.set_kind(v1::OUTCOME_INFRA);
    return outcome;
  }
  const double fate = UniformOf("fate" + trace);
  if (fate < faults_.wrong) {
    constexpr v1::OutcomeKind kFates[] = {v1::OUTCOME_BUILD_ERROR, v1::OUTCOME_CRASH, v1::OUTCOME_TIMEOUT,
                                          v1::OUTCOME_OUT_OF_MEMORY, v1::OUTCOME_WRONG_RESULT};
    outcome.set_kind(kFates[Hash(trace) % 5]);
    return outcome;
  }
  outcome.set_kind(v1::OUTCOME_OK);
  double median = TrueTime(trace);
  const double noise = 1 + 0.02 * (random_.Uniform() - 0.5);
  if (champion_us > 0) outcome.set_duel_ratio(median * noise / champion_us);
  median *= noise;
  int samples = 5;
  if (random_.Chance(faults_.lie)) {
    switch (random_.Below(6)) {
      case 0: median = std::numeric_limits<double>::quiet_NaN(); break;
      case 1: median = -median; break;
      case 2: median = 1e-3; break;
      case 3: median = std::numeric_limits<double>::infinity(); break;
      case 4: samples = 2; break;
      case 5: outcome.set_duel_ratio(std::numeric_limits<double>::quiet_NaN()); break;
    }
  }
  v1::Timing& timing = *outcome.mutable_timing();
  timing.set_median_us(median);
  timing.set_low_us(median * 0.99);
  timing.set_high_us(median * 1.01);
  for (int i = 0; i < samples; ++i) timing.add_samples_us(static_cast<float>(median));
  outcome.set_object(absl::StrCat("object of ", trace));
  outcome.set_object_digest(Sha256(outcome.object()));
  return outcome;
}

}  // namespace hone
