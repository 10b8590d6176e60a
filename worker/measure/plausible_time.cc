#include "worker/measure/plausible_time.h"

#include <algorithm>

namespace hone {

bool IsPossibleTime(double us, int threads, double processor_us) {
  constexpr double kSlowdown = 2, kSurroundingsUs = 5000;
  return processor_us <= kSlowdown * us * threads + kSurroundingsUs;
}

void UnaccountedTime::Add(double one_us, double many_us, double waits_us) {
  ++pairs_;
  one_us_ = std::min(one_us_, one_us);
  many_us_ = std::min(many_us_, many_us - waits_us);
  waiting_us_ = std::min(waiting_us_, many_us);
}

bool UnaccountedTime::Agrees() const {
  constexpr int kLeastPairs = 4;
  constexpr double kTolerance = 0.1, kWakingUpUs = 1000;
  const double allowed_us = kTolerance * calls_us_ + kWakingUpUs;
  return waiting_us_ <= allowed_us || (pairs_ >= kLeastPairs && more_us() <= allowed_us);
}

bool Remembers(double unseen_us, double same_us) {
  constexpr double kNoise = 1.5, kClockUs = 1;
  return unseen_us > kNoise * same_us + kClockUs;
}

}  // namespace hone
