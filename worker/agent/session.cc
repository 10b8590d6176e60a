#include "worker/agent/session.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/status_macros.h"
#include "proto/rpc/address.h"
#include "proto/rpc/status.h"
#include "spdlog/spdlog.h"

namespace hone {
namespace {

constexpr uint32_t kProtocolVersion = 2;
constexpr absl::Duration kCallTimeout = absl::Seconds(20);
constexpr absl::Duration kGiveUpAfter = absl::Seconds(10);  // without a daemon, when we end with it
constexpr absl::Duration kFirstPause = absl::Milliseconds(100), kLongestPause = absl::Seconds(5);  // between Hellos
constexpr absl::Duration kCoalesce = absl::Milliseconds(2);  // results of one batch come one after the other

std::string RandomBytes(int count) {
  std::random_device device;
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(device()));
  return bytes;
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) || absl::IsFailedPrecondition(status) ||
         absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
}

}  // namespace

// One Sync on its way. Owned by the session's loop and by gRPC's callback, whichever is later.
struct Session::Call {
  std::unique_ptr<grpc::ClientContext> context;
  v1::SyncRequest request;
  v1::SyncReply reply;
  absl::Status status;
  uint64_t finished = 0;  // results there were when it was made
  std::atomic<bool> done{false};
};

Session::Session(SessionOptions options, SessionWork& queue)
    : options_(std::move(options)),
      queue_(queue),
      session_(RandomBytes(16)),
      name_key_(options_.name_key.empty() ? RandomBytes(16) : options_.name_key),
      pause_(kFirstPause) {
  stub_ = v1::Fleet::NewStub(OpenChannel(options_.address, options_.credentials));
}

absl::Status Session::Hello() {
  v1::HelloRequest request;
  request.set_worker_name(options_.name);
  request.set_session(session_);
  request.mutable_version()->set_min(kProtocolVersion);
  request.mutable_version()->set_max(kProtocolVersion);
  *request.mutable_profile() = options_.profile;
  request.set_threads(options_.threads);
  request.set_can_build(options_.role != AgentRole::kMeasure);
  request.set_can_measure(options_.role != AgentRole::kBuild);
  request.set_name_key(name_key_);
  request.mutable_missing_layers()->Assign(options_.missing_layers.begin(), options_.missing_layers.end());
  v1::HelloReply reply;
  HONE_RETURN_IF_ERROR(FromGrpc(stub_->Hello(MakeContext(options_.credentials, kCallTimeout).get(), request, &reply)));
  CrashPoint("worker.greeted");
  hold_ = absl::Milliseconds(reply.sync_hold_ms());
  spdlog::info("worker {} at {}: {}", reply.worker_id(), options_.address, options_.profile.device_class());
  return absl::OkStatus();
}

std::shared_ptr<Session::Call> Session::StartSync(bool draining) {
  auto call = std::make_shared<Call>();
  call->request.set_session(session_);
  call->request.set_seq(++seq_);
  call->request.set_draining(draining);
  call->finished = queue_.finished();  // before they are read: one told twice is harmless, one untold is not
  queue_.Describe(draining ? 0 : options_.capacity, &call->request);
  call->context = MakeContext(options_.credentials, hold_ + kCallTimeout);
  CrashPoint("worker.sync");
  stub_->async()->Sync(call->context.get(), &call->request, &call->reply, [call, this](grpc::Status status) {
    CrashPoint("worker.synced");
    call->status = FromGrpc(status);
    call->done = true;
    queue_.Poke();
  });
  return call;
}

bool Session::DrainIsOver(bool daemon_answers) {
  if (drain_by_ == absl::InfiniteFuture()) {
    drain_by_ = absl::Now() + options_.drain_limit;
    spdlog::info("draining: what is under work has {} to end, the rest goes back",
                 absl::FormatDuration(options_.drain_limit));
  }
  CrashPoint("worker.stop.draining");
  const bool late = absl::Now() >= drain_by_;
  queue_.GiveBack(/*all=*/late);
  if (daemon_answers) return told_draining_ && !queue_.HasWork();
  return late || !queue_.HasLeases();
}

absl::Status Session::Run(const std::atomic<bool>& stop_asked) {
  last_answer_ = absl::Now();
  std::optional<absl::Status> end;
  while (!end.has_value()) end = greeted_ ? SyncOnce(stop_asked) : Greet(stop_asked);
  ends_ = true;
  for (const auto& call : calls_) call->context->TryCancel();
  while (!calls_.empty()) {  // callbacks refer to the queue
    if (calls_.front()->done) {
      calls_.pop_front();
    } else {
      queue_.WaitForNews(absl::Milliseconds(50));
    }
  }
  return *std::move(end);
}

std::optional<absl::Status> Session::Greet(const std::atomic<bool>& stop_asked) {
  const absl::Status status = Hello();
  if (IsRefusal(status)) return status;
  if (absl::IsAlreadyExists(status)) {  // another host, or container, that calls itself the same
    absl::StrAppend(&options_.name, "-", absl::Hex(static_cast<uint8_t>(RandomBytes(1)[0]), absl::kZeroPad2));
    spdlog::info("{}; this one is {} from now on", std::string(status.message()), options_.name);
  }
  if (status.ok()) {
    greeted_ = true;
    unreachable_.clear();
    pause_ = kFirstPause;
    last_answer_ = absl::Now();
    return std::nullopt;
  }
  if ((stop_asked || asked_to_drain_) && DrainIsOver(/*daemon_answers=*/false)) return absl::OkStatus();
  if (absl::IsUnavailable(status) && unreachable_ != status.message() && !IsUnixAddress(options_.address)) {
    unreachable_ = std::string(status.message());
    spdlog::warn("the daemon at {} cannot be reached: {}", options_.address, unreachable_);
  }
  if (options_.exit_with_daemon && absl::Now() - last_answer_ > kGiveUpAfter) return status;
  absl::SleepFor(pause_);
  pause_ = std::min(pause_ * 2, kLongestPause);
  return std::nullopt;
}

std::optional<absl::Status> Session::SyncOnce(const std::atomic<bool>& stop_asked) {
  const auto stop = [&] { return stop_asked || asked_to_drain_; };
  const bool draining = stop();
  if (draining && DrainIsOver(/*daemon_answers=*/true)) return absl::OkStatus();
  const bool late = absl::Now() >= drain_by_;
  calls_.push_back(StartSync(draining));
  for (;;) {
    queue_.WaitForNews(absl::Seconds(1));
    while (calls_.size() > 1 && calls_.front()->done) FollowOldest();
    if (calls_.back()->done || stop() != draining || (absl::Now() >= drain_by_) != late) break;
    if (absl::Now() >= drain_by_ + kGiveUpAfter) return absl::OkStatus();  // it hangs
    absl::SleepFor(kCoalesce);
    if (queue_.finished() != calls_.back()->finished && calls_.size() < 2) break;
  }
  if (!calls_.back()->done) return std::nullopt;
  // Answers are followed in the order of the calls. The daemon answered an older one as soon as the newer arrived.
  while (calls_.size() > 1) {
    if (!calls_.front()->done) {
      queue_.WaitForNews(absl::Milliseconds(20));
    } else {
      FollowOldest();
    }
  }
  return FollowNewest(draining);
}

void Session::FollowOldest() {
  const Call& call = *calls_.front();
  if (call.status.ok() && !call.reply.unknown_session()) queue_.Apply(call.request, call.reply);
  calls_.pop_front();
}

std::optional<absl::Status> Session::FollowNewest(bool draining) {
  const std::shared_ptr<Call> call = calls_.back();
  calls_.clear();
  if (!call->status.ok()) {
    if (IsRefusal(call->status)) return call->status;
    greeted_ = false;  // it may be another daemon by now
    return std::nullopt;
  }
  last_answer_ = absl::Now();
  if (call->reply.unknown_session()) {
    queue_.ForgetLeases();
    greeted_ = false;
    return std::nullopt;
  }
  queue_.Apply(call->request, call->reply);
  if (call->reply.shut_down()) return absl::OkStatus();
  told_draining_ = told_draining_ || draining;
  asked_to_drain_ = asked_to_drain_ || call->reply.drain();
  return std::nullopt;
}

std::unique_ptr<grpc::ClientContext> Session::Context(absl::Duration timeout) const {
  return MakeContext(options_.credentials, timeout);
}

absl::StatusOr<v1::Workload> Session::GetWorkload(const std::string& hash) {
  v1::GetWorkloadRequest request;
  request.set_hash(hash);
  v1::Workload workload;
  HONE_RETURN_IF_ERROR(
      FromGrpc(stub_->GetWorkload(MakeContext(options_.credentials, kCallTimeout).get(), request, &workload)));
  return workload;
}

}  // namespace hone
