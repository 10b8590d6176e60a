// Who waits for which reply of the dispatcher, and a thread that hands replies over. What gRPC does for one (serialise
// it, write to the socket) takes longer than most rules do, and the dispatcher does not wait for it. From any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "tuner/dispatch/events/events.h"

namespace hone {

class ReplySender {
 public:
  using Receiver = std::function<void(Message)>;

  ReplySender() : thread_([this] { Run(); }) {}
  ~ReplySender() { Stop(); }

  // Registers who gets the reply; called once, on the thread of the sender. After Stop it is refused at once.
  ReplyTo Expect(Receiver receiver);
  // In that order. Replies that nobody expects any more are dropped.
  void Send(std::vector<Reply> replies);
  // Hands over what was sent, then refuses everybody who still waits.
  void Stop();

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ReplyTo, Receiver> receivers_;
  ReplyTo next_ = 1;
  std::vector<Reply> to_send_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hone
