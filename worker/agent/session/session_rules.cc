#include "worker/agent/session/session_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/crash_point.h"
#include "spdlog/spdlog.h"

namespace hone {
namespace {

constexpr uint32_t kProtocolVersion = 2;
constexpr absl::Duration kGiveUpAfter = absl::Seconds(10);  // without a daemon, when we end with it
constexpr absl::Duration kFirstPause = absl::Milliseconds(100), kLongestPause = absl::Seconds(5);  // between Hellos
constexpr absl::Duration kCoalesce = absl::Milliseconds(2);  // results of one batch come one after the other
constexpr absl::Duration kLookAgain = absl::Seconds(1);      // whether it is to stop

bool IsRefusal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) || absl::IsFailedPrecondition(status) ||
         absl::IsInvalidArgument(status) || absl::IsUnimplemented(status);
}

}  // namespace

SessionRules::SessionRules(SessionOptions options, std::string session, SessionWork& work, absl::Time now)
    : options_(std::move(options)),
      session_(std::move(session)),
      work_(work),
      hello_at_(now),
      pause_(kFirstPause),
      last_answer_(now) {}

SessionStep SessionRules::Next(absl::Time now, bool stop) {
  if (end_.has_value()) return EndSession{*end_};
  const bool draining = stop || asked_to_drain_;
  return greeted_ ? NextSync(now, draining) : NextHello(now, draining);
}

// ---- Hello ----

SessionStep SessionRules::NextHello(absl::Time now, bool draining) {
  if (!hello_error_.ok()) {
    if (draining && DrainIsOver(now, /*daemon_answers=*/false)) return EndSession{absl::OkStatus()};
    if (options_.exit_with_daemon && now - last_answer_ > kGiveUpAfter) return EndSession{hello_error_};
    if (now < hello_at_) return Pause{hello_at_ - now};
  }
  return SayHello{MakeHello()};
}

v1::HelloRequest SessionRules::MakeHello() const {
  v1::HelloRequest request;
  request.set_worker_name(options_.name);
  request.set_session(session_);
  request.mutable_version()->set_min(kProtocolVersion);
  request.mutable_version()->set_max(kProtocolVersion);
  *request.mutable_profile() = options_.profile;
  request.set_threads(options_.threads);
  request.set_can_build(options_.role != AgentRole::kMeasure);
  request.set_can_measure(options_.role != AgentRole::kBuild);
  request.set_name_key(options_.name_key);
  request.set_generator(options_.generator);
  request.mutable_missing_layers()->Assign(options_.missing_layers.begin(), options_.missing_layers.end());
  return request;
}

void SessionRules::HelloAnswered(absl::Time now, const absl::StatusOr<v1::HelloReply>& reply) {
  hello_error_ = reply.status();
  if (reply.ok()) {
    greeted_ = true;
    hold_ = absl::Milliseconds(reply->sync_hold_ms());
    pause_ = kFirstPause;
    last_answer_ = now;
    return;
  }
  if (IsRefusal(hello_error_)) end_ = hello_error_;
  if (absl::IsAlreadyExists(hello_error_)) {  // another host, or container, that calls itself the same
    absl::StrAppend(&options_.name, "-", absl::Hex(static_cast<uint8_t>(session_[0]), absl::kZeroPad2));
    spdlog::info("{}; this one is {} from now on", std::string(hello_error_.message()), options_.name);
  }
  hello_at_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
}

// ---- Sync after Sync ----

SessionStep SessionRules::NextSync(absl::Time now, bool draining) {
  if (calls_.empty()) return StartSync(now, draining);
  const Call& newest = calls_.back();
  // Answers are followed in the order of the calls. The daemon answered an older one as soon as the newer arrived.
  if (newest.reply.has_value()) return WaitForNews{kLookAgain};
  if (draining != newest.request->draining() || (now >= drain_by_) != newest.late) return StartSync(now, draining);
  if (now >= drain_by_ + kGiveUpAfter) return EndSession{absl::OkStatus()};  // it hangs
  if (work_.finished() == newest.finished || calls_.size() > 1) return WaitForNews{kLookAgain};
  news_since_ = std::min(news_since_, now);
  if (now < news_since_ + kCoalesce) return Pause{news_since_ + kCoalesce - now};
  return StartSync(now, draining);
}

SessionStep SessionRules::StartSync(absl::Time now, bool draining) {
  if (draining && DrainIsOver(now, /*daemon_answers=*/true)) return EndSession{absl::OkStatus()};
  const auto request = std::make_shared<v1::SyncRequest>();
  request->set_session(session_);
  request->set_seq(++seq_);
  request->set_draining(draining);
  const uint64_t finished = work_.finished();  // before they are read: one told twice is harmless, one untold is not
  work_.Describe(draining ? 0 : options_.capacity, request.get());
  calls_.push_back({.id = seq_, .request = request, .finished = finished, .late = now >= drain_by_, .reply = {}});
  news_since_ = absl::InfiniteFuture();
  const absl::Duration quiet = absl::Milliseconds(request->quiet_ms());  // it is held as long
  return SaySync{seq_, request, std::max(hold_, quiet) + kCallTimeout};
}

void SessionRules::SyncAnswered(absl::Time now, uint64_t call, absl::StatusOr<v1::SyncReply> reply) {
  const auto answered = std::ranges::find(calls_, call, &Call::id);
  if (answered == calls_.end() || answered->reply.has_value()) return;
  answered->reply = std::move(reply);
  while (!calls_.empty() && calls_.front().reply.has_value()) {
    const Call oldest = std::move(calls_.front());
    calls_.pop_front();
    Follow(now, oldest, /*newest=*/calls_.empty());
  }
}

void SessionRules::Follow(absl::Time now, const Call& call, bool newest) {
  if (!call.reply->ok()) {
    if (newest && IsRefusal(call.reply->status())) end_ = call.reply->status();
    if (newest) greeted_ = false;  // it may be another daemon by now
    return;
  }
  const v1::SyncReply& reply = **call.reply;
  if (!reply.unknown_session()) work_.Apply(*call.request, reply);  // also an older call's answer may lend something
  if (!newest) return;
  last_answer_ = now;
  if (reply.unknown_session()) {
    work_.ForgetLeases();
    greeted_ = false;
    return;
  }
  if (reply.shut_down()) end_ = absl::OkStatus();
  told_draining_ = told_draining_ || call.request->draining();
  asked_to_drain_ = asked_to_drain_ || reply.drain();
}

bool SessionRules::DrainIsOver(absl::Time now, bool daemon_answers) {
  if (drain_by_ == absl::InfiniteFuture()) {
    drain_by_ = now + options_.drain_limit;
    spdlog::info("draining: what is under work has {} to end, the rest goes back",
                 absl::FormatDuration(options_.drain_limit));
  }
  CrashPoint("worker.stop.draining");
  const bool late = now >= drain_by_;
  work_.GiveBack(/*all=*/late);
  if (daemon_answers) return told_draining_ && !work_.HasWork();
  return late || !work_.HasLeases();
}

}  // namespace hone
