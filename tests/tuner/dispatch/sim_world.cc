#include "tests/tuner/dispatch/sim_world.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "compiler/support/sha256.h"

namespace hone {
namespace {

constexpr Micros kSecond = 1'000'000;
constexpr int kWorkloads = 8;

DispatchOptions Rules() {
  DispatchOptions options;
  options.batch = 8;
  options.searches = 2;
  options.stall_trials = 40;
  return options;
}

uint64_t Hash(const std::string& text) {
  uint64_t hash = 1469598103934665603u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash ^ hash >> 29;
}
double UniformOf(const std::string& text) { return static_cast<double>(Hash(text) % 1'000'003) / 1'000'003.0; }

v1::Workload MakeWorkload(int number) {
  v1::Workload workload;
  workload.set_text(absl::StrCat("workload ", number));
  workload.set_hash(Sha256(workload.text()));
  workload.set_name(absl::StrCat(number % 2 == 0 ? "conv2d_" : "dense_", number));
  workload.set_flop(1e6);
  workload.set_bytes(1e4);
  return workload;
}

}  // namespace

struct SimWorld::Worker {
  int index = 0;
  bool up = false;
  Micros silent_until = 0;  // vanished: it neither hears nor speaks
  uint64_t life = 0;        // rises with each start: what an earlier one had under way is void
  std::string session;
  bool known = false;  // its Hello was answered
  uint64_t seq = 0;
  bool waiting = false;  // a Sync is out
  std::map<LeaseToken, v1::Lease> held;
  std::map<LeaseToken, v1::TrialResult> results;
  std::optional<LeaseToken> working;
  // Of one that only measures: whether it waits for a build, in the latest of its calls, which is 0 until it arrived.
  bool asks = false;
  uint64_t calls = 0;
  ReplyTo build_call = 0;
  // Of one that only builds, by their number, attempt and epoch:
  using BuildToken = std::tuple<uint64_t, uint32_t, uint64_t>;
  static BuildToken TokenOf(const v1::BuildId& id) { return {id.build(), id.attempt(), id.epoch()}; }
  std::map<BuildToken, v1::BuildLease> builds;
  std::map<BuildToken, v1::BuildResult> built;
  bool building = false;

  bool measures_only = false, builds_only = false;
};

struct SimWorld::Client {
  v1::SubmitRequest request;
  uint64_t job = 0;  // once told
  bool stop = false;
  bool stop_answered = false;
};

SimWorld::SimWorld(uint64_t seed, const SimOptions& faults) : faults_(faults), random_(seed) {
  StartDaemon();
  for (int i = 0; i < faults.workers + faults.builders; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->index = i;
    workers_.back()->measures_only = i < faults.measure_only;
    workers_.back()->builds_only = i >= faults.workers;
    At(random_.Below(5 * kSecond), [this, i] { StartWorker(i); });
  }
}
SimWorld::~SimWorld() = default;

void SimWorld::At(Micros when, std::function<void()> what) {
  queue_.emplace(std::pair(std::max(when, now_), next_event_++), std::move(what));
}

void SimWorld::Send(std::function<void()> arrive) {
  const int copies = random_.Chance(faults_.drop) ? 0 : random_.Chance(faults_.repeat) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    const Micros delay = random_.Chance(faults_.slow) ? random_.Below(20 * kSecond) : 200 + random_.Below(20'000);
    At(now_ + delay, arrive);
  }
}

// ---- the daemon ----

void SimWorld::StartDaemon() {
  ++incarnation_;
  ++starts_;
  epoch_ = *store_.BeginEpoch();
  dispatcher_ = std::make_unique<Dispatcher>(Rules(), epoch_, *store_.LoadState());
  wake_at_ = std::numeric_limits<Micros>::max();
  CarryOut(dispatcher_->Step(now_, Start{}));
}

void SimWorld::KillDaemon() {
  dispatcher_ = nullptr;
  ++incarnation_;
  to_write_.clear();  // what the writer had not carried out is lost; what it had is durable
  writer_busy_ = false;
  replies_.clear();
  At(now_ + 1 + random_.Below(40 * kSecond), [this] { StartDaemon(); });
}

void SimWorld::ToDaemon(const Event& event) {
  if (dispatcher_ == nullptr) return;  // nobody listens
  CarryOut(dispatcher_->Step(now_, event));
  if (random_.Chance(faults_.daemon_crash)) KillDaemon();
}

void SimWorld::CarryOut(std::vector<Effect> effects) {
  const uint64_t incarnation = incarnation_;
  for (Effect& effect : effects) {
    fingerprint_ = (fingerprint_ ^ (effect.index() + 1)) * 1099511628211u;
    if (Commit* commit = std::get_if<Commit>(&effect)) {
      to_write_.push_back(std::move(*commit));
    } else if (LoadHistory* load = std::get_if<LoadHistory>(&effect)) {
      to_write_.push_back(std::move(*load));
    } else if (AskSearch* ask = std::get_if<AskSearch>(&effect)) {
      v1::SearchRequest request = ask->request;
      ask->log->AddTo(&request, 0, ask->observed);
      SearchTurn(request);
    } else if (Reply* reply = std::get_if<Reply>(&effect)) {
      Answer(reply->to, reply->message);
    } else if (const Wake* wake = std::get_if<Wake>(&effect)) {
      wake_at_ = wake->at;
      At(wake->at, [this, at = wake->at, incarnation] {
        if (incarnation == incarnation_ && wake_at_ == at) ToDaemon(Tick{});
      });
    }
  }
  if (!to_write_.empty() && !writer_busy_) {
    writer_busy_ = true;
    At(now_ + 300 + random_.Below(5'000), [this, incarnation] {
      if (incarnation == incarnation_) WriterTurn();
    });
  }
}

void SimWorld::WriterTurn() {
  writer_busy_ = false;
  std::vector<std::variant<Commit, LoadHistory>> work;
  work.swap(to_write_);
  const uint64_t incarnation = incarnation_;
  for (auto& item : work) {
    if (Commit* commit = std::get_if<Commit>(&item)) {
      for (const Write& write : commit->writes) {
        // Only the latest attempt of a trial may change it, and that attempt was written down before anybody worked on
        // it.
        const AddMeasurement* result = std::get_if<AddMeasurement>(&write);
        if (result == nullptr) continue;
        const auto trial = store_.trials().find(result->row.trial);
        HONE_CHECK(trial != store_.trials().end() && trial->second.attempt == result->row.attempt)
            << "trial " << result->row.trial << ": a result of attempt " << result->row.attempt
            << " is not the latest's";
      }
      HONE_CHECK(store_.Commit(epoch_, commit->writes).ok());
      for (const Write& write : commit->writes) {
        if (const SetBest* best = std::get_if<SetBest>(&write)) {
          const auto [seen, first] = best_seen_.emplace(best->key, best->median_us);
          HONE_CHECK(first || best->median_us <= seen->second) << "the best got worse";
          seen->second = best->median_us;
        }
      }
      // It may die after it is durable and before anybody hears of it.
      if (random_.Chance(faults_.daemon_crash)) return KillDaemon();
      ToDaemon(Committed{commit->id});
    } else {
      const TuningKey key = std::get<LoadHistory>(item).key;
      ToDaemon(HistoryLoaded{key, *store_.LoadHistory(key)});
    }
    if (incarnation != incarnation_) return;
  }
}

ReplyTo SimWorld::Expect(std::function<void(const Message&)> then) {
  const ReplyTo to = next_reply_++;
  replies_[to] = std::move(then);
  return to;
}

void SimWorld::Answer(ReplyTo to, const Message& message) {
  const auto found = replies_.find(to);
  HONE_CHECK(found != replies_.end()) << "a call was answered twice";
  const std::function<void(const Message&)> then = std::move(found->second);
  replies_.erase(found);
  if (const v1::SyncReply* reply = std::get_if<v1::SyncReply>(&message)) {
    for (const v1::Lease& lease : reply->want()) {
      const auto trial = store_.trials().find(lease.id().trial());
      HONE_CHECK(trial != store_.trials().end() && TokenOf(trial->second) == TokenOf(lease.id()))
          << "trial " << lease.id().trial() << " was lent before it was durable";
    }
  }
  Send([then, message] { then(message); });
}

void SimWorld::SearchTurn(const v1::SearchRequest& request) {
  const uint64_t incarnation = incarnation_;
  HONE_CHECK(request.batch() > 0 && !request.workload().text().empty() && !request.device().device_class().empty());
  const auto deliver = [this, incarnation](Micros delay, Event event) {
    At(now_ + delay, [this, incarnation, event] {
      if (incarnation == incarnation_) ToDaemon(event);
    });
  };
  if (random_.Chance(faults_.search_crash)) {
    return deliver(random_.Below(30 * kSecond), SearchFailed{request.request_id(), "it was ended by signal 11"});
  }
  std::set<std::string> seen;
  for (const v1::Observation& observation : request.observations()) seen.insert(observation.trace());
  v1::SearchReply reply;
  reply.set_request_id(request.request_id());
  Random own(request.seed() ^ request.observations_size(), Hash(request.workload().text()));
  for (int i = 0; i < request.batch(); ++i) {
    // Sometimes it offers what was tried, or what is queued: the dispatcher must not care.
    const std::string trace = absl::StrCat(request.workload().text(), " / ", own.Below(faults_.space));
    if (seen.count(trace) != 0 && !own.Chance(0.1)) continue;
    reply.add_candidates()->set_trace(trace);
  }
  reply.set_exhausted(static_cast<int>(seen.size()) >= faults_.space - 2);
  deliver(kSecond / 10 + random_.Below(2 * kSecond), SearchDone{reply});
  if (random_.Chance(faults_.repeat)) deliver(random_.Below(60 * kSecond), SearchDone{reply});
}

// ---- workers ----

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
  worker.held.clear();
  worker.working.reset();
  worker.asks = false;
  worker.builds.clear();
  worker.built.clear();
  worker.building = false;
  if (random_.Chance(0.5)) worker.results.clear();  // else: its spool survived, and speaks for an older session
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
      ToDaemon(hone::Hello{to, request});
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
  if (random_.Chance(faults_.give_back)) {  // its hours are over, or its machine is not quiet
    for (auto held = worker.held.begin(); held != worker.held.end();) {
      const bool goes = worker.working != held->first;
      if (goes) *request.add_given_back() = held->second.id();
      held = goes ? worker.held.erase(held) : std::next(held);
    }
  }
  for (const auto& [token, lease] : worker.held) {
    v1::LeaseState& state = *request.add_held();
    *state.mutable_id() = lease.id();
    const v1::Phase at_work = worker.measures_only && worker.asks ? v1::PHASE_BUILDING : v1::PHASE_MEASURING;
    state.set_phase(worker.working == token ? at_work : v1::PHASE_QUEUED);
  }
  for (const auto& [token, lease] : worker.builds) *request.add_building() = lease.id();
  for (const auto& [token, result] : worker.built) *request.add_built() = result;
  for (const auto& [token, result] : worker.results) *request.add_results() = result;
  request.set_credits(std::max<int>(0, faults_.credits - static_cast<int>(worker.held.size() + worker.builds.size())));
  worker.waiting = true;
  const uint64_t life = worker.life, seq = worker.seq;
  Send([this, index, life, request] {
    if (dispatcher_ == nullptr) return;
    const ReplyTo to = Expect([this, index, life, seq = request.seq()](const Message& message) {
      if (workers_[index]->life != life) return;
      if (const v1::SyncReply* reply = std::get_if<v1::SyncReply>(&message)) TakeReply(index, *reply, seq);
    });
    ToDaemon(hone::Sync{to, request, "2026-01-01T00:00:00Z"});
  });
  // An answer that does not come is not waited for longer than the daemon may hold it.
  At(now_ + 15 * kSecond, [this, index, life, seq] {
    Worker& w = *workers_[index];
    if (w.life == life && w.seq == seq) SaySync(index);
  });
}

void SimWorld::TakeReply(int index, const v1::SyncReply& reply, uint64_t seq) {
  Worker& worker = *workers_[index];
  if (!worker.up || worker.silent_until > now_) return;
  if (reply.unknown_session()) {
    worker.known = false;
    SayHello(index);
    return;
  }
  if (worker.builds_only) {
    HONE_CHECK(reply.want().empty()) << "a worker that only builds was lent a trial";
    TakeBuilds(index, reply);
  }
  for (const v1::LeaseId& acked : reply.acked()) {
    const LeaseToken token = TokenOf(acked);
    // An acknowledged result is durable, or another attempt has taken its place.
    const auto row = store_.trials().find(token.trial);
    if (worker.results.count(token) != 0 && row != store_.trials().end() && TokenOf(row->second) == token &&
        worker.results.at(token).id().secret() == row->second.secret && row->second.state != TrialState::kDropped) {
      HONE_CHECK(store_.HasMeasurement(token.trial, token.attempt) || row->second.state == TrialState::kDone)
          << "trial " << token.trial << " was acknowledged before it was durable";
    }
    worker.results.erase(token);
  }
  std::set<LeaseToken> keep;
  for (const v1::LeaseId& id : reply.keep()) keep.insert(TokenOf(id));
  for (auto held = worker.held.begin(); held != worker.held.end();) {
    held = keep.count(held->first) != 0 || worker.working == held->first ? std::next(held) : worker.held.erase(held);
  }
  for (const v1::Lease& lease : reply.want()) {
    const LeaseToken token = TokenOf(lease.id());
    if (worker.results.count(token) == 0) worker.held.emplace(token, lease);
  }
  WorkOn(index);
  if (seq == worker.seq) SaySync(index);  // else a newer one is out already
}

void SimWorld::WorkOn(int index) {
  Worker& worker = *workers_[index];
  if (!worker.up || worker.working.has_value() || worker.held.empty()) return;
  worker.working = worker.held.begin()->first;
  const v1::Lease lease = worker.held.begin()->second;
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
  const LeaseToken token = *w.working;
  w.working.reset();
  if (w.held.erase(token) != 0) {
    v1::TrialResult& result = w.results[token];
    *result.mutable_id() = lease.id();
    *result.mutable_outcome() = outcome;
    const bool challenges = !lease.duel() && !lease.champion_trace().empty();
    if (challenges && result.outcome().has_timing() && random_.Chance(faults_.lucky)) {
      v1::Timing& timing = *result.mutable_outcome()->mutable_timing();
      timing.set_median_us(0.965 * timing.median_us());
      timing.set_low_us(std::min(timing.low_us(), timing.median_us()));
    }
    if (random_.Chance(faults_.lie)) {  // a result of a lease it never had
      v1::TrialResult forged = result;
      forged.mutable_id()->set_attempt(result.id().attempt() + 1 + random_.Below(3));
      w.results[TokenOf(forged.id())] = forged;
    }
    const Worker& victim = *workers_[random_.Below(workers_.size())];
    if (random_.Chance(faults_.lie) && victim.index != index && !victim.held.empty()) {
      // A plausible result of another's lease, whose numbers can be guessed and whose secret cannot.
      v1::TrialResult forged = result;
      *forged.mutable_id() = victim.held.begin()->second.id();
      forged.mutable_id()->set_secret(random_.Chance(0.5) ? "" : lease.id().secret());
      *forged.mutable_outcome() = Judge("what is fastest", 0);
      w.results[TokenOf(forged.id())] = forged;
    }
  }
  SaySync(index);
  WorkOn(index);
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
    ToDaemon(AskBuild{to, request});
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

// ---- clients ----

void SimWorld::Submit(int tasks, int64_t max_trials, double max_seconds) {
  auto client = std::make_unique<Client>();
  v1::SubmitRequest& request = client->request;
  request.set_request_id(absl::StrCat("request ", clients_.size()));
  request.set_model_name("model");
  request.set_target(clients_.size() % static_cast<size_t>(faults_.kinds) == 1 ? "cpu:sim/c4" : "cpu:native");
  request.set_threads(2);
  request.set_numeric(v1::NUMERIC_DEFAULT);
  request.set_max_trials(max_trials);
  request.set_max_seconds(max_seconds);
  request.set_seed(7);
  const uint64_t first = random_.Below(kWorkloads);
  for (int i = 0; i < tasks; ++i) {
    v1::TaskSpec& task = *request.add_tasks();
    *task.mutable_workload() = MakeWorkload(static_cast<int>((first + i) % kWorkloads));
    task.set_weight(1 + i);
    task.set_default_trace(absl::StrCat(task.workload().text(), " / default"));
    request.add_anchors((first + i) % kWorkloads % 3 == 0 ? "" : absl::StrCat("anchor ", (first + i) % 2));
  }
  clients_.push_back(std::move(client));
  Insist(static_cast<int>(clients_.size()) - 1);
}

void SimWorld::Insist(int index) {
  Client& client = *clients_[index];
  if (client.job == 0) {
    Send([this, index, request = client.request] {
      if (dispatcher_ == nullptr) return;
      const ReplyTo to = Expect([this, index](const Message& message) {
        const v1::SubmitReply* reply = std::get_if<v1::SubmitReply>(&message);
        if (reply == nullptr) return;
        Client& c = *clients_[index];
        HONE_CHECK(c.job == 0 || c.job == reply->job_id()) << "one request made two jobs";
        const auto row = store_.jobs().find(reply->job_id());
        HONE_CHECK(row != store_.jobs().end() && row->second.request.request_id() == c.request.request_id())
            << "job " << reply->job_id() << " was promised before it was durable";
        c.job = reply->job_id();
      });
      // As the service does: what the store knows is not submitted again.
      const auto known = *store_.FindJob(kLocalTenant, request.request_id());
      if (known.has_value()) {
        v1::SubmitReply reply;
        reply.set_job_id(*known);
        Answer(to, reply);
      } else {
        ToDaemon(hone::Submit{to, request, "2026-01-01T00:00:00Z"});
      }
    });
  } else if (client.stop && !client.stop_answered) {
    Send([this, index, job = client.job] {
      if (dispatcher_ == nullptr) return;
      const ReplyTo to = Expect([this, index](const Message&) { clients_[index]->stop_answered = true; });
      ToDaemon(StopJob{to, job});
    });
  }
  if (client.job == 0 || (client.stop && !client.stop_answered)) {
    At(now_ + 5 * kSecond, [this, index] { Insist(index); });
  }
}

void SimWorld::StopSomeJobAt(Micros at) {
  At(at, [this] {
    if (clients_.empty()) return;
    const int index = static_cast<int>(random_.Below(clients_.size()));
    if (clients_[index]->job == 0) return;
    clients_[index]->stop = true;
    Insist(index);
  });
}

// ---- running and checking ----

bool SimWorld::RunFor(Micros time, const std::function<bool()>& until) {
  const Micros end = now_ + time;
  while (!queue_.empty() && queue_.begin()->first.first <= end) {
    const auto first = queue_.begin();
    now_ = first->first.first;
    fingerprint_ = (fingerprint_ ^ static_cast<uint64_t>(now_)) * 1099511628211u;
    const std::function<void()> what = std::move(first->second);
    queue_.erase(first);
    what();
    ++events_;
    CheckInvariants();
    if (until && until()) return true;
  }
  now_ = end;
  return false;
}

void SimWorld::CheckInvariants() {
  if (dispatcher_ != nullptr) dispatcher_->CheckInvariants();
}

SimOptions WithoutFaults(SimOptions options) {
  options.drop = options.repeat = options.slow = 0;
  options.worker_crash = options.worker_vanish = options.give_back = options.lie = options.lucky = options.infra = 0;
  options.search_crash = options.daemon_crash = 0;
  return options;
}

void SimWorld::StopFaults() { faults_ = WithoutFaults(faults_); }

bool SimWorld::AllJobsEnded() const {
  for (const auto& client : clients_) {
    if (client->job == 0) return false;
    const auto row = store_.jobs().find(client->job);
    if (row == store_.jobs().end()) return false;
    if (IsOpen(row->second.state)) return false;
  }
  return dispatcher_ != nullptr && dispatcher_->Idle();
}

void SimWorld::CheckEnd() const {
  // Every candidate that was lent has ended, once, and is on the account of its task.
  std::map<uint64_t, std::pair<int64_t, int64_t>> by_task;  // verified, failed
  std::set<std::pair<TuningKey, std::string>> tried;
  for (const auto& [id, trial] : store_.trials()) {
    HONE_CHECK(trial.state != TrialState::kLeased) << "trial " << id << " never ended";
    HONE_CHECK(trial.attempt >= 1 && trial.attempt <= 5) << "trial " << id;
    if (trial.duel || trial.state != TrialState::kDone) continue;
    HONE_CHECK(tried.emplace(trial.key, trial.trace).second) << "trial " << id << " repeats another";
    (trial.kind == v1::OUTCOME_OK ? by_task[trial.task].first : by_task[trial.task].second) += 1;
  }
  for (const auto& [id, task] : store_.tasks()) {
    int64_t failed = 0;
    for (const auto& [kind, count] : task.failed) failed += count;
    HONE_CHECK(task.trials == by_task[id].first && failed == by_task[id].second)
        << "task " << id << " says " << task.trials << " and " << failed << ", its trials say " << by_task[id].first
        << " and " << by_task[id].second;
  }
  for (const auto& [id, row] : store_.records()) {
    const double us = row.record.median_us(), truth = TrueTime(row.record.trace());
    HONE_CHECK(us > 0.95 * truth && us < 1.05 * truth) << "record " << id << " is a lie: " << us << " for " << truth;
    HONE_CHECK(!IsPoison(row.record.trace()));
  }
  for (const auto& [key, best] : store_.best()) { HONE_CHECK(store_.records().at(best.first).key == key); }
  HONE_CHECK(store_.jobs().size() == clients_.size()) << store_.jobs().size() << " jobs of " << clients_.size();
  for (const auto& client : clients_) {
    const JobRow& row = store_.jobs().at(client->job);
    int64_t trials = 0;
    for (const auto& [id, task] : store_.tasks()) trials += task.job == client->job ? task.trials : 0;
    HONE_CHECK(row.request.max_trials() == 0 || trials <= row.request.max_trials()) << "job " << client->job;
    HONE_CHECK((row.state == v1::JOB_STOPPED) == row.stop_requested) << "job " << client->job;
  }
  for (const auto& [trace, deaths] : build_deaths_) {
    // Two losses that are noticed while somebody waits for the build are the end of it; others may have it meanwhile,
    // losses that nobody waits through are not counted, and a daemon that starts has to learn it again.
    HONE_CHECK(deaths <= 10 * starts_) << trace << " killed " << deaths << " builders";
  }
  for (const auto& [trial, deaths] : poison_deaths_) {
    HONE_CHECK(deaths <= DispatchOptions().max_attempts) << "trial " << trial << " killed " << deaths << " workers";
  }
}

std::string SimWorld::Describe() const {
  std::string text = absl::StrCat("at ", now_ / kSecond, " s, ", events_, " events, ", starts_, " daemon starts\n");
  if (dispatcher_ != nullptr) absl::StrAppend(&text, dispatcher_->DebugString());
  for (size_t i = 0; i < clients_.size(); ++i) absl::StrAppend(&text, "client ", i, " job ", clients_[i]->job, "\n");
  for (const auto& worker : workers_) {
    absl::StrAppend(&text, "worker ", worker->index, " up ", worker->up, " known ", worker->known, " held ",
                    worker->held.size(), " results ", worker->results.size(), " working ", worker->working.has_value(),
                    "\n");
  }
  return text;
}

}  // namespace hone
