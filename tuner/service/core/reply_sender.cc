#include "tuner/service/core/reply_sender.h"

#include <utility>

#include "absl/status/status.h"
#include "compiler/support/crash_point.h"

namespace hone {
namespace {

Message Stopping() { return Refusal{static_cast<int>(absl::StatusCode::kUnavailable), "the daemon is stopping"}; }

}  // namespace

ReplyTo ReplySender::Expect(Receiver receiver) {
  std::unique_lock<std::mutex> lock(mutex_);
  const ReplyTo to = next_++;
  if (!stopping_) {
    receivers_.emplace(to, std::move(receiver));
    return to;
  }
  lock.unlock();
  receiver(Stopping());
  return to;
}

void ReplySender::Send(std::vector<Reply> replies) {
  if (replies.empty()) return;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    for (Reply& reply : replies) to_send_.push_back(std::move(reply));
  }
  changed_.notify_one();
}

void ReplySender::Stop() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
  for (const auto& [to, receiver] : receivers_) receiver(Stopping());
  receivers_.clear();
}

void ReplySender::Run() {
  for (bool stop = false; !stop;) {
    std::vector<std::pair<Receiver, Message>> batch;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return !to_send_.empty() || stopping_; });
      stop = stopping_;
      for (Reply& reply : to_send_) {
        auto receiver = receivers_.extract(reply.to);
        if (!receiver.empty()) batch.emplace_back(std::move(receiver.mapped()), std::move(reply.message));
      }
      to_send_.clear();
    }
    for (auto& [receiver, message] : batch) {
      CrashPoint("core.reply");
      receiver(std::move(message));
    }
  }
}

}  // namespace hone
