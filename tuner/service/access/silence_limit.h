// Ends calls whose other side is silent: a stream that nobody writes to, or reads from, holds a thread for as long as
// its handler waits. From any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"

namespace hone {

class SilenceLimit {
 public:
  explicit SilenceLimit(absl::Duration longest) : longest_(longest), thread_([this] { Run(); }) {}
  ~SilenceLimit();
  SilenceLimit(const SilenceLimit&) = delete;
  SilenceLimit& operator=(const SilenceLimit&) = delete;

  // `message()`, which reads or writes one message of the call of `context` and says whether it could. When that takes
  // longer than the limit the call ends: DEADLINE_EXCEEDED for its caller, false here. `what` names the call in the
  // error: "submit".
  template <class Message>
  bool Bound(grpc::ServerContext& context, const char* what, Message message) {
    const Waiting waiting(*this, context, what);
    return message();
  }

 private:
  struct Call {
    absl::Time until;
    grpc::ServerContext* context;
    const char* what;
  };
  class Waiting {
   public:
    Waiting(SilenceLimit& limit, grpc::ServerContext& context, const char* what);
    ~Waiting();

   private:
    SilenceLimit& limit_;
    uint64_t id_ = 0;
  };
  void Run();

  const absl::Duration longest_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  uint64_t next_ = 0;
  std::map<uint64_t, Call> calls_;  // in the order of their ends: all have the same limit
  std::thread thread_;
};

}  // namespace hone
