// The oracle of a workload: a companion function that computes, for every output, the value in double and how large the
// error of a right kernel may be.
//
// The bound belongs to the task, not to the candidate. It comes from running error analysis: every floating value v is
// carried with an error e, in absolute terms; an operation that rounds to a type with unit roundoff u adds u|v|, and
// errors of operands are carried through by the operation's derivative. A sum over n terms may be taken in any order,
// in vectors of partial sums and with fused multiply-add, so each of its terms adds k(n) u |term| where
//   k(n) = 4 sqrt(n), at most n     rounding errors of a sum act like a random walk, whose standard deviation is below
//                                   sqrt(n)/3 u sum|terms| in any order (Higham, Accuracy and Stability of Numerical
//                                   Algorithms, 2nd ed., sections 4.2 and 4.5)
//   k(n) = 2 sqrt(n) (1 + 4 n u)    at most n, for 16-bit accumulators, whose sums stagnate as n nears 1/u
// Library functions (exp, erf, tanh ...) add 4u. A comparison of values closer than their errors is uncertain: what is
// selected by it may be either side. Integers have error 0 and must be exact, unless they were made from uncertain
// values.
//
// The bound is then  constant(level) * eps(dtype) * scale + constant(level) * smallest normal number  with eps = 2 u,
// constants 1 (strict) and 4 (default). A dropped element of a float32 sum of n terms changes the value by about
// sum|terms| / n and is found in most elements up to n of about 10,000 (strict) and 4,000 (default).
//
// What is surely infinite or no number in double must be so in a kernel too: only where an error reaches a zero, a sign
// or the largest number that the type has may either stand there.
//
// Winograd's algorithm, which levels other than strict allow for 3x3 windows, rounds sums of an input tile that may be
// larger than the terms of an element: there the error of such a window is as much larger, and so are the errors of
// what reads it (minimal_filtering.h). At strict nothing changes.
//
// Limits: an IfThen statement or a loop bound that depends on floating values is taken as decided by the double value;
// an element whose error may be unlimited (division by a number not told from 0, overflow of the declared type) is
// accepted whatever it is; sums in 16-bit types have wide bounds; an argmax between near-equal values accepts the whole
// range between the two indices.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/numeric.h"
#include "compiler/ir/stmt.h"

namespace hone {

// The inputs of `workload` with their types, then for each of its outputs two float64 outputs of its shape: the value,
// and the error scale in units of eps(dtype of the output) (for integer and bool outputs: in units of 1, and 0 where
// they must be exact). Where levels other than strict have larger scales, one more for each output follows behind all
// of these: the scale at those levels. It is an ordinary unscheduled function: compiled plainly by a worker,
// interpreted in tests. Unimplemented for programs with tile operations or vectors: the oracle is made from the
// workload, not from a schedule.
absl::StatusOr<PrimFunc> MakeOracle(const PrimFunc& workload);

// Unit distance eps = 2u of a floating type (2^-23 for float32), 1 for integers and bool.
double Epsilon(DType dtype);
double LevelConstant(NumericLevel level);
// |value - oracle_value| as a multiple of the bound: at most 1 is right. 0 for equal values, equal infinities and two
// NaNs; infinity when only one of the two is NaN, or an exact value differs.
double ErrorOverBound(double value, double oracle_value, double scale, DType dtype, NumericLevel level);
bool WithinBound(double value, double oracle_value, double scale, DType dtype, NumericLevel level);

}  // namespace hone
