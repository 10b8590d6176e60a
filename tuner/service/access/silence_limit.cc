#include "tuner/service/access/silence_limit.h"

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/support/monotonic_clock.h"
#include "grpc/grpc.h"
#include "spdlog/spdlog.h"

namespace hone {

SilenceLimit::~SilenceLimit() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

SilenceLimit::Waiting::Waiting(SilenceLimit& limit, grpc::ServerContext& context, const char* what) : limit_(limit) {
  const absl::Time until = MonotonicNow() + limit.longest_;
  const std::lock_guard<std::mutex> lock(limit.mutex_);
  id_ = limit.next_++;
  const bool first = limit.calls_.empty();
  limit.calls_.emplace(id_, Call{until, &context, what});
  if (first) limit.changed_.notify_one();
}

// The call is not ended from then on: its handler may destroy it.
SilenceLimit::Waiting::~Waiting() {
  const std::lock_guard<std::mutex> lock(limit_.mutex_);
  limit_.calls_.erase(id_);
}

void SilenceLimit::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    if (calls_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Call call = calls_.begin()->second;
    if (const absl::Duration left = call.until - MonotonicNow(); left > absl::ZeroDuration()) {
      changed_.wait_for(lock, absl::ToChronoMilliseconds(left) + std::chrono::milliseconds(1));
      continue;
    }
    const std::string words = absl::StrCat(
        call.what, ": the caller sent or took nothing for ", absl::FormatDuration(longest_),
        " (honed --max-silence), and the call was ended; make it again when the network and the caller can go on");
    spdlog::warn("{}: {}", call.context->peer(), words);
    // TryCancel would say CANCELLED, without a reason.
    grpc_call_cancel_with_status(call.context->c_call(), GRPC_STATUS_DEADLINE_EXCEEDED, words.c_str(), nullptr);
    calls_.erase(calls_.begin());
  }
}

}  // namespace hone
