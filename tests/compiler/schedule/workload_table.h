// The small workloads that random campaigns play on: operators of every kind in odd, prime and unit sizes.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/numeric.h"
#include "compiler/ir/stmt.h"
#include "compiler/support/random.h"

namespace hone::testing {

struct SmallWorkload {
  std::string name;
  PrimFunc func;
  // On small integers (InputKind::kInteger) every intermediate is an integer below 2^24: any order of sums gives the
  // same bits. Where it is false results are held to the oracle's bound (compiler/oracle/oracle.h) at the level.
  bool exact = true;
  NumericLevel level = NumericLevel::kStrict;
};

// Made once, the same on every call.
const std::vector<SmallWorkload>& SmallWorkloads();

// One of the table, one of the families in workloads.h with random sizes, or (one time in five) one of hand_written.h.
SmallWorkload PickWorkload(Random& random);

}  // namespace hone::testing
