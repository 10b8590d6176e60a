// The mathematical functions a Call may name, a record each: the value in double, how errors go through it, and the
// expression that code is made of. A new one that is made of others is written in math_functions.cc alone: the table of
// intrinsics, by which programs are read and verified, the interpreter, the oracle and the code generators, those for
// GPUs among them, have it from there. One whose `expand` is null has a row in codegen/vector_math.cc too.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "compiler/ir/expr.h"

namespace hone {

// Where a function carries errors from its arguments to its value. Expressions are float64 scalars.
struct ErrorPoint {
  std::span<const Expr> args;
  std::span<const Expr> errors;           // of the arguments, absolute; absent where one is exact
  Expr value, size;                       // of the function, and its magnitude
  double most;                            // true errors are at most this times those stated
  double roundoff;                        // of the type, u
  std::function<Expr(const Expr&)> bind;  // gives an expression a name, so that it is computed once
};

// How far a right kernel's value may be from the exact one (compiler/oracle/oracle.h has the theory).
struct FunctionErrors {
  // The absolute error that those of the arguments make; null or absent: none.
  Expr (*carried)(const ErrorPoint&) = nullptr;
  // What the function adds itself, in units of u: relative to its value, and absolute.
  double relative = 4, absolute = 0;
  bool may_flush = false;     // tiny values may become 0
  bool may_overflow = false;  // a value beyond the largest of the type may be infinite or not
};

// What a language for GPUs calls the function; empty where it has none that is within the function's errors.
struct DeviceNames {
  std::string_view cuda;  // of doubles; that of floats has an f behind it
  std::string_view opencl;
};

struct MathFunction {
  std::string_view name;
  // Its value before rounding, of one argument or of two.
  double (*of_one)(double) = nullptr;
  double (*of_two)(double, double) = nullptr;
  FunctionErrors errors = {};
  // What it is made of: other functions and arithmetic, in the type of x, which is float32 or float64, scalar or
  // vector. Null where code generators have code of their own. `in_double`: float32 has not the digits for it.
  Expr (*expand)(const Expr& x) = nullptr;
  bool in_double = false;
  // Where the name is empty, code for GPUs is made of the expansion too.
  DeviceNames device = {};
};
std::span<const MathFunction> MathFunctions();
const MathFunction* FindMathFunction(std::string_view name);  // nullptr when unknown

// What the call is made of, its argument computed once; nullopt where code generators have code of their own. With
// `precise` in double.
std::optional<Expr> ExpandMath(const Call& call, bool precise);

}  // namespace hone
