#include "tests/bench/load/simulated_worker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "tests/bench/load/load_outcome.h"
#include "tests/bench/percentiles.h"

namespace hone {

void Sample::Add(absl::Duration took) {
  const std::lock_guard<std::mutex> guard(mutex_);
  milliseconds_.push_back(absl::ToDoubleMilliseconds(took));
}

void Sample::Clear() {
  const std::lock_guard<std::mutex> guard(mutex_);
  milliseconds_.clear();
}

std::string Sample::Text() {
  const std::lock_guard<std::mutex> guard(mutex_);
  return Percentiles(milliseconds_, 1);
}

Timer::~Timer() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Timer::After(absl::Duration delay, std::function<void()> what) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    due_.emplace(absl::Now() + delay, std::move(what));
  }
  changed_.notify_one();
}

void Timer::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    if (due_.empty() || due_.begin()->first > absl::Now()) {
      const absl::Duration wait = due_.empty() ? absl::Seconds(1) : due_.begin()->first - absl::Now();
      changed_.wait_for(lock, absl::ToChronoMicroseconds(wait));
      continue;
    }
    const std::function<void()> what = std::move(due_.begin()->second);
    due_.erase(due_.begin());
    lock.unlock();
    what();
    lock.lock();
  }
}

struct SimulatedWorker::Call {
  grpc::ClientContext context;
  v1::SyncRequest request;
  v1::SyncReply reply;
  absl::Time began;
  uint64_t life = 0;
  bool asks = false;  // it holds nothing
};

SimulatedWorker::SimulatedWorker(std::string name, const LoadOptions& options, Timer& timer, LoadCounts& counts)
    : name_(std::move(name)),
      options_(options),
      timer_(timer),
      counts_(counts),
      random_(std::hash<std::string>()(name_)) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own, as a machine has
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  stub_ =
      v1::Fleet::NewStub(grpc::CreateCustomChannel(options_.address, grpc::InsecureChannelCredentials(), arguments));
}

void SimulatedWorker::Start() {
  struct HelloCall {
    grpc::ClientContext context;
    v1::HelloRequest request;
    v1::HelloReply reply;
  };
  auto call = std::make_shared<HelloCall>();
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (std::exchange(connecting_, true)) return;
    call->request.set_session(absl::StrCat(name_, " life ", life_));
  }
  call->context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  call->context.set_wait_for_ready(true);
  call->request.set_worker_name(name_);
  call->request.set_name_key(name_);
  call->request.set_threads(2);
  call->request.set_can_build(true);
  call->request.set_can_measure(true);
  call->request.mutable_profile()->set_device_class(kSimulatedDevice);
  call->request.mutable_profile()->set_target("cpu:load");
  call->request.mutable_profile()->set_cores(2);
  stub_->async()->Hello(&call->context, &call->request, &call->reply, [this, call](const grpc::Status& status) {
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      connecting_ = false;
    }
    if (stopping_) return;
    if (!status.ok()) {
      ++counts_.failed;
      return timer_.After(absl::Seconds(1), [this] { Start(); });
    }
    ++counts_.connected;
    Sync();
  });
}

void SimulatedWorker::Vanish() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    ++life_;
    seq_ = 0;
    held_.clear();
    results_.clear();
  }
  Start();
}

void SimulatedWorker::Sync() {
  if (stopping_) return;
  auto call = std::make_shared<Call>();
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    call->life = life_;
    call->request.set_session(absl::StrCat(name_, " life ", life_));
    call->request.set_seq(++seq_);
    for (const auto& [trial, id] : held_) {
      v1::LeaseState& state = *call->request.add_held();
      *state.mutable_id() = id;
      state.set_phase(v1::PHASE_MEASURING);
    }
    for (const auto& [trial, result] : results_) *call->request.add_results() = result;
    call->asks = held_.empty();
    call->request.set_credits(static_cast<uint32_t>(std::max(0, options_.credits - static_cast<int>(held_.size()))));
  }
  call->context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
  call->began = absl::Now();
  ++counts_.calls;
  stub_->async()->Sync(&call->context, &call->request, &call->reply,
                       [this, call](const grpc::Status& status) { TakeReply(*call, status); });
}

void SimulatedWorker::TakeReply(const Call& call, const grpc::Status& status) {
  if (stopping_) return;
  bool newest = false, lent = false;
  double work_ms = 0;
  const absl::Duration took = absl::Now() - call.began;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (call.life != life_) return;
    newest = call.request.seq() == seq_;
    for (const v1::LeaseId& id : call.reply.acked()) {
      if (results_.erase(id.trial()) == 0) continue;
      ++counts_.acked;
      const std::lock_guard<std::mutex> counting(counts_.mutex);
      counts_.acked_trials.push_back(id.trial());
    }
    for (const v1::RefusedReport& refused : call.reply.refused()) results_.erase(refused.id().trial());
    for (const v1::Lease& lease : call.reply.want()) {
      if (results_.count(lease.id().trial()) != 0) continue;
      lent = held_.emplace(lease.id().trial(), lease.id()).second || lent;
    }
    if (lent) work_ms = options_.work_ms * (1 + options_.spread * (2 * random_.Uniform() - 1));
  }
  if (!status.ok() || call.reply.unknown_session()) {
    ++counts_.failed;
    if (newest) timer_.After(absl::Seconds(1), [this, known = status.ok()] { known ? Start() : Sync(); });
    return;
  }
  if (lent && call.asks) counts_.lease.Add(took);
  if (lent) timer_.After(absl::Milliseconds(work_ms), [this, life = call.life] { Finish(life); });
  if (newest) Sync();
}

void SimulatedWorker::Finish(uint64_t life) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (life != life_) return;
    for (const auto& [trial, id] : held_) {
      v1::TrialResult& result = results_[trial];
      *result.mutable_id() = id;
      *result.mutable_outcome() = LoadOutcome(trial);
    }
    held_.clear();
  }
  Sync();
}

}  // namespace hone
