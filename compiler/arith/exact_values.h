// The set of values that an integer expression takes while loops of constant ranges run, exactly: no value is left out
// and none is added. interval_set.h gives the least interval around such a set, with symbolic ends; whoever has to name
// a value that is missing, or one that is certainly taken, needs the set itself.
//
//   io in [0, 3), ii in [0, 4), where io * 4 + ii < 10:   ii * 3 is in {0, 3, 6, 9}, io * 4 + ii in [0, 9]
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compiler/ir/expr.h"

namespace hone {

// Integers as intervals, both ends included.
class ValueSet {
 public:
  ValueSet() = default;
  // In any order; they may overlap. None has an end below its start.
  explicit ValueSet(std::vector<std::pair<int64_t, int64_t>> intervals);

  // Ascending, with a gap between any two.
  const std::vector<std::pair<int64_t, int64_t>>& intervals() const { return intervals_; }
  bool empty() const { return intervals_.empty(); }
  bool Contains(int64_t low, int64_t high) const;  // every integer from low to high
  ValueSet Within(int64_t low, int64_t high) const;
  void Add(const ValueSet& other);
  // The least value that is not in `other`; nullopt when there is none.
  std::optional<int64_t> FirstOutside(const ValueSet& other) const;

 private:
  std::vector<std::pair<int64_t, int64_t>> intervals_;
};

// [min, min + extent), whatever the other loops do.
struct ConstantLoop {
  Var var;
  int64_t min = 0, extent = 0;
};

// Whether the expression is one whose values can be enumerated: scalar integer (or bool) arithmetic on these loops'
// variables, which reads no memory.
bool IsOverLoops(const Expr& e, std::span<const ConstantLoop> loops);

// The values that `e` takes in the iterations in which all conditions hold. `e` and the conditions are over the loops.
//
// Loops that no term of `e` and no condition ties to each other are enumerated apart, and their sets added; so the time
// is that of the largest group that is tied, not of all iterations. `budget` is lowered by the steps taken; nullopt
// when it is used up, and where an operation is undefined (a division by 0).
std::optional<ValueSet> ValuesTaken(const Expr& e, std::span<const ConstantLoop> loops,
                                    std::span<const Expr> conditions, int64_t& budget);

}  // namespace hone
