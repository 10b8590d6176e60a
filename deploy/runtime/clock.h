// Microseconds of a clock that only goes forward.
#pragma once

#include <time.h>

namespace hone {

inline double NowUs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

}  // namespace hone
