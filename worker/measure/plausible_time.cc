#include "worker/measure/plausible_time.h"

namespace hone {

bool IsPossibleTime(double us, int threads, double processor_us) {
  constexpr double kSlowdown = 2, kSurroundingsUs = 5000;
  return processor_us <= kSlowdown * us * threads + kSurroundingsUs;
}

bool AgreesWithClock(double calls_us, double more_us) {
  constexpr double kTolerance = 0.1, kWakingUpUs = 1000;
  return more_us <= kTolerance * calls_us + kWakingUpUs;
}

bool Remembers(double unseen_us, double same_us) {
  constexpr double kNoise = 1.5, kClockUs = 1;
  return unseen_us > kNoise * same_us + kClockUs;
}

}  // namespace hone
