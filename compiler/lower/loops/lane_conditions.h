// What decides between the lanes of a vector, for targets that load and store vectors whole or not at all.
#pragma once

#include <optional>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"

namespace hone {

// A vectorised loop without the conditions that differ between its iterations, and when it may run instead of the loop:
//   for i in vectorized(4): if o*4 + i < n: A[o*4 + i] = x
//   =>  when o*4 + 3 < n:  for i in vectorized(4): A[o*4 + i] = x
struct WholeLanes {
  Expr when;
  For loop;
};
// The extent of the loop is a constant. nullopt when none of its conditions can be taken out: they are affine in its
// variable and pure. Definitions in the new loop are those of the old one.
std::optional<WholeLanes> TakeOutConditions(const For& loop, Analyzer& known);

// Bits of the narrowest elements in memory that a statement loads or stores under a mask; nullopt when there are none.
// Registers do not count: they are read and written whole.
std::optional<int> NarrowestMasked(const Stmt& vectors);

}  // namespace hone
