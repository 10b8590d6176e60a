// Evaluates an integer or bool expression for given values of its variables: what the property tests compare with.
#pragma once

#include <cstdint>
#include <map>

#include "compiler/ir/expr.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/support/check.h"

namespace hone {

using Values = std::map<Var, int64_t>;

inline int64_t Eval(const Expr& e, const Values& values) {
  if (const IntImm* imm = e.As<IntImm>()) return imm->value;
  if (const VarRef* ref = e.As<VarRef>()) return values.at(ref->var);
  if (const Binary* op = e.As<Binary>()) {
    return EvalInt(op->op, Eval(op->a, values), Eval(op->b, values), op->a.type()).value();
  }
  if (const Not* op = e.As<Not>()) return Eval(op->a, values) == 0;
  if (const Cast* cast = e.As<Cast>()) return WrapToType(Eval(cast->a, values), e.type());
  if (const Select* c = e.As<Select>()) return Eval(Eval(c->condition, values) != 0 ? c->yes : c->no, values);
  if (const IfThenElseExpr* c = e.As<IfThenElseExpr>())
    return Eval(Eval(c->condition, values) != 0 ? c->yes : c->no, values);
  if (const LetExpr* let = e.As<LetExpr>()) {
    Values inner = values;
    inner[let->var] = Eval(let->value, values);
    return Eval(let->body, inner);
  }
  HONE_UNREACHABLE() << "no integer";
  return 0;
}

}  // namespace hone
