#include "compiler/schedule/analysis/reduction.h"

#include <utility>

#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"

namespace hone {

namespace {

// Whether `e` is the element that the store writes.
bool IsTarget(const Expr& e, const Store& store) {
  const Load* load = e.As<Load>();
  if (load == nullptr || !load->buffer.SameAs(store.buffer)) return false;
  for (size_t d = 0; d < store.indices.size(); ++d) {
    if (!StructuralEqual(load->indices[d], store.indices[d])) return false;
  }
  return true;
}

}  // namespace

std::optional<ReductionUpdate> MatchUpdate(const Store& store) {
  const Binary* binary = store.value.As<Binary>();
  if (binary == nullptr) return std::nullopt;
  const bool associative = binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kMul ||
                           binary->op == BinaryOp::kMin || binary->op == BinaryOp::kMax;
  if (!associative) return std::nullopt;
  // The simplifier has an order of its own for sums of integers, in which x may come last.
  for (const auto& [self, value] : {std::pair(binary->a, binary->b), std::pair(binary->b, binary->a)}) {
    if (IsTarget(self, store) && !LoadsFrom(value, store.buffer)) return ReductionUpdate{binary->op, value};
  }
  return std::nullopt;
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
