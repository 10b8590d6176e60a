// How busy the machine is: limits that are stated for a machine that is not are multiplied by it.
#pragma once

#include <time.h>

#include <algorithm>

namespace hone {

// How much longer a thread takes now than the processor time it gets, over a fifth of a second of that: 1 on a machine
// with a processor free.
inline double Slowdown() {
  const auto seconds = [](clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  };
  const double wall = seconds(CLOCK_MONOTONIC), charged = seconds(CLOCK_THREAD_CPUTIME_ID);
  double used = 0;
  while ((used = seconds(CLOCK_THREAD_CPUTIME_ID) - charged) < 0.2) {}
  return std::max(1.0, (seconds(CLOCK_MONOTONIC) - wall) / used);
}

}  // namespace hone
