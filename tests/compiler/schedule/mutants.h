// Scheduled programs with one defect of the kinds that schedules and code generators are prone to.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "compiler/ir/stmt.h"
#include "compiler/support/random.h"

namespace hone::testing {

enum class Defect {
  kBound,             // a loop runs once more or less, a bound in a condition is one off
  kLostInit,          // an accumulator is not initialised
  kSwappedAxes,       // two indices of an access, or two bindings of a block, change places
  kMissingPredicate,  // a condition that keeps instances or accesses inside is gone
  kStaleAccumulator,  // an accumulator is initialised for the first of its turns alone
};
inline constexpr std::array<std::string_view, 5> kDefectNames = {"bound", "lost init", "swapped axes",
                                                                 "missing predicate", "stale accumulator"};

// The program with one such defect at a random place; nothing where there is no place for it. Blocks declare what they
// read and write now, so that the verifier does not see the defect by that. Whether the program is still one that
// computes the same is for running it to say.
std::optional<PrimFunc> WithDefect(const PrimFunc& program, Defect defect, Random& random);

}  // namespace hone::testing
