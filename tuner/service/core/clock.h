// The daemon's clock: monotonic, in microseconds, of no particular origin.
#pragma once

#include <chrono>

#include "tuner/dispatch/events/events.h"

namespace hone {

inline Micros SteadyMicros() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace hone
