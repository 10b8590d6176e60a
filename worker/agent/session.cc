#include "worker/agent/session.h"

#include <algorithm>
#include <deque>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/status_macros.h"
#include "proto/rpc/address.h"
#include "proto/rpc/status.h"
#include "spdlog/spdlog.h"

namespace hone {
namespace {

constexpr uint32_t kProtocolVersion = 1;
constexpr absl::Duration kCallTimeout = absl::Seconds(20);
constexpr absl::Duration kGiveUpAfter = absl::Seconds(10);   // without a daemon, when we end with it
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
      name_key_(options_.name_key.empty() ? RandomBytes(16) : options_.name_key) {
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
  const auto stop = [&] { return stop_asked || asked_to_drain_; };
  bool greeted = false;
  std::string away;  // why the daemon cannot be reached, as last told
  absl::Duration pause = absl::Milliseconds(100);
  absl::Time last_answer = absl::Now();
  std::deque<std::shared_ptr<Call>> calls;  // at most two: a newer one makes the daemon answer the older
  const auto leave = [&](absl::Status status) {
    ends_ = true;
    for (const auto& call : calls) call->context->TryCancel();
    while (!calls.empty()) {  // callbacks refer to the queue
      if (calls.front()->done) {
        calls.pop_front();
      } else {
        queue_.WaitForNews(absl::Milliseconds(50));
      }
    }
    return status;
  };
  // An older call's answer may lend something too.
  const auto follow_oldest = [&] {
    if (calls.front()->status.ok() && !calls.front()->reply.unknown_session())
      queue_.Apply(calls.front()->request, calls.front()->reply);
    calls.pop_front();
  };
  for (;;) {
    if (!greeted) {
      const absl::Status status = Hello();
      if (IsRefusal(status)) return leave(status);
      if (absl::IsAlreadyExists(status)) {  // another host, or container, that calls itself the same
        absl::StrAppend(&options_.name, "-", absl::Hex(static_cast<uint8_t>(RandomBytes(1)[0]), absl::kZeroPad2));
        spdlog::info("{}; this one is {} from now on", std::string(status.message()), options_.name);
      }
      if (!status.ok()) {
        if (stop() && DrainIsOver(/*daemon_answers=*/false)) return leave(absl::OkStatus());
        if (absl::IsUnavailable(status) && away != status.message() && !IsUnixAddress(options_.address)) {
          away = std::string(status.message());
          spdlog::warn("the daemon at {} cannot be reached: {}", options_.address, away);
        }
        if (options_.exit_with_daemon && absl::Now() - last_answer > kGiveUpAfter) return leave(status);
        absl::SleepFor(pause);
        pause = std::min(pause * 2, absl::Seconds(5));
        continue;
      }
      greeted = true;
      away.clear();
      pause = absl::Milliseconds(100);
      last_answer = absl::Now();
    }
    const bool draining = stop();
    if (draining && DrainIsOver(/*daemon_answers=*/true)) return leave(absl::OkStatus());
    const bool late = absl::Now() >= drain_by_;
    calls.push_back(StartSync(draining));
    // Until this call is answered, or there is something new to say.
    for (;;) {
      queue_.WaitForNews(absl::Seconds(1));
      while (calls.size() > 1 && calls.front()->done) follow_oldest();
      if (calls.back()->done || stop() != draining || (absl::Now() >= drain_by_) != late) break;
      if (absl::Now() >= drain_by_ + kGiveUpAfter) return leave(absl::OkStatus());  // it hangs
      absl::SleepFor(kCoalesce);
      if (queue_.finished() != calls.back()->finished && calls.size() < 2) break;
    }
    if (!calls.back()->done) continue;
    // Answers are followed in the order of the calls. The daemon answered an older one as soon as the newer arrived.
    while (calls.size() > 1) {
      if (!calls.front()->done) {
        queue_.WaitForNews(absl::Milliseconds(20));
      } else {
        follow_oldest();
      }
    }
    const std::shared_ptr<Call> call = calls.back();
    calls.clear();
    if (!call->status.ok()) {
      if (IsRefusal(call->status)) return leave(call->status);
      greeted = false;  // it may be another daemon by now
      continue;
    }
    last_answer = absl::Now();
    if (call->reply.unknown_session()) {
      queue_.ForgetLeases();
      greeted = false;
      continue;
    }
    queue_.Apply(call->request, call->reply);
    if (call->reply.shut_down()) return leave(absl::OkStatus());
    told_draining_ = told_draining_ || draining;
    asked_to_drain_ = asked_to_drain_ || call->reply.drain();
  }
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
