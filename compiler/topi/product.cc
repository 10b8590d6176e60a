#include "compiler/topi/product.h"

namespace hone::topi {

DType SumType(DType type) { return type.is_int() && type.bits == 8 ? kInt32 : type; }

Expr Product(const Expr& a, const Expr& b) {
  const DType sum = SumType(a.type());
  return sum == a.type() ? a * b : MakeCast(sum, a) * MakeCast(sum, b);
}

}  // namespace hone::topi
