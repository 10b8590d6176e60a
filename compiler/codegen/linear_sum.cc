#include "compiler/codegen/linear_sum.h"

#include "compiler/ir/structural.h"

namespace hone {

void LinearSum::AddTerm(const Expr& atom, int64_t coefficient) {
  for (Term& term : terms) {
    const VarRef *a = term.atom.As<VarRef>(), *b = atom.As<VarRef>();
    const bool same = a != nullptr && b != nullptr ? a->var == b->var
                                                   : a == nullptr && b == nullptr &&
                                                         (term.atom.SameAs(atom) || StructuralEqual(term.atom, atom));
    if (same) {
      term.coefficient += coefficient;
      return;
    }
  }
  terms.push_back({atom, coefficient});
}

void LinearSum::Add(const Expr& e, int64_t scale) {
  if (const std::optional<int64_t> value = ConstantValue(e)) {
    constant += *value * scale;
    return;
  }
  if (const Binary* binary = e.As<Binary>()) {
    if (binary->op == BinaryOp::kAdd || binary->op == BinaryOp::kSub) {
      Add(binary->a, scale);
      Add(binary->b, binary->op == BinaryOp::kAdd ? scale : -scale);
      return;
    }
    if (binary->op == BinaryOp::kMul) {
      if (const std::optional<int64_t> b = ConstantValue(binary->b)) return Add(binary->a, scale * *b);
      if (const std::optional<int64_t> a = ConstantValue(binary->a)) return Add(binary->b, scale * *a);
    }
  }
  if (const Cast* cast = e.As<Cast>()) {
    const auto index_type = [](DType t) { return t == kInt32 || t == kInt64; };
    if (index_type(e.type()) && index_type(cast->a.type()) && e.type().bits >= cast->a.type().bits)
      return Add(cast->a, scale);
  }
  AddTerm(e, scale);
}

}  // namespace hone
