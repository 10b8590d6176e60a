// The parts of buffers that blocks touch in one iteration of a loop: what compute_at and its like are made of.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "compiler/arith/interval_set.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/program_index.h"

namespace hone {

// The regions of `buffer` that one iteration of `outer` (a loop or block node) makes `block` read or write: its
// declared regions with its bindings put in, in all iterations of the loops strictly between `outer` and it. One entry
// for each declared region.
std::vector<std::vector<IntervalSet>> TouchedWithin(const ProgramIndex& index, int outer, int block,
                                                    const Buffer& buffer, bool writes, Analyzer& known);

// Their union, dimension by dimension.
std::vector<IntervalSet> UnionOf(std::span<const std::vector<IntervalSet>> regions, Analyzer& known);

// Returns whether distinct iterations of the loops of `domains` give distinct `values`: the map is injective under
// `predicate`. It is not when a loop is used by none of the values (the block runs again in its every iteration) or
// when parts overlap, as those of a producer computed with its halo do.
bool IsInjective(std::span<const Expr> values, const VarRanges& domains, const Expr& predicate);

// OK when the ranges, in all iterations of the loops of `domains`, touch every element of the box around them; refused
// says why not. Fusions of such a loop with one that is not among them, or an index such as (v // 3, v % 3), can leave
// holes.
absl::Status FillsBox(std::span<const Range> region, const VarRanges& domains);

// OK when one iteration of `outer` writes all of the buffer that TouchedWithin says, as far as it lies inside, and the
// reductions of the block come to an end there. Refused says which block and why, in the words after "PRIMITIVE(..): ".
// With `outside`, it need only do so where *outside holds: conditions of the block that do not change in one iteration
// are added to it. Without, such a block is refused too.
absl::Status CheckExact(const ProgramIndex& index, int outer, int producer, const Buffer& buffer,
                        Expr* outside = nullptr);

// Returns whether `inner` is proven to lie in `outer` where both lie inside the buffer.
bool Covers(const std::vector<IntervalSet>& outer, const std::vector<IntervalSet>& inner, const Buffer& buffer,
            Analyzer& known);

// Returns whether `consumer` reads, in one iteration of `outer`, only what `producer` wrote in that iteration.
bool CoveredWithin(const ProgramIndex& index, int outer, int producer, int consumer, const Buffer& buffer);

// A block's iteration variables -> the values bound to them. The realization must outlive the map.
VarMap BindingsOf(const BlockRealize& realize);

// Everything the loops around a node say.
Analyzer KnownAround(const ProgramIndex& index, int node);

// Solves for an iteration variable: the values of v for which [scale*v + base, scale*v + base + extent) meets the set.
//   nullopt: the expression is not of this form in exactly one of the variables.
struct AffineIndex {
  int iter = -1;  // which iteration variable; -1 when the index mentions none
  int64_t scale = 1;
  Expr base;  // mentions no iteration variable
  int64_t extent = 1;
};
std::optional<AffineIndex> AffineIn(const Range& index, std::span<const IterVar> iters);

}  // namespace hone
