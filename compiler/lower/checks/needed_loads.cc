#include "compiler/lower/checks/needed_loads.h"

#include "compiler/ir/visit.h"

namespace hone {

bool NeedsLoad(const Expr& value, const std::map<Var, Expr>& lets, const std::function<bool(const Load&)>& is) {
  bool needs = false;
  ForEachExpr(value, [&](const Expr& part) {
    if (const Load* load = part.As<Load>()) needs |= !load->mask && is(*load);
    if (const VarRef* ref = part.As<VarRef>()) {
      const auto let = lets.find(ref->var);
      needs |= let != lets.end() && NeedsLoad(let->second, lets, is);
    }
    const Binary* op = part.As<Binary>();
    if (op != nullptr && (op->op == BinaryOp::kAnd || op->op == BinaryOp::kOr)) {
      needs |= NeedsLoad(op->a, lets, is);
      return false;
    }
    if (const Select* choice = part.As<Select>()) {
      needs |= NeedsLoad(choice->condition, lets, is);
      return false;
    }
    if (const IfThenElseExpr* choice = part.As<IfThenElseExpr>()) {
      needs |= NeedsLoad(choice->condition, lets, is);
      return false;
    }
    return !needs;
  });
  return needs;
}

}  // namespace hone
