// Workers: what becomes of what they try, and how they fail, lie and forge.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/support/sha256.h"
#include "tests/tuner/dispatch/simulation/sim_parts.h"

namespace hone {

bool SimWorld::IsPoison(const std::string& trace) const { return UniformOf("poison" + trace) < faults_.poison; }
double SimWorld::TrueTime(const std::string& trace) const { return 20 + 400 * UniformOf("time" + trace); }

void SimWorld::WorkOn(int index) {
  Worker& worker = *workers_[index];
  if (!worker.up || worker.working.has_value()) return;
  const std::vector<v1::Lease> next = worker.queue->Take(1);
  if (next.empty()) return;
  const v1::Lease& lease = next[0];
  worker.working = lease.id();
  if (worker.measures_only) return AskToBuild(index, lease, now_ + 240 * kSecond);
  Measure(index, lease);
}

void SimWorld::Crash(int index) {
  ++worker_crashes_;
  EndWorker(index);
}

void SimWorld::EndWorker(int index) {
  Worker& worker = *workers_[index];
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
    if (workers_[index]->life == life) Drive(index);
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
    Finish(index, lease, Judge(lease.trace(), lease.duel() ? lease.champion_trace() : ""));
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
  if (w.lies && result.outcome().kind() == v1::OUTCOME_OK) Lie(*result.mutable_outcome());
  w.queue->Finish(lease.id(), result.outcome());
  Forge(index, result);
  Drive(index);
  WorkOn(index);
}

// Plausibly: above all that the device could not do, and the samples agree.
void SimWorld::Lie(v1::Outcome& outcome) {
  const double part = 0.5 + 0.4 * random_.Uniform();
  outcome.set_duel_ratio(outcome.duel_ratio() * part);
  v1::Timing& timing = *outcome.mutable_timing();
  timing.set_median_us(timing.median_us() * part);
  timing.set_low_us(timing.low_us() * part);
  timing.set_high_us(timing.high_us() * part);
  for (float& sample : *timing.mutable_samples_us()) sample *= static_cast<float>(part);
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
  *forged.mutable_outcome() = Judge("what is fastest", "");
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

// As RemoteBuilders does.
void SimWorld::AskToBuild(int index, const v1::Lease& lease, Micros give_up) {
  Worker& worker = *workers_[index];
  const uint64_t call = ++worker.calls;
  worker.build_call = 0;
  v1::BuildCall request;
  request.set_session(worker.session);
  request.mutable_request()->set_trace(lease.trace());
  request.set_limit_ms(30'000);
  Call(
      index, give_up - now_,
      [this, index, call, request](ReplyTo to) {
        if (workers_[index]->calls == call) workers_[index]->build_call = to;
        return AskBuild{to, request, WorkersTenant()};
      },
      [this, index, call, lease, give_up](const Message& message) {
        Worker& w = *workers_[index];
        if (w.calls != call) return;  // it was answered before
        ++w.calls;
        if (const v1::BuildOutcome* outcome = std::get_if<v1::BuildOutcome>(&message)) {
          return TakeBuilt(index, lease, *outcome);
        }
        Send([this, to = w.build_call] { ToDaemon(CallGone{to}); });
        const Micros again = now_ + kSecond / 2;
        if (again < give_up) {
          return At(again, [this, index, life = w.life, lease, give_up] {
            if (workers_[index]->life == life) AskToBuild(index, lease, give_up);
          });
        }
        v1::Outcome infra;
        infra.set_kind(v1::OUTCOME_INFRA);
        Finish(index, lease, infra);
      });
}

void SimWorld::TakeBuilt(int index, const v1::Lease& lease, const v1::BuildOutcome& outcome) {
  if (outcome.reply().error().empty()) {
    HONE_CHECK(outcome.reply().object() == absl::StrCat("object of ", lease.trace())) << "another object was built";
    ++built_;
    return Measure(index, lease);
  }
  v1::Outcome failure;
  failure.set_kind(outcome.infrastructure() ? v1::OUTCOME_INFRA : v1::OUTCOME_BUILD_ERROR);
  Finish(index, lease, failure);
}

void SimWorld::BuildNext(int index) {
  Worker& worker = *workers_[index];
  // Where nothing is under work, what is held waits to be taken.
  if (!worker.up || worker.building.has_value() || !worker.build_queue->HasLeases()) return;
  worker.building = worker.build_queue->Take();
  const std::string trace = worker.building->request().trace();
  const bool poison = IsBuildPoison(trace);
  const bool crash = poison || random_.Chance(faults_.worker_crash);
  if (!crash && random_.Chance(faults_.worker_vanish)) Vanish(index);
  At(now_ + 20'000 + random_.Below(200'000), [this, index, life = worker.life, trace, poison, crash] {
    Worker& w = *workers_[index];
    if (w.life != life) return;
    if (poison) ++build_deaths_[trace];
    if (crash) return Crash(index);
    const v1::BuildLease lease = *std::exchange(w.building, std::nullopt);
    v1::BuildOutcome outcome;
    outcome.mutable_reply()->set_object(absl::StrCat("object of ", trace));
    w.build_queue->Finish(lease.id(), outcome, 0.1);
    const Worker& victim = *workers_[random_.Below(workers_.size())];
    if (random_.Chance(faults_.lie) && victim.index != index && victim.building.has_value()) {
      // Of another's lease, whose numbers can be guessed and whose secret cannot.
      v1::BuildResult& forged = w.forged_builds.emplace_back();
      *forged.mutable_id() = victim.building->id();
      forged.mutable_id()->set_secret(random_.Chance(0.5) ? "" : lease.id().secret());
      forged.mutable_outcome()->mutable_reply()->set_object("what nobody asked for");
    }
    Drive(index);
    BuildNext(index);
  });
}

v1::Outcome SimWorld::Judge(const std::string& trace, const std::string& champion) {
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
  if (!champion.empty()) outcome.set_duel_ratio(median * noise / TrueTime(champion));
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
