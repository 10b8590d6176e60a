// What a runner serves: one candidate, loaded. Whoever serves it (serve.h) knows this alone.
#pragma once

#include "worker/runner/protocol.h"

namespace hone {

class ServedCandidate {
 public:
  virtual ~ServedCandidate() = default;

  // As protocol.h says of the requests. The reply is one of kDone when they are called.
  virtual void Verify(const VerifyRequest& request, RunnerReply* reply) = 0;
  virtual void Time(const TimeRequest& request, RunnerReply* reply) = 0;

  // What of ours lies at an address, for the message of a crash: "past the end of output 0". "" when nothing does. Safe
  // in a signal handler.
  struct Place {
    const char* where = "";  // "before", "within" (a write to an input), "past the end of"
    const char* what = "";   // "input", "output", "packed constant", "scratch", "scratch of thread"
    int index = -1;
  };
  virtual Place Describe(const void* address) const = 0;
};

}  // namespace hone
