// Sets of integers with symbolic ends, for the regions of buffers that a nest of loops touches.
//
// EvalSet gives the least interval that contains every value an expression takes where the variables of `domains` take
// all values of theirs; all other variables stay symbols. With oh in [o, o+7) and kh in [0, 3),
// oh*2 + kh lies in [2*o, 2*o + 14].
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"

namespace hone {

// The integers from min to max, both included; an absent end is unbounded.
struct IntervalSet {
  Expr min, max;

  static IntervalSet Everything() { return {}; }
  static IntervalSet Single(const Expr& value) { return {value, value}; }
  static IntervalSet FromRange(const Range& range);  // [min, min + extent)
  bool bounded() const { return static_cast<bool>(min) && static_cast<bool>(max); }
};

using SetMap = std::map<Var, IntervalSet>;
// The domains of loops as sets.
SetMap ToSets(const VarRanges& ranges);

// `known` holds facts about the variables that stay symbols (and may about the others; those are not used as symbols).
// An end that cannot be found is absent. Ends mention no variable of `domains`; sets in `domains` must not mention each
// other.
IntervalSet EvalSet(const Expr& e, const SetMap& domains, Analyzer& known);
// Every dimension of a region: [min of its start, max of its last element].
std::vector<IntervalSet> EvalRegion(std::span<const Range> region, const SetMap& domains, Analyzer& known);

// The least interval around both; comparisons that cannot be decided give a min or max expression.
IntervalSet Union(const IntervalSet& a, const IntervalSet& b, Analyzer& known);
IntervalSet Intersect(const IntervalSet& a, const IntervalSet& b, Analyzer& known);

// Half-open form; nullopt when unbounded. The extent is simplified, and a constant where it is one.
std::optional<Range> ToRange(const IntervalSet& set, Analyzer& known);
// The least constant proven to be at least the number of values in the set, for sizing an allocation: with a min of
// floordiv(7*o, 8) and a max of floordiv(7*o + 6, 8), 2. nullopt when no constant is found.
std::optional<int64_t> MaxExtent(const IntervalSet& set, Analyzer& known);

// Region of one access in all iterations of the loops around it: dimension by dimension [min, min + extent) with the
// extent constant where it can be (MaxExtent when `constant_extent`), clipped to the shape of the buffer; a dimension
// that cannot be bounded is whole.
std::vector<Range> RelaxRegion(const BufferRegion& access, const SetMap& domains, Analyzer& known,
                               bool constant_extent = true);
// The same for the union of several accesses of one buffer; `accesses` is not empty.
std::vector<Range> UnionRegions(std::span<const std::vector<Range>> accesses, const std::vector<Expr>& shape,
                                Analyzer& known, bool constant_extent = true);

}  // namespace hone
