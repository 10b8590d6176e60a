// What workers that only simulate report of a trial.
#pragma once

#include <cstdint>

#include "hone/v1/common.pb.h"

namespace hone {

// Right, with a time of 100 to 1,100 us that follows from the trial's number. A duel is lost.
inline v1::Outcome LoadOutcome(uint64_t trial) {
  v1::Outcome outcome;
  outcome.set_kind(v1::OUTCOME_OK);
  const double us = 100 + static_cast<double>(trial * 7919 % 1000);
  outcome.mutable_timing()->set_median_us(us);
  for (int i = 0; i < 10; ++i) outcome.mutable_timing()->add_samples_us(static_cast<float>(us));
  outcome.set_duel_ratio(1.5);
  outcome.set_measure_seconds(0.1);
  return outcome;
}

}  // namespace hone
