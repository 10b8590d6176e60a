// Arithmetic on constants as the target machine does it: the one definition for folding and for the interpreter.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/expr.h"

namespace hone {

// Rounds towards minus infinity; b is not 0. The remainder has the sign of b. INT64_MIN / -1 wraps.
inline int64_t FloorDivide(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}
inline int64_t FloorModulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;
}

// An integer as the type holds it: two's complement, wrapped to its width. A uint64 is kept by its bits; a bool is 0
// or 1.
int64_t WrapToType(int64_t value, DType type);
// A floating-point number as the type holds it, rounded to nearest even; beyond the largest it is infinite, or NaN
// where the type has no infinity.
double RoundToType(double value, DType type);

// `op` on two scalars of the integer (or bool) type; comparisons give 0 or 1. nullopt for a division by zero or a shift
// by a negative amount or by the width or more.
std::optional<int64_t> EvalInt(BinaryOp op, int64_t a, int64_t b, DType type);
// `op` on two floats, rounded to the type. nullopt for an operation floats do not have. Not for comparisons.
std::optional<double> EvalFloat(BinaryOp op, double a, double b, DType type);
// The comparisons of floats, as IEEE 754 has them; nullopt when op is not one.
std::optional<bool> CompareFloat(BinaryOp op, double a, double b);

inline bool IsComparison(BinaryOp op) { return op >= BinaryOp::kEq && op <= BinaryOp::kGe; }
inline bool IsDivision(BinaryOp op) {
  return op == BinaryOp::kDiv || op == BinaryOp::kMod || op == BinaryOp::kFloorDiv || op == BinaryOp::kFloorMod;
}
inline bool IsLogical(BinaryOp op) { return op == BinaryOp::kAnd || op == BinaryOp::kOr; }
// The type of `op` on operands of `operand` type.
inline DType ResultType(BinaryOp op, DType operand) { return IsComparison(op) ? DType::Bool(operand.lanes) : operand; }

}  // namespace hone
