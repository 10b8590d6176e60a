// Time, the network, the daemon with its searches.
#include "tests/tuner/dispatch/simulation/sim_world.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "tests/tuner/dispatch/simulation/sim_parts.h"

namespace hone {
namespace {

DispatchOptions RulesOf(const SimOptions& world) {
  DispatchOptions options;
  options.tenant_weights[TenantOf("guest1").id] = world.weight;
  options.batch = 8;
  options.searches = 2;
  options.stall_trials = 40;
  return options;
}

}  // namespace

SimWorld::SimWorld(uint64_t seed, const SimOptions& faults, int64_t check_every)
    : faults_(faults), check_every_(check_every), random_(seed) {
  StartDaemon();
  for (int i = 0; i < faults.workers + faults.builders; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->index = i;
    workers_.back()->measures_only = i < faults.measure_only;
    workers_.back()->builds_only = i >= faults.workers;
    workers_.back()->lies = i >= faults.workers - faults.liars && i < faults.workers;
    At(random_.Below(5 * kSecond), [this, i] { StartWorker(i); });
  }
}
SimWorld::~SimWorld() = default;

void SimWorld::At(Micros when, std::function<void()> what) {
  queue_.emplace(std::pair(std::max(when, now_), next_event_++), std::move(what));
}

void SimWorld::Send(std::function<void()> arrive, std::function<void()> lost) {
  const int copies = random_.Chance(faults_.drop) ? 0 : random_.Chance(faults_.repeat) ? 2 : 1;
  if (copies == 0 && lost != nullptr && random_.Chance(0.5)) At(now_ + random_.Below(kSecond), lost);
  for (int i = 0; i < copies; ++i) {
    const Micros delay = random_.Chance(faults_.slow) ? random_.Below(20 * kSecond) : 200 + random_.Below(20'000);
    At(now_ + delay, arrive);
  }
}

// ---- the daemon ----

void SimWorld::StartDaemon() {
  if (now_ < disk_full_until_) return At(disk_full_until_, [this] { StartDaemon(); });  // no epoch can be begun
  ++incarnation_;
  ++starts_;
  epoch_ = *store_.BeginEpoch();
  dispatcher_ = std::make_unique<Dispatcher>(RulesOf(faults_), epoch_, *store_.LoadState());
  wake_at_ = std::numeric_limits<Micros>::max();
  CarryOut(dispatcher_->Step(now_, Start{}));
}

void SimWorld::KillDaemon() {
  dispatcher_ = nullptr;
  ++incarnation_;
  to_write_.clear();  // what the writer had not carried out is lost; what it had is durable
  writing_.clear();
  writer_busy_ = false;
  // Whose connection breaks hears so; of some it is lost, and they wait.
  for (const auto& [to, then] : std::exchange(replies_, {})) {
    Send([then] { then(Refusal{static_cast<int>(absl::StatusCode::kUnavailable), "the daemon has ended"}); });
  }
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
  if (!to_write_.empty() && !writer_busy_) WakeWriter(300 + random_.Below(5'000));
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
      lent_.insert({TokenOf(lease.id()), lease.id().secret()});
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
    if (events_ % check_every_ == 0) CheckInvariants();
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
  options.search_crash = options.daemon_crash = options.prune = 0;
  options.full_disk = options.lost_answer = options.broken_store = 0;
  return options;
}

void SimWorld::StopFaults() { faults_ = WithoutFaults(faults_); }

}  // namespace hone
