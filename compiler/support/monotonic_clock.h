// The clock for durations and limits. It only rises, whatever is done to the clock on the wall, absl::Now(), which is
// for what people read, for certificates, and for the deadlines of gRPC, which makes durations of them at once.
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace hone {

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Since some moment of this machine's: to be compared with other times of this clock alone.
inline absl::Time MonotonicNow() { return absl::UnixEpoch() + absl::FromChrono(Clock::now().time_since_epoch()); }

}  // namespace hone
