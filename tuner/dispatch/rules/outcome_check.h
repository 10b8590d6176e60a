// What a worker may claim. Whatever comes over the wire becomes an outcome the rules can trust: a time that is not a
// positive finite number, that has fewer than three samples or lies below what the device can do is INVALID_TIMING.
#pragma once

#include "hone/v1/common.pb.h"

namespace hone {

inline constexpr int kLeastSamples = 3;
inline constexpr int kMostSamples = 64;

v1::Outcome CheckedOutcome(v1::Outcome outcome, double implausible_below_us);

// Takes the object away when it is not what its digest says: not what was measured. For whoever takes the outcome off
// the wire, in a thread of many: to digest megabytes takes milliseconds, and the dispatcher has one thread.
void DropOtherObject(v1::Outcome& outcome);

}  // namespace hone
