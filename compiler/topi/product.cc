#include "compiler/topi/product.h"

namespace hone::topi {

DType SumType(DType type) {
  if (type.is_int() && type.bits <= 16) return kInt32;
  return type.is_float() && type.bits == 16 ? kFloat32 : type;
}

Expr Product(const Expr& a, const Expr& b) {
  const DType sum = SumType(a.type());
  return sum == a.type() ? a * b : MakeCast(sum, a) * MakeCast(sum, b);
}

}  // namespace hone::topi
