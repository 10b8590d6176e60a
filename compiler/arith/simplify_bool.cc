// Conditions, and expressions that are neither conditions nor integers.
#include <algorithm>
#include <numeric>

#include "absl/container/inlined_vector.h"
#include "compiler/arith/analyzer_impl.h"
#include "compiler/ir/scalar_arith.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

BinaryOp Opposite(BinaryOp op) {
  switch (op) {
    case BinaryOp::kEq: return BinaryOp::kNe;
    case BinaryOp::kNe: return BinaryOp::kEq;
    case BinaryOp::kLt: return BinaryOp::kGe;
    case BinaryOp::kLe: return BinaryOp::kGt;
    case BinaryOp::kGt: return BinaryOp::kLe;
    default: return BinaryOp::kLt;
  }
}

// left op right for the sum on one side: what is added stays left, what is subtracted goes right.
void Separate(const Sum& sum, Sum& left, Sum& right) {
  for (const Term& term : sum.terms) {
    if (term.coefficient > 0) AddTerm(left, term);
    else AddTerm(right, term, -1);
  }
}

// Made of variables and constants alone, without what holds a value in range.
bool IsPolynomial(const Expr& e) {
  bool is = true;
  ForEachExpr(e, [&](const Expr& part) {
    const Binary* op = part.As<Binary>();
    is = is && (part.As<IntImm>() != nullptr || part.As<VarRef>() != nullptr || part.As<Cast>() != nullptr ||
                (op != nullptr && (op->op == BinaryOp::kAdd || op->op == BinaryOp::kSub || op->op == BinaryOp::kMul)));
    return is;
  });
  return is;
}

// Whether a condition must not change what is evaluated whether it holds or not: a load whose index, or a division
// whose divisor, may be held in range by an operation that is needless where the condition holds.
bool IsGuarded(const Expr& e) {
  bool found = false;
  ForEachExpr(e, [&](const Expr& part) {
    const Binary* op = part.As<Binary>();
    const bool divides = op != nullptr && part.type().is_int() && IsDivision(op->op);
    found = found || part.As<Load>() != nullptr || (divides && !IsPolynomial(op->b));
    return !found;
  });
  return found;
}

bool Mentions(const Expr& e, const std::set<Var>& vars) {
  bool found = false;
  if (vars.empty()) return false;
  ForEachExpr(e, [&](const Expr& part) {
    const VarRef* ref = part.As<VarRef>();
    found = found || (ref != nullptr && vars.contains(ref->var));
    return !found;
  });
  return found;
}

}  // namespace

template <class Compute>
Expr Analyzer::Impl::Once(const Expr& e, const Compute& compute) {
  if (layers.empty()) {
    const Supposing nothing(*this, std::set<Var>());
    return compute();
  }
  if (!layers.back().used || !SharedResults::Applies(e)) return compute();
  const std::set<Var>* unmentioned = nullptr;
  for (size_t i = layers.size(); i-- > 0 && layers[i].used;) {
    if (const Expr* found = layers[i].simplified.Find(e)) return *found;
    if (unmentioned != nullptr && *unmentioned == layers[i].about) continue;
    if (Mentions(e, layers[i].about)) break;
    unmentioned = &layers[i].about;
  }
  Expr simple = compute();
  layers.back().simplified.Keep(e, simple);
  return simple;
}

Expr Analyzer::Impl::Simplify(const Expr& e) {
  if (IsIndexType(e.type())) {
    Expr simple = Materialize(ToSum(e), e.type());
    return CompareExprs(simple, e) == 0 ? e : simple;  // the same handle: what it stands in is then the same too
  }
  if (e.type() == kBool) return SimplifyBool(e);
  if (e.As<FloatImm>() != nullptr || e.As<IntImm>() != nullptr) return e;
  if (const VarRef* ref = e.As<VarRef>()) {
    const auto found = vars.find(ref->var.id());
    return found != vars.end() && found->second.replacement ? found->second.replacement : e;
  }
  return Once(e, [&]() -> Expr {
    if (const Select* choice = e.As<Select>()) return SimplifyChoice(e, *choice);
    if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) return SimplifyChoice(e, *choice);
    if (const LetExpr* let = e.As<LetExpr>()) return SimplifyLet(e, *let);
    return MapChildren(e, [this](const Expr& child) { return Simplify(child); });
  });
}

Expr Analyzer::Impl::SimplifyLet(const Expr& e, const LetExpr& let) {
  const Expr value = Simplify(let.value);
  const bool simple = value.As<IntImm>() != nullptr || value.As<FloatImm>() != nullptr || value.As<VarRef>() != nullptr;
  const Expr body = [&] {
    const Supposing inside(*this, {let.var});
    if (simple) Bind(let.var, value);
    else if (IsIndexType(value.type())) SetVar(let.var, {.bounds = BoundsOf(ToSum(value))});
    return Simplify(let.body);
  }();
  if (simple) return body;
  if (!UsesVar(body, let.var)) return body;
  if (value.SameAs(let.value) && body.SameAs(let.body)) return e;
  return Expr::Make(LetExpr{let.var, value, body}, body.type());
}

template <class Choice>
Expr Analyzer::Impl::SimplifyChoice(const Expr& e, const Choice& choice) {
  const Expr condition = Simplify(choice.condition);
  if (const std::optional<int64_t> value = ConstantValue(condition)) return Simplify(*value ? choice.yes : choice.no);
  const std::set<Var> about = FreeVars(condition);
  // Both sides of a Select run, whatever the condition is.
  const auto side = [&](const Expr& e, bool holds) {
    if (condition.type() != kBool || (std::is_same_v<Choice, Select> && IsGuarded(e)) || !Mentions(e, about)) {
      return Simplify(e);
    }
    const Supposing inside(*this, about);
    Know(holds ? condition : Negated(condition));
    return Simplify(e);
  };
  const Expr yes = side(choice.yes, true), no = side(choice.no, false);
  if (CompareExprs(yes, no) == 0) return yes;
  if (condition.SameAs(choice.condition) && yes.SameAs(choice.yes) && no.SameAs(choice.no)) return e;
  return Expr::Make(Choice{condition, yes, no}, e.type());
}
template Expr Analyzer::Impl::SimplifyChoice(const Expr&, const Select&);
template Expr Analyzer::Impl::SimplifyChoice(const Expr&, const IfThenElseExpr&);

std::optional<bool> Analyzer::Impl::KnownCondition(const Expr& condition) {
  for (const Expr& known : conditions) {
    if (CompareExprs(known, condition) == 0) return true;
    if (const Not* opposite = known.As<Not>(); opposite != nullptr && CompareExprs(opposite->a, condition) == 0)
      return false;
    if (const Not* opposite = condition.As<Not>(); opposite != nullptr && CompareExprs(opposite->a, known) == 0)
      return false;
    const Binary *a = known.As<Binary>(), *b = condition.As<Binary>();
    if (a != nullptr && b != nullptr && a->op == BinaryOp::kNe && b->op == BinaryOp::kEq &&
        CompareExprs(a->a, b->a) == 0 && CompareExprs(a->b, b->b) == 0) {
      return false;
    }
  }
  return std::nullopt;
}

Expr Analyzer::Impl::SimplifyBool(const Expr& e) {
  if (e.As<IntImm>() != nullptr) return e;
  Expr simple = e;
  if (e.type().lanes != 1) return MapChildren(e, [this](const Expr& child) { return Simplify(child); });
  const Binary* op = e.As<Binary>();
  if (op != nullptr && IsLogical(op->op)) return SimplifyJunction(*op);
  if (op != nullptr && IsComparison(op->op)) {
    simple = SimplifyComparison(*op);
  } else if (const Not* negation = e.As<Not>()) {
    return Negated(SimplifyBool(negation->a));
  } else if (const VarRef* ref = e.As<VarRef>()) {
    const auto found = vars.find(ref->var.id());
    if (found != vars.end() && found->second.replacement) simple = found->second.replacement;
  } else if (const Select* choice = e.As<Select>()) {
    simple = SimplifyChoice(e, *choice);
  } else if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) {
    simple = SimplifyChoice(e, *choice);
  } else if (const LetExpr* let = e.As<LetExpr>()) {
    simple = SimplifyLet(e, *let);
  } else {
    simple = MapChildren(e, [this](const Expr& child) { return Simplify(child); });
  }
  if (!conditions.empty() && simple.As<IntImm>() == nullptr) {
    if (const std::optional<bool> known = KnownCondition(simple)) return IntConst(*known, kBool);
  }
  return simple;
}

Expr Analyzer::Impl::SimplifyComparison(const Binary& op) {
  const DType type = op.a.type();
  if (!IsIndexType(type)) {
    const Expr a = Simplify(op.a), b = Simplify(op.b);
    if (type.is_int() && type.is_scalar() && CompareExprs(a, b) == 0) {
      return IntConst(op.op == BinaryOp::kEq || op.op == BinaryOp::kLe || op.op == BinaryOp::kGe, kBool);
    }
    return MakeBinary(op.op, a, b);
  }
  Sum difference = Linear(op.a);
  AddScaled(difference, Linear(op.b), -1);
  difference = Recombined(std::move(difference));
  switch (op.op) {
    case BinaryOp::kLt: difference.constant += 1; return CompareZero(BinaryOp::kLe, std::move(difference), type);
    case BinaryOp::kLe: return CompareZero(BinaryOp::kLe, std::move(difference), type);
    case BinaryOp::kGt:
      difference = Scaled(difference, -1);
      difference.constant += 1;
      return CompareZero(BinaryOp::kLe, std::move(difference), type);
    case BinaryOp::kGe: return CompareZero(BinaryOp::kLe, Scaled(difference, -1), type);
    default: return CompareZero(op.op, std::move(difference), type);
  }
}

Expr Analyzer::Impl::CompareZero(BinaryOp op, Sum d, DType type) {
  return op == BinaryOp::kLe ? AtMostZero(std::move(d), type) : EqualsZero(op, std::move(d), type);
}

Expr Analyzer::Impl::EqualsZero(BinaryOp op, Sum d, DType type) {
  const Bounds bounds = BoundsOf(d);
  const int64_t gcd = CoefficientGcd(d);
  const bool equal = op == BinaryOp::kEq;
  if (bounds.min > 0 || bounds.max < 0) return IntConst(!equal, kBool);
  if (bounds.min == 0 && bounds.max == 0) return IntConst(equal, kBool);
  if (gcd == 0 || d.constant % gcd != 0) return IntConst(!equal, kBool);
  if (const Residue residue = ResidueOf(d); residue.modulus > 1 && residue.remainder != 0)
    return IntConst(!equal, kBool);
  d = DividedExactly(d, d.terms[0].coefficient < 0 ? -gcd : gcd);
  Sum left, right;
  Separate(d, left, right);
  if (left.is_constant()) {  // numbers stand on the right
    std::swap(left, right);
    right.constant = d.constant;
  } else {
    right.constant = -d.constant;
  }
  if (right.constant < 0 && !right.is_constant()) {
    left.constant = -right.constant;
    right.constant = 0;
  }
  return Expr::Make(Binary{op, Materialize(left, type), Materialize(right, type)}, kBool);
}

Expr Analyzer::Impl::AtMostZero(Sum d, DType type) {
  const Bounds bounds = BoundsOf(d);
  if (bounds.max <= 0) return IntConst(1, kBool);
  if (bounds.min > 0) return IntConst(0, kBool);
  // terms <= k, divided by the common divisor.
  const int64_t gcd = CoefficientGcd(d);
  const int64_t k = FloorDivide(-d.constant, gcd);
  d.constant = 0;
  d = DividedExactly(d, gcd);
  if (std::optional<Sum> simpler = WithoutSmallTerms(d, k)) return AtMostZero(*std::move(simpler), type);
  if (std::optional<Sum> source = WithoutQuotient(d, k)) return AtMostZero(*std::move(source), type);
  return PrintAtMost(d, k, type);
}

// g*L + small <= k is L <= q when small moves the bound by less than one step of L: L - q, which is to be at most 0.
std::optional<Sum> Analyzer::Impl::WithoutSmallTerms(const Sum& d, int64_t k) {
  absl::InlinedVector<int64_t, 4> steps;
  for (const Term& term : d.terms) steps.push_back(std::abs(term.coefficient));
  std::sort(steps.begin(), steps.end(), std::greater<>());
  for (const int64_t g : steps) {
    if (g <= 1) break;
    Sum large, small;
    for (const Term& term : d.terms) (term.coefficient % g == 0 ? large : small).terms.push_back(term);
    if (small.terms.empty()) continue;
    const Bounds in = BoundsOf(small);
    if (!in.bounded()) continue;
    const int64_t q = SatFloorDiv(SatAdd(k, -in.min), g);
    if (q != SatFloorDiv(SatAdd(k, -in.max), g)) continue;
    large = DividedExactly(large, g);
    large.constant = -q;
    return large;
  }
  return std::nullopt;
}

// x div l <= k is x <= k*l + l - 1, and x div l >= k is x >= k*l. Alone only: in z + x div l <= k the quotient is often
// what an iteration variable is made of, and iter_map.cc looks for it.
std::optional<Sum> Analyzer::Impl::WithoutQuotient(const Sum& d, int64_t k) {
  if (d.terms.size() == 1 && d.terms[0].is_split() && d.terms[0].upper == 0) {
    const Term& piece = d.terms[0];
    const bool below = piece.coefficient > 0;
    const int64_t limit = SatAdd(SatMul(k, piece.lower), below ? piece.lower - 1 : 0);
    if (!IsInfinite(limit)) {
      Sum source = Scaled(piece.source->sum, below ? 1 : -1);
      source.constant -= limit;
      return Recombined(std::move(source));
    }
  }
  return std::nullopt;
}

// d <= k with the constant where it is positive: left < right + 1 + k, or left + (-k) <= right.
Expr Analyzer::Impl::PrintAtMost(const Sum& d, int64_t k, DType type) {
  Sum left, right;
  Separate(d, left, right);
  BinaryOp printed = BinaryOp::kLe;
  if (right.terms.empty() || k == -1) {
    printed = BinaryOp::kLt;
    right.constant = k + 1;
  } else if (left.terms.empty() || k < 0) {
    left.constant = -k;
  } else {
    right.constant = k;
  }
  return Expr::Make(Binary{printed, Materialize(left, type), Materialize(right, type)}, kBool);
}

Expr Analyzer::Impl::Negated(const Expr& condition) {
  if (const Binary* op = condition.As<Binary>()) {
    if (op->op == BinaryOp::kAnd || op->op == BinaryOp::kOr) {
      return MakeBinary(op->op == BinaryOp::kAnd ? BinaryOp::kOr : BinaryOp::kAnd, Negated(op->a), Negated(op->b));
    }
    // Not for floats: with a NaN both a < b and a >= b are false.
    if (IsComparison(op->op) && !op->a.type().is_float()) {
      return SimplifyComparison(Binary{Opposite(op->op), op->a, op->b});
    }
    if (op->op == BinaryOp::kEq || op->op == BinaryOp::kNe) return MakeBinary(Opposite(op->op), op->a, op->b);
  }
  return MakeNot(condition);
}

// and / or of several conditions: each is simplified knowing that the others hold (for or: do not). All of them are
// evaluated whether the others hold or not, so that a guarded one is simplified without the others.
Expr Analyzer::Impl::SimplifyJunction(const Binary& junction) {
  const bool all = junction.op == BinaryOp::kAnd;
  absl::InlinedVector<Expr, 4> parts;
  const auto flatten = [&](const Expr& e, const auto& self) -> void {
    const Binary* op = e.As<Binary>();
    if (op != nullptr && op->op == junction.op) {
      self(op->a, self);
      self(op->b, self);
    } else {
      parts.push_back(e);
    }
  };
  flatten(junction.a, flatten);
  flatten(junction.b, flatten);
  const auto suppose = [&](const Expr& part) { Know(all ? part : Negated(part)); };
  const Supposing inside(*this);
  const size_t mark = Save();
  absl::InlinedVector<Expr, 4> kept;
  for (const Expr& part : parts) {
    const bool guarded = IsGuarded(part);
    if (guarded) Restore(mark);
    const Expr simple = SimplifyBool(part);
    if (guarded) std::for_each(kept.begin(), kept.end(), suppose);
    if (const std::optional<int64_t> value = ConstantValue(simple)) {
      if ((*value != 0) == all) continue;
      Restore(mark);
      return simple;
    }
    kept.push_back(simple);
    suppose(simple);
  }
  Restore(mark);
  if (kept.size() > 1 && kept.size() <= 8) {  // and what later ones say of earlier ones
    bool changed = false;                     // then they may say something of the last one in turn
    for (size_t i = 0; i + (changed ? 0 : 1) < kept.size() && kept.size() > 1;) {
      for (size_t j = 0; j < kept.size(); ++j) {
        if (j != i) suppose(kept[j]);
      }
      const Expr simple = SimplifyBool(kept[i]);
      Restore(mark);
      if (const std::optional<int64_t> value = ConstantValue(simple)) {
        if ((*value != 0) != all) return simple;
        kept.erase(kept.begin() + i);
        continue;
      }
      if (!IsGuarded(kept[i]) && CompareExprs(simple, kept[i]) != 0) {
        kept[i] = simple;
        changed = true;
      }
      ++i;
    }
  }
  Expr result = IntConst(all, kBool);
  for (const Expr& part : kept) result = MakeBinary(junction.op, result, part);
  return result;
}

}  // namespace hone
