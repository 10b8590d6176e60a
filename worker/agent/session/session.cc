#include "worker/agent/session/session.h"

#include <random>
#include <utility>

#include "absl/time/clock.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/status_macros.h"
#include "proto/rpc/address.h"
#include "proto/rpc/status.h"
#include "spdlog/spdlog.h"

namespace hone {
namespace {

std::string RandomBytes(int count) {
  std::random_device device;
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(device()));
  return bytes;
}

SessionOptions WithNameKey(SessionOptions options) {
  if (options.name_key.empty()) options.name_key = RandomBytes(16);
  return options;
}

}  // namespace

// One Sync on its way. Owned by the session's loop and by gRPC's callback, whichever is later.
struct Session::Call {
  std::unique_ptr<grpc::ClientContext> context;
  std::shared_ptr<const v1::SyncRequest> request;
  v1::SyncReply reply;
  absl::Status status;
  std::atomic<bool> done{false};
};

Session::Session(std::string address, Credentials credentials, SessionOptions options, SessionWork& work)
    : address_(std::move(address)),
      credentials_(std::move(credentials)),
      work_(work),
      rules_(WithNameKey(std::move(options)), RandomBytes(16), work, MonotonicNow()),
      stub_(v1::Fleet::NewStub(OpenChannel(address_, credentials_))) {}

absl::Status Session::Run(const std::atomic<bool>& stop_asked) {
  for (;;) {
    HandOverAnswers();
    const SessionStep step = rules_.Next(MonotonicNow(), stop_asked);
    if (const SayHello* hello = std::get_if<SayHello>(&step)) {
      const absl::StatusOr<v1::HelloReply> reply = Hello(hello->request);
      rules_.HelloAnswered(MonotonicNow(), reply);
    } else if (const SaySync* sync = std::get_if<SaySync>(&step)) {
      StartSync(*sync);
    } else if (const WaitForNews* wait = std::get_if<WaitForNews>(&step)) {
      work_.WaitForNews(wait->at_most);
    } else if (const Pause* pause = std::get_if<Pause>(&step)) {
      absl::SleepFor(pause->time);
    } else {
      Cancel();
      return std::get<EndSession>(step).status;
    }
  }
}

absl::StatusOr<v1::HelloReply> Session::Hello(const v1::HelloRequest& request) {
  v1::HelloReply reply;
  const absl::Status status = FromGrpc(stub_->Hello(MakeContext(credentials_, kCallTimeout).get(), request, &reply));
  if (absl::IsUnavailable(status) && unreachable_ != status.message() && !IsUnixAddress(address_)) {
    unreachable_ = std::string(status.message());
    spdlog::warn("the daemon at {} cannot be reached: {}", address_, unreachable_);
  }
  if (!status.ok()) return status;
  CrashPoint("worker.greeted");
  unreachable_.clear();
  spdlog::info("worker {} at {}: {}", reply.worker_id(), address_, request.profile().device_class());
  return reply;
}

void Session::StartSync(const SaySync& sync) {
  const auto call = std::make_shared<Call>();
  calls_[sync.call] = call;
  call->request = sync.request;
  call->context = MakeContext(credentials_, sync.timeout);
  CrashPoint("worker.sync");
  stub_->async()->Sync(call->context.get(), call->request.get(), &call->reply, [call, this](grpc::Status status) {
    CrashPoint("worker.synced");
    call->status = FromGrpc(status);
    call->done = true;
    work_.Poke();
  });
}

void Session::HandOverAnswers() {
  for (auto it = calls_.begin(); it != calls_.end();) {
    const std::shared_ptr<Call> call = it->second;
    if (!call->done) {
      ++it;
      continue;
    }
    const uint64_t id = it->first;
    it = calls_.erase(it);
    if (call->status.ok()) {
      rules_.SyncAnswered(MonotonicNow(), id, std::move(call->reply));
    } else {
      rules_.SyncAnswered(MonotonicNow(), id, call->status);
    }
  }
}

void Session::Cancel() {
  ends_ = true;
  for (const auto& [id, call] : calls_) call->context->TryCancel();
  while (!calls_.empty()) {  // callbacks refer to the work
    if (calls_.begin()->second->done) {
      calls_.erase(calls_.begin());
    } else {
      work_.WaitForNews(absl::Milliseconds(50));
    }
  }
}

std::unique_ptr<grpc::ClientContext> Session::Context(absl::Duration timeout) const {
  return MakeContext(credentials_, timeout);
}

absl::StatusOr<v1::Workload> Session::GetWorkload(const std::string& hash) {
  v1::GetWorkloadRequest request;
  request.set_hash(hash);
  v1::Workload workload;
  HONE_RETURN_IF_ERROR(FromGrpc(stub_->GetWorkload(MakeContext(credentials_, kCallTimeout).get(), request, &workload)));
  return workload;
}

}  // namespace hone
