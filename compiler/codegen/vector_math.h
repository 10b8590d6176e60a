// Mathematical functions as LLVM instructions, for scalars and vectors of float and double alike. A kernel calls no
// library, so each function is written out: range reduction and a polynomial.
//
// Accuracy against the exact value, over the whole range (tests/bench/vector_math_bench.cc measures it on every float):
// float at most 4 units in the last place (exp and exp2: 2), and with `precise` at most 1; double a relative error
// below 1e-13 (pow: 4e-13; sin, cos, tan for arguments below 1e6). Denormals, infinities and NaN are treated as C's
// functions treat them.
#pragma once

#include <span>
#include <string_view>

#include "llvm/IR/IRBuilder.h"

namespace hone {

struct MathOptions {
  bool precise = false;  // to the last place, where a function of floats has a way to that
  bool scalef = false;   // the target multiplies vectors by powers of two (VSCALEF of AVX-512 with VL); the same values
};

// The value of a function of ir/intrinsics.h that is not made of others, on arguments that are all float or double,
// scalars or vectors of one length.
llvm::Value* EmitMath(llvm::IRBuilder<>& builder, std::string_view name, std::span<llvm::Value* const> args,
                      const MathOptions& options = {});

}  // namespace hone
