#include "compiler/ir/condition.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

// Made of variables and integer arithmetic alone: as cheap to compute as to remember.
bool IsIndex(const Expr& e) {
  if (e.type().is_float()) return false;
  bool index = true;
  ForEachExpr(e, [&](const Expr& part) {
    if (part.As<Load>() != nullptr || part.As<Call>() != nullptr || part.type().is_float()) index = false;
    return index;
  });
  return index;
}

Expr OnExpr(const Expr& e) {
  return RewriteBottomUp(e, [](const Expr& part) -> std::optional<Expr> {
    const LetExpr* let = part.As<LetExpr>();
    if (let == nullptr || !IsIndex(let->value)) return std::nullopt;
    return Substitute(let->body, let->var, let->value);
  });
}

}  // namespace

Stmt InlineLets(const Stmt& body) {
  const auto on_stmt = [](const Stmt& s) { return InlineLets(s); };
  const Let* let = body.As<Let>();
  if (let != nullptr && IsIndex(let->value)) return InlineLets(Substitute(let->body, let->var, OnExpr(let->value)));
  return MapChildren(body, on_stmt, OnExpr);
}

}  // namespace hone
