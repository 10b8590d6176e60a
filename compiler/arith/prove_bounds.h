// A proof that a program stays inside its buffers, whatever its inputs hold.
#pragma once

#include <map>

#include "absl/status/status.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"

namespace hone {

// Proves of every load, store, tile operation and matched region of `func` that each index lies in its dimension, from
// the ranges of loops, the predicates of blocks, the conditions around and the masks of vectors. Symbolic sizes are
// within their ranges. `values` bounds the elements of integer inputs (an index into another tensor); of others any
// value of their type is thought possible, and indices read from them need a condition in front.
//
// FailedPrecondition names the first access for which no proof is found, with what is known of its index:
//   "block B: A[vi + 1, vj]: index 0, `vi + 1`, is not proven to stay below 128: it lies in [1, 128]"
// The access may be right all the same: the proof is by interval and affine arithmetic.
absl::Status ProveInBounds(const PrimFunc& func, const std::map<Buffer, Bounds>& values = {});

}  // namespace hone
