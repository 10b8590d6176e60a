#include "compiler/arith/analyzer.h"

#include "compiler/arith/analyzer_impl.h"
#include "compiler/ir/condition.h"
#include "compiler/support/check.h"

namespace hone {

// ---- What is known

void Analyzer::Impl::SetVar(const Var& var, VarFacts now) {
  Change change{.var = var.id(), .facts = facts.size(), .conditions = conditions.size()};
  const auto [place, is_new] = vars.try_emplace(var.id());
  if (!is_new) change.before = std::move(place->second);
  place->second = std::move(now);
  changes.push_back(std::move(change));
  if (is_new) return;
  for (size_t i = 0; i < facts.size(); ++i) {  // what an earlier range of it said no longer holds
    if (!facts[i].live || facts[i].owner != var.id()) continue;
    facts[i].live = false;
    changes.push_back({.retired = static_cast<int64_t>(i), .facts = facts.size(), .conditions = conditions.size()});
  }
}

void Analyzer::Impl::Bind(const Var& var, const Range& range) {
  if (!IsIndexType(var.type())) return;
  const Sum min = ToSum(range.min), extent = ToSum(range.extent);
  if (extent.is_constant() && extent.constant == 1) {
    SetVar(var, {.bounds = BoundsOf(min), .value = min});
    return;
  }
  Sum last = min;
  AddScaled(last, extent);
  last.constant -= 1;
  last = Recombined(std::move(last));
  SetVar(var, {.bounds = {BoundsOf(min).min, BoundsOf(last).max}});
  const Term self{.coefficient = 1, .atom = var};
  if (!min.is_constant()) {
    Sum below = min;  // min - var <= 0
    AddTerm(below, self, -1);
    AddFact(std::move(below), 0, var.id());
  }
  if (!last.is_constant()) {
    Sum above = Scaled(last, -1);  // var - last <= 0
    AddTerm(above, self);
    AddFact(std::move(above), 0, var.id());
  }
}

void Analyzer::Impl::Bind(const Var& var, const Expr& value) {
  if (!IsIndexType(var.type()) || !IsIndexType(value.type())) {
    SetVar(var, {.replacement = value.type() == var.type() ? value : MakeCast(var.type(), value)});
    return;
  }
  Sum sum = ToSum(value);
  const Bounds bounds = BoundsOf(sum);
  SetVar(var, {.bounds = bounds, .value = std::move(sum)});
}

// Facts of one variable become its bounds; others are kept for UpperFromFacts.
void Analyzer::Impl::AddFact(Sum sum, int64_t limit, uint64_t owner) {
  limit -= sum.constant;
  sum.constant = 0;
  if (sum.is_constant()) return;
  if (sum.terms.size() == 1 && !sum.terms[0].is_split()) {
    if (const VarRef* ref = sum.terms[0].atom.As<VarRef>()) {
      const int64_t c = sum.terms[0].coefficient;
      const auto found = vars.find(ref->var.id());
      VarFacts now = found == vars.end() ? VarFacts{} : found->second;
      if (c > 0) now.bounds.max = std::min(now.bounds.max, FloorDivide(limit, c));
      else now.bounds.min = std::max(now.bounds.min, -FloorDivide(limit, -c));
      Change change{.var = ref->var.id(), .facts = facts.size(), .conditions = conditions.size()};
      if (found != vars.end()) change.before = found->second;
      changes.push_back(std::move(change));
      vars[ref->var.id()] = std::move(now);
      return;
    }
  }
  // Where no bit differs numbers are equal: x ^ y <= 0.
  const Binary* op = limit == 0 && sum.terms.size() == 1 && sum.terms[0].coefficient == 1 && !sum.terms[0].is_split()
                         ? sum.terms[0].atom.As<Binary>()
                         : nullptr;
  if (op != nullptr && op->op == BinaryOp::kBitXor && BoundsOf(sum).min >= 0) {
    const Sum apart = Difference(ToSum(op->a), ToSum(op->b));
    AddFact(apart, 0, owner);
    AddFact(Scaled(apart, -1), 0, owner);
  }
  changes.push_back({.facts = facts.size(), .conditions = conditions.size()});
  facts.push_back({std::move(sum), limit, owner, true});
}

void Analyzer::Impl::Know(const Expr& condition) {
  if (const Binary* op = condition.As<Binary>()) {
    if (op->op == BinaryOp::kAnd) {
      for (const Expr& part : Conjuncts(condition)) Know(part);
      return;
    }
    if (IsComparison(op->op) && IsIndexType(op->a.type())) {
      const Sum difference = Difference(ToSum(op->a), ToSum(op->b));
      switch (op->op) {
        case BinaryOp::kLt: return AddFact(difference, -1);
        case BinaryOp::kLe: return AddFact(difference, 0);
        case BinaryOp::kGt: return AddFact(Scaled(difference, -1), -1);
        case BinaryOp::kGe: return AddFact(Scaled(difference, -1), 0);
        case BinaryOp::kEq:
          AddFact(difference, 0);
          AddFact(Scaled(difference, -1), 0);
          return;
        case BinaryOp::kNe: {  // at an end of what is possible it moves the end
          const Bounds bounds = BoundsOf(difference);
          if (bounds.max == 0) AddFact(difference, -1);
          if (bounds.min == 0) AddFact(Scaled(difference, -1), -1);
          break;
        }
        default: break;
      }
    }
  }
  if (ConstantValue(condition).has_value()) return;
  changes.push_back({.facts = facts.size(), .conditions = conditions.size()});
  conditions.push_back(condition);
}

void Analyzer::Impl::Restore(size_t mark) {
  while (changes.size() > mark) {
    Change& change = changes.back();
    if (change.var != 0) {
      if (change.before) vars[change.var] = *std::move(change.before);
      else vars.erase(change.var);
    }
    if (change.retired >= 0) facts[change.retired].live = true;
    facts.resize(change.facts);
    conditions.resize(change.conditions);
    changes.pop_back();
  }
}

// ---- The public face

Analyzer::Analyzer() : impl_(std::make_unique<Impl>()) {}
Analyzer::Analyzer(const VarRanges& ranges) : Analyzer() {
  for (const auto& [var, range] : ranges) Bind(var, range);
}
Analyzer::~Analyzer() = default;
Analyzer::Analyzer(Analyzer&&) noexcept = default;
Analyzer& Analyzer::operator=(Analyzer&&) noexcept = default;

void Analyzer::Bind(const Var& var, const Range& range) { impl_->Bind(var, range); }
void Analyzer::Bind(const Var& var, const Expr& value) { impl_->Bind(var, value); }
void Analyzer::BindBounds(const Var& var, Bounds bounds) { impl_->SetVar(var, {.bounds = bounds}); }
void Analyzer::Assume(const Expr& condition) { impl_->Assume(condition); }
size_t Analyzer::Save() const { return impl_->Save(); }
void Analyzer::Restore(size_t mark) { impl_->Restore(mark); }

Expr Analyzer::Simplify(const Expr& e) {
  Expr simple = impl_->Simplify(e);
  return CompareExprs(simple, e) == 0 ? e : simple;
}

bool Analyzer::CanProve(const Expr& condition) { return IsConst(impl_->SimplifyBool(condition), 1); }
bool Analyzer::CanProveEqual(const Expr& a, const Expr& b) {
  if (a.SameAs(b)) return true;
  if (!IsIndexType(a.type()) || !IsIndexType(b.type()))
    return CompareExprs(impl_->Simplify(a), impl_->Simplify(b)) == 0;
  const Bounds difference = impl_->BoundsOf(impl_->ToSum(a - b));
  return difference.min == 0 && difference.max == 0;
}
bool Analyzer::CanProveLess(const Expr& a, const Expr& b) {
  return IsIndexType(a.type()) && IsIndexType(b.type()) ? impl_->BoundsOf(impl_->ToSum(a - b)).max < 0
                                                        : CanProve(a < b);
}
bool Analyzer::CanProveLessEqual(const Expr& a, const Expr& b) {
  return IsIndexType(a.type()) && IsIndexType(b.type()) ? impl_->BoundsOf(impl_->ToSum(a - b)).max <= 0
                                                        : CanProve(a <= b);
}

Bounds Analyzer::ConstBounds(const Expr& e) {
  HONE_CHECK(e.type().is_int() || e.type().is_bool()) << "bounds of an expression of type " << ToText(e.type());
  return IsIndexType(e.type()) ? impl_->BoundsOf(impl_->ToSum(e)) : impl_->AtomBounds(impl_->Simplify(e), 2);
}
Analyzer::Residue Analyzer::ResidueOf(const Expr& e) { return impl_->ResidueOf(impl_->ToSum(e)); }
bool Analyzer::IsMultipleOf(const Expr& e, int64_t factor) {
  const Residue residue = ResidueOf(e);
  if (factor == 0) return residue.modulus == 0 && residue.remainder == 0;
  return residue.modulus % factor == 0 && residue.remainder % factor == 0;
}

Expr Simplify(const Expr& e, const VarRanges& ranges) { return Analyzer(ranges).Simplify(e); }

}  // namespace hone
