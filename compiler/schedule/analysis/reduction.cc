#include "compiler/schedule/analysis/reduction.h"

#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"

namespace hone {

std::optional<ReductionUpdate> MatchUpdate(const Store& store) {
  const Binary* binary = store.value.As<Binary>();
  if (binary == nullptr) return std::nullopt;
  const bool associative = binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kMul ||
                           binary->op == BinaryOp::kMin || binary->op == BinaryOp::kMax;
  const Load* self = binary->a.As<Load>();
  if (!associative || self == nullptr || !self->buffer.SameAs(store.buffer)) return std::nullopt;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (!StructuralEqual(self->indices[d], store.indices[d])) return std::nullopt;
  }
  if (LoadsFrom(binary->b, store.buffer)) return std::nullopt;
  return ReductionUpdate{binary->op, binary->b};
}

bool IsMadeOf(const BlockRealize& realize, const Var& loop, bool reduce) {
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const bool reduces = realize.block.iters[i].kind != IterKind::kSpatial;
    if (reduces == reduce && UsesVar(realize.values[i], loop)) return true;
  }
  return false;
}

bool IsNumber(const Expr& e, int64_t value) {
  const FloatImm* real = e.As<FloatImm>();
  return real == nullptr ? IsConst(e, value) : real->value == static_cast<double>(value);
}

}  // namespace hone
