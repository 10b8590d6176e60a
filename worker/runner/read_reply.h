// What the agent makes of a runner's answer. Whoever wrote it may have been the candidate: every number is looked at,
// and its text becomes printable.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "worker/measure/statistics.h"
#include "worker/runner/protocol.h"

namespace hone {

// What came of a request.
struct RunnerVerdict {
  enum Kind : uint8_t {
    kOk,
    kKernelFailed,  // the kernel returned something else than 0
    kCrashed,       // the process died: a signal, a forbidden system call, an exit of its own
    kTimedOut,      // no answer in time; it was killed
    kOutOfMemory,
    kRefused,         // it cannot be loaded: damaged image, missing symbol, missing CPU feature
    kImpossibleTime,  // the times it reports are not those that passed
    kNoDevice,        // there is no device to run it on, whatever it is
    kDeviceLost,      // its run was the last that the device took of the process, which was ended
  };
  Kind kind = kOk;
  std::string message;  // "killed by signal 11 (Segmentation fault); touched 0x... past the end of output 0"
  std::vector<TimedSample> samples;  // of a Time request
  double reported_us = 0;            // what the runner says the request took
  double elapsed_us = 0;             // by our clock, the messages included
  bool ok() const { return kind == kOk; }
};

// What the process is good for after `reply`, of which `got` bytes came: kCrashed and kDeviceLost are its end. A reply
// that is none is kCrashed.
RunnerVerdict ReadReply(RunnerReply& reply, ssize_t got);

// What passed meanwhile by what is not in the runner's hands.
struct TimePassed {
  double elapsed_us = 0;    // by the agent's clock
  double processor_us = 0;  // that the system charged
  int threads = 1;
  bool device = false;  // whose calls cost no processor time
};
// A good verdict with the samples of its reply; kImpossibleTime where they are not as many as asked for, no times, or
// not those that passed.
RunnerVerdict WithSamples(RunnerVerdict verdict, const RunnerReply& reply, const TimeRequest& request,
                          const TimePassed& passed);

}  // namespace hone
