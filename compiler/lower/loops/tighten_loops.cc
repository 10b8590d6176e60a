#include <algorithm>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"

namespace hone {
namespace {

// The loop with its range narrowed to where `part` holds; false when the part does not say that.
bool Narrow(For& loop, const Expr& part) {
  const std::optional<Expr> value = AtMostZero(part);  // coefficient * var + base <= 0
  if (!value.has_value()) return false;
  const std::optional<LinearForm> form = DetectLinear(*value, {&loop.var, 1});
  if (!form.has_value() || form->coefficients[0] == 0) return false;
  const int64_t a = form->coefficients[0];
  const Expr end = loop.min + loop.extent;
  if (a > 0) {
    loop.extent = Max(Min(end, FloorDiv(0 - form->base, Expr(a)) + 1) - loop.min, 0);
  } else {
    const Expr first = Max(loop.min, FloorDiv(form->base + (-a - 1), Expr(-a)));
    loop.extent = Max(end - first, 0);
    loop.min = first;
  }
  return true;
}

}  // namespace

Stmt TightenLoops(const Stmt& body) {
  std::vector<Var> lanes;
  ForEachStmt(body, [&](const Stmt& s) {
    if (const For* loop = s.As<For>(); loop != nullptr && loop->kind == ForKind::kVectorized)
      lanes.push_back(loop->var);
    return true;
  });
  const auto differs_in_lanes = [&](const Expr& part) {
    return std::ranges::any_of(lanes, [&](const Var& lane) { return UsesVar(part, lane); });
  };
  const Stmt tightened = RewriteBottomUp(body, [&](const Stmt& s) -> std::optional<Stmt> {
    const For* found = s.As<For>();
    const IfThen* branch = found == nullptr ? nullptr : found->body.As<IfThen>();
    if (branch == nullptr || branch->no) return std::nullopt;
    For loop = *found;
    std::vector<Expr> outside, inside;
    for (const Expr& part : Conjuncts(branch->condition)) {
      if (!IsPure(part)) {
        inside.push_back(part);
      } else if (!UsesVar(part, loop.var)) {
        outside.push_back(part);
      } else if (loop.kind != ForKind::kSerial || differs_in_lanes(part) || !Narrow(loop, part)) {
        inside.push_back(part);
      }
    }
    loop.body = inside.empty() ? branch->yes : Stmt::Make(IfThen{Conjunction(inside), branch->yes, Stmt()});
    const Stmt narrowed = Stmt::Make(std::move(loop));
    return outside.empty() ? narrowed : Stmt::Make(IfThen{Conjunction(outside), narrowed, Stmt()});
  });
  return tightened.SameAs(body) ? body : Simplify(tightened);
}

}  // namespace hone
