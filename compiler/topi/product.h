// One term of a sum of products.
#pragma once

#include "compiler/ir/expr.h"

namespace hone::topi {

// The type in which products of elements of a type are summed: int32 of integers of 8 and 16 bits, float32 of bfloat16
// and float16, else the type itself.
DType SumType(DType type);
// a * b in that type. Both have it, whatever their signs.
Expr Product(const Expr& a, const Expr& b);

}  // namespace hone::topi
