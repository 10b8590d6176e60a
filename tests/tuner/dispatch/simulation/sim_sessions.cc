// What workers say and hear: their sessions' own rules, over a network that loses, repeats, delays and breaks calls.
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/support/check.h"
#include "tests/tuner/dispatch/simulation/sim_parts.h"

namespace hone {
namespace {

absl::Time TimeOf(Micros now) { return absl::UnixEpoch() + absl::Microseconds(now); }
Micros MicrosOf(absl::Duration time) { return absl::ToInt64Microseconds(time) + 1; }

// What a call ends with: the answer, or why there is none.
template <class Answer>
absl::StatusOr<Answer> As(const Message& message) {
  if (const Answer* answer = std::get_if<Answer>(&message)) return *answer;
  const Refusal& refusal = std::get<Refusal>(message);
  return absl::Status(static_cast<absl::StatusCode>(refusal.code), refusal.message);
}

constexpr absl::string_view kNamed = "worker ";  // and its number
constexpr absl::Duration kHelloTimeout = absl::Seconds(20);

}  // namespace

const SimWorld::Worker& SimWorld::Named(const std::string& name) const {
  return *workers_.at(std::stoul(name.substr(kNamed.size())));
}

std::string SimWorld::PrincipalOf(const Worker& worker) const {
  if (faults_.principals == SimOptions::Principals::kNone) return "";
  if (worker.lies) return "the liar";
  return faults_.principals == SimOptions::Principals::kShared ? "the fleet" : absl::StrCat("owner of ", worker.index);
}

void SimWorld::StartWorker(int index) {
  Worker& worker = *workers_[index];
  worker.up = true;
  worker.life += 1;
  worker.silent_until = 0;
  worker.session = absl::StrCat("session ", index, ".", worker.life);
  worker.hello_out = false;
  worker.working.reset();
  worker.building.reset();
  worker.forged_builds.clear();
  const bool spool_survived = random_.Chance(0.5);  // and speaks for an older session
  worker.queue = WithResultsOf(spool_survived ? SaidBy(worker) : v1::SyncRequest());
  worker.build_queue = std::make_unique<BuildQueue>();
  if (!spool_survived) worker.forged.clear();
  SessionOptions options;
  options.name = absl::StrCat(kNamed, index);
  options.name_key = absl::StrCat("key of ", index);
  options.role = worker.measures_only ? AgentRole::kMeasure : worker.builds_only ? AgentRole::kBuild : AgentRole::kBoth;
  options.capacity = faults_.credits;
  const int cores = 2 << index % faults_.kinds;
  options.threads = cores;
  options.profile.set_device_class(absl::StrCat("sim/c", cores));
  options.profile.set_target("cpu:sim");
  options.profile.set_cores(2);
  options.profile.set_peak_gflops_1(50);
  options.profile.set_peak_gflops_all(100);
  worker.rules = std::make_unique<SessionRules>(options, worker.session, worker.work(), TimeOf(now_));
  Drive(index);
}

// Carries out what the rules of its session say, until they wait.
void SimWorld::Drive(int index) {
  Worker& worker = *workers_[index];
  if (!worker.up || worker.hello_out || worker.silent_until > now_) return;
  if (random_.Chance(faults_.give_back)) worker.queue->GiveBack(/*all=*/false);  // its machine is not quiet
  for (;;) {
    const SessionStep step = worker.rules->Next(TimeOf(now_), /*stop=*/false);
    if (const SayHello* hello = std::get_if<SayHello>(&step)) return CarryHello(index, hello->request);
    if (const SaySync* sync = std::get_if<SaySync>(&step)) {
      CarrySync(index, *sync);
      continue;
    }
    if (const EndSession* end = std::get_if<EndSession>(&step)) {
      HONE_CHECK(end->status.ok()) << "worker " << index << " was ended: " << end->status;
      return EndWorker(index);  // it was drained
    }
    const Pause* pause = std::get_if<Pause>(&step);
    if (pause == nullptr) return;  // it is driven when there is news; nobody asks it to stop meanwhile
    At(now_ + MicrosOf(pause->time), [this, index, life = worker.life, wait = ++worker.waits] {
      if (workers_[index]->life == life && workers_[index]->waits == wait) Drive(index);
    });
    return;
  }
}

void SimWorld::Call(int index, Micros timeout, std::function<Event(ReplyTo)> ask,
                    std::function<void(const Message&)> then) {
  const uint64_t life = workers_[index]->life;
  // A stopped process finds its answers when it goes on.
  const auto end = [this, index, life, then](const Message& message) {
    At(workers_[index]->silent_until, [this, index, life, then, message] {
      if (workers_[index]->life == life) then(message);
    });
  };
  const auto fail = [end](absl::StatusCode code) { end(Refusal{static_cast<int>(code), "the network"}); };
  Send(
      [this, ask, end, fail] {
        if (dispatcher_ == nullptr) return fail(absl::StatusCode::kUnavailable);
        ToDaemon(ask(Expect(end)));
      },
      [fail] { fail(absl::StatusCode::kUnavailable); });
  At(now_ + timeout, [fail] { fail(absl::StatusCode::kDeadlineExceeded); });
}

void SimWorld::CarryHello(int index, const v1::HelloRequest& request) {
  workers_[index]->hello_out = true;
  const uint64_t number = ++workers_[index]->hellos;
  Call(
      index, MicrosOf(kHelloTimeout),
      [this, request, principal = PrincipalOf(*workers_[index])](ReplyTo to) {
        return hone::Hello{to, request, WorkersTenant(), principal};
      },
      [this, index, number](const Message& message) {
        Worker& worker = *workers_[index];
        if (!worker.hello_out || worker.hellos != number) return;
        worker.hello_out = false;
        worker.rules->HelloAnswered(TimeOf(now_), As<v1::HelloReply>(message));
        Drive(index);
      });
}

void SimWorld::CarrySync(int index, const SaySync& sync) {
  v1::SyncRequest request = *sync.request;
  for (const auto& [report, result] : workers_[index]->forged) *request.add_results() = result;
  for (v1::BuildResult& result : std::exchange(workers_[index]->forged_builds, {})) *request.add_built() = result;
  Call(
      index, MicrosOf(sync.timeout),
      [this, request](ReplyTo to) {
        return hone::Sync{to, request, "2026-01-01T00:00:00Z", WorkersTenant()};
      },
      [this, index, call = sync.call](const Message& message) { TakeReply(index, call, As<v1::SyncReply>(message)); });
}

void SimWorld::TakeReply(int index, uint64_t call, const absl::StatusOr<v1::SyncReply>& reply) {
  Worker& worker = *workers_[index];
  if (reply.ok()) {
    HONE_CHECK(!worker.builds_only || reply->want().empty()) << "a worker that only builds was lent a trial";
    CheckVerdicts(*reply);
    for (const v1::LeaseId& id : reply->acked()) worker.forged.erase({TokenOf(id), id.secret()});
    for (const v1::RefusedReport& refused : reply->refused()) {
      worker.forged.erase({TokenOf(refused.id()), refused.id().secret()});
    }
  }
  const v1::SyncRequest before = SaidBy(worker);
  worker.rules->SyncAnswered(TimeOf(now_), call, reply);
  const v1::SyncRequest after = SaidBy(worker);
  std::set<LeaseToken> told;
  for (const v1::TrialResult& result : after.results()) told.insert(TokenOf(result.id()));
  for (const v1::TrialResult& result : before.results()) {
    if (told.count(TokenOf(result.id())) == 0) CheckForgotten(result.id());
  }
  WorkOn(index);
  BuildNext(index);
  Drive(index);
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

}  // namespace hone
