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

}  // namespace hone
