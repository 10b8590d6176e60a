#include "compiler/ir/condition.h"

#include "compiler/ir/visit.h"

namespace hone {
namespace {

void AppendConjuncts(const Expr& condition, std::vector<Expr>& parts) {
  const Binary* binary = condition.As<Binary>();
  if (binary != nullptr && binary->op == BinaryOp::kAnd) {
    AppendConjuncts(binary->a, parts);
    AppendConjuncts(binary->b, parts);
  } else if (!IsConst(condition, 1)) {
    parts.push_back(condition);
  }
}

}  // namespace

std::vector<Expr> Conjuncts(const Expr& condition) {
  std::vector<Expr> parts;
  if (condition) AppendConjuncts(condition, parts);
  return parts;
}

Expr Conjunction(std::span<const Expr> parts) {
  Expr condition = True();
  for (const Expr& part : parts) condition = And(condition, part);
  return condition;
}

Expr LastingPart(const Expr& condition) {
  std::vector<Expr> parts = Conjuncts(condition);
  std::erase_if(parts, [](const Expr& part) { return !IsPure(part); });
  return Conjunction(parts);
}

std::optional<Expr> AtMostZero(const Expr& comparison) {
  const Binary* c = comparison.As<Binary>();
  if (c == nullptr || c->a.type().code != TypeCode::kInt || !c->a.type().is_scalar()) return std::nullopt;
  switch (c->op) {
    case BinaryOp::kLt: return c->a - c->b + 1;
    case BinaryOp::kLe: return c->a - c->b;
    case BinaryOp::kGt: return c->b - c->a + 1;
    case BinaryOp::kGe: return c->b - c->a;
    default: return std::nullopt;
  }
}

bool IsPure(const Expr& e) {
  bool pure = true;
  ForEachExpr(e, [&](const Expr& part) {
    if (part.As<Load>() != nullptr) pure = false;
    return pure;
  });
  return pure;
}

}  // namespace hone
