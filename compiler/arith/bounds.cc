// Constant bounds and residues of sums.
#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/arith/analyzer_impl.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

Bounds TypeBounds(DType t) {
  if (t.is_bool()) return {0, 1};
  if (t.is_int() && t.bits < 32) {
    if (t.code == TypeCode::kUInt) return {0, (int64_t{1} << t.bits) - 1};
    return {-(int64_t{1} << (t.bits - 1)), (int64_t{1} << (t.bits - 1)) - 1};
  }
  if (t.code == TypeCode::kUInt && t.bits == 32) return {0, 0xFFFFFFFF};
  return {};
}

Bounds ModBounds(Bounds b, int64_t modulus) {
  if (b.bounded() && FloorDivide(b.min, modulus) == FloorDivide(b.max, modulus)) {
    return {FloorModulo(b.min, modulus), FloorModulo(b.max, modulus)};
  }
  return {0, modulus - 1};
}

// A sum with a min or max among its terms is the lesser, or the greater, of what it becomes with either side.
bool IsLesser(const Term& choice) {
  return (choice.atom.As<Binary>()->op == BinaryOp::kMin) == (choice.coefficient > 0);
}

bool Contains(const Expr& e, const Expr& part) {
  bool found = false;
  ForEachExpr(e, [&](const Expr& inside) {
    found |= CompareExprs(inside, part) == 0;
    return !found;
  });
  return found;
}

// The first term of the sum by which it is the lesser of two, or the greater; null when there is none. One that another
// is made of comes after that: with a side of the outer one gone, what is left of the two often cancels.
const Term* ChoiceTerm(const Sum& sum, bool lesser) {
  const Term* choice = nullptr;
  for (const Term& term : sum.terms) {
    const Binary* op = term.atom.As<Binary>();
    const bool is_choice = op != nullptr && (op->op == BinaryOp::kMin || op->op == BinaryOp::kMax);
    if (!is_choice || IsLesser(term) != lesser) continue;
    if (choice == nullptr || Contains(term.atom, choice->atom)) choice = &term;
  }
  return choice;
}

}  // namespace

// The mean of two numbers lies between them: where much of their sum cancels it bounds the lesser from above, and the
// greater from below. That max(x, -x) is at least 0 is known by it.
Bounds Analyzer::Impl::ChoiceBounds(const Binary& op, int depth) {
  const Sum left = Linear(op.a), right = Linear(op.b);
  const Bounds a = BoundsOf(left, depth - 1), b = BoundsOf(right, depth - 1);
  const bool lesser = op.op == BinaryOp::kMin;
  Bounds bounds = lesser ? Bounds{std::min(a.min, b.min), std::min(a.max, b.max)}
                         : Bounds{std::max(a.min, b.min), std::max(a.max, b.max)};
  Sum both = left;
  AddScaled(both, right);
  if (depth <= 0 && !both.is_constant()) return bounds;
  if (both.terms.size() >= std::max(left.terms.size(), right.terms.size())) return bounds;
  const Bounds twice_mean = BoundsOf(both, depth - 1);
  if (lesser) bounds.max = std::min(bounds.max, SatFloorDiv(twice_mean.max, 2));
  else bounds.min = std::max(bounds.min, SatNegate(SatFloorDiv(SatNegate(twice_mean.min), 2)));
  return bounds;
}

Bounds Analyzer::Impl::BinaryBounds(const Binary& op, int depth) {
  const auto side = [&](const Expr& e) { return BoundsOf(Linear(e), depth - 1); };
  if (op.op == BinaryOp::kMin || op.op == BinaryOp::kMax) return ChoiceBounds(op, depth);
  if (depth <= 0) return {};
  // A function of bits asks no more of its sides than their own bounds, which takes no step of depth.
  const auto bits_of = [&](const Expr& e) { return PlainBounds(Linear(e), depth); };
  switch (op.op) {
    case BinaryOp::kMul: return Multiply(side(op.a), side(op.b));
    case BinaryOp::kFloorMod: {  // by a symbolic modulus
      const Bounds modulus = side(op.b);
      if (modulus.min >= 1) return {0, SatAdd(modulus.max, -1)};
      return {};
    }
    case BinaryOp::kFloorDiv: {
      const Bounds a = side(op.a), b = side(op.b);
      if (b.min < 1) return {};
      return {a.min >= 0 ? 0 : a.min, a.max >= 0 ? SatFloorDiv(a.max, b.min) : int64_t{-1}};
    }
    case BinaryOp::kBitAnd: {
      const Bounds a = bits_of(op.a), b = bits_of(op.b);
      if (a.min >= 0 && b.min >= 0) return {0, std::min(a.max, b.max)};
      if (a.min >= 0) return {0, a.max};
      if (b.min >= 0) return {0, b.max};
      return {};
    }
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor: {  // no bit that neither has
      const Bounds a = bits_of(op.a), b = bits_of(op.b);
      if (a.min < 0 || b.min < 0 || !a.bounded_above() || !b.bounded_above()) return {};
      const int bits = std::bit_width(static_cast<uint64_t>(std::max(a.max, b.max)));
      return {0, static_cast<int64_t>((uint64_t{1} << bits) - 1)};
    }
    case BinaryOp::kMod: {
      const Bounds a = side(op.a), b = side(op.b);
      if (b.min >= 1 && b.bounded_above()) return {a.min >= 0 ? 0 : 1 - b.max, a.max <= 0 ? 0 : b.max - 1};
      return {};
    }
    default: return {};
  }
}

Bounds Analyzer::Impl::AtomBounds(const Expr& atom, int depth) {
  if (const VarRef* ref = atom.As<VarRef>()) {
    const auto found = vars.find(ref->var.id());
    Bounds bounds = TypeBounds(atom.type());
    if (const std::optional<SizeRange>& range = ref->var.range()) bounds = Meet(bounds, {range->min, range->max});
    return found == vars.end() ? bounds : Meet(found->second.bounds, bounds);
  }
  if (const IntImm* value = atom.As<IntImm>()) return {value->value, value->value};
  if (const Binary* op = atom.As<Binary>())
    return IsIndexType(atom.type()) ? BinaryBounds(*op, depth) : TypeBounds(atom.type());
  const auto either = [&](const Expr& yes, const Expr& no) {
    if (depth <= 0 || !IsIndexType(atom.type())) return TypeBounds(atom.type());
    return Hull(BoundsOf(Linear(yes), depth - 1), BoundsOf(Linear(no), depth - 1));
  };
  if (const Select* choice = atom.As<Select>()) return either(choice->yes, choice->no);
  if (const IfThenElseExpr* choice = atom.As<IfThenElseExpr>()) return either(choice->yes, choice->no);
  if (const Cast* cast = atom.As<Cast>()) {
    const DType from = cast->a.type();
    if (from.is_bool() || (from.is_int() && from.bits < atom.type().bits && from.lanes == 1)) {
      return Meet(AtomBounds(cast->a, depth), from == kInt32 ? Bounds{INT32_MIN, INT32_MAX} : TypeBounds(from));
    }
  }
  return TypeBounds(atom.type());
}

Bounds Analyzer::Impl::BoundsOf(const Term& term, int depth) {
  if (!term.is_split()) return AtomBounds(term.atom, depth);
  Bounds source = BoundsOf(term.source->sum, depth);
  if (term.lower != 1) source = {SatFloorDiv(source.min, term.lower), SatFloorDiv(source.max, term.lower)};
  return term.upper == 0 ? source : ModBounds(source, term.upper);
}

Bounds Analyzer::Impl::PlainBounds(const Sum& sum, int depth) {
  Bounds total{sum.constant, sum.constant};
  for (const Term& term : sum.terms) total = Add(total, Scale(BoundsOf(term, depth), term.coefficient));
  return total;
}

// The least upper bound of `sum` that one of the facts gives: with m * sum = l * fact + rest, m and l positive,
// sum <= floor((l * limit + max(rest)) / m).
int64_t Analyzer::Impl::UpperFromFacts(const Sum& sum, int depth) {
  int64_t upper = kPlusInf;
  if (facts_in_use >= 2) return upper;  // a fact may mention what is being bounded
  ++facts_in_use;
  for (size_t f = 0, count = facts.size(); f < count; ++f) {
    const Fact& fact = facts[f];  // stays where it is while conditions inside add their own
    if (!fact.live) continue;
    for (const Term& known : fact.sum.terms) {
      const Term* own = FindTerm(sum, known);
      if (own == nullptr || (own->coefficient > 0) != (known.coefficient > 0)) continue;
      const int64_t gcd = std::gcd(own->coefficient, known.coefficient);
      const int64_t l = std::abs(own->coefficient / gcd), m = std::abs(known.coefficient / gcd);
      Sum rest = Scaled(sum, m);
      AddScaled(rest, fact.sum, -l);
      const int64_t rest_max = depth > 0 && rest.terms.size() < sum.terms.size() + fact.sum.terms.size() - 1
                                   ? BoundsOf(rest, depth).max
                                   : PlainBounds(rest, depth).max;
      if (rest_max == kPlusInf) continue;
      upper = std::min(upper, SatFloorDiv(SatAdd(SatMul(l, fact.limit), rest_max), m));
    }
  }
  --facts_in_use;
  return upper;
}

// floordiv(x + d, l) - floordiv(x, l) is floordiv(r + d, l), r being the remainder of x by l: where x is a multiple of
// g, or that and a constant, r is among every g-th number below l.
Bounds Analyzer::Impl::QuotientsApart(const Sum& x, const Bounds& d, int64_t l) {
  const Residue residue = ResidueOf(x);
  const int64_t step = std::gcd(residue.modulus, l), least = FloorModulo(residue.remainder, step);
  return {SatFloorDiv(SatAdd(d.min, least), l), SatFloorDiv(SatAdd(d.max, l - step + least), l)};
}

// By every floordiv(x, l) - floordiv(y, l) in the sum where x - y is bounded; floordiv(y, k) is floordiv(m * y, m * k).
Bounds Analyzer::Impl::QuotientBounds(const Sum& sum, int depth) {
  Bounds best;
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const Term& a = sum.terms[i];
    if (!a.is_split() || a.upper != 0) continue;
    for (size_t j = i + 1; j < sum.terms.size(); ++j) {
      const Term& b = sum.terms[j];
      const int64_t lower = std::max(a.lower, b.lower);
      if (lower % a.lower != 0 || lower % b.lower != 0 || b.upper != 0 || b.coefficient != -a.coefficient) continue;
      const Sum x = Scaled(a.source->sum, lower / a.lower), y = Scaled(b.source->sum, lower / b.lower);
      const Bounds apart = BoundsOf(Difference(x, y), depth - 1);
      const Bounds quotient =
          Meet(QuotientsApart(y, apart, lower), Scale(QuotientsApart(x, Scale(apart, -1), lower), -1));
      Sum rest = sum;
      rest.terms.erase(rest.terms.begin() + j);
      rest.terms.erase(rest.terms.begin() + i);
      best = Meet(best, Add(Scale(quotient, a.coefficient), BoundsOf(rest, depth - 1)));
    }
  }
  return best;
}

Bounds Analyzer::Impl::BoundsOf(const Sum& sum, int depth) {
  if (sum.is_constant()) return {sum.constant, sum.constant};
  Bounds best = PlainBounds(sum, depth);
  if (best.min == best.max || depth <= 0) return best;
  best = Meet(best, QuotientBounds(sum, depth));
  // 16 * floordiv(n + 15, 16) - n: with l * floordiv(x, l) = x - floormod(x, l), what x and the rest share cancels.
  for (const Term& term : sum.terms) {
    if (!term.is_split() || term.upper != 0 || term.lower == 1 || term.coefficient % term.lower != 0) continue;
    const Sum& source = term.source->sum;
    const bool shares = std::any_of(source.terms.begin(), source.terms.end(),
                                    [&](const Term& part) { return FindTerm(sum, part) != nullptr; });
    if (!shares) continue;
    const int64_t times = term.coefficient / term.lower;
    Sum without = sum;
    AddTerm(without, term, -1);
    AddScaled(without, source, times);
    best = Meet(best, Add(Scale({1 - term.lower, 0}, times), BoundsOf(without, depth - 1)));
  }
  // Where the sum is the greater by one term and the lesser by another, an upper bound wants to look at both sides of
  // the first before it picks one of the second, and a lower bound the other way around.
  for (const bool lesser : {true, false}) {
    const Term* choice = sum.terms.size() > 1 ? ChoiceTerm(sum, lesser) : nullptr;
    if (choice == nullptr) continue;
    const Binary& op = *choice->atom.As<Binary>();
    Sum a = sum;
    AddTerm(a, *choice, -1);
    Sum b = a;
    AddScaled(a, Linear(op.a), choice->coefficient);
    AddScaled(b, Linear(op.b), choice->coefficient);
    // A side without a choice may want two facts, as many as the sum itself is given.
    const auto side = [&](Sum s) {
      s = Recombined(std::move(s));
      const bool chooses = ChoiceTerm(s, true) != nullptr || ChoiceTerm(s, false) != nullptr;
      return BoundsOf(s, chooses ? depth - 1 : depth);
    };
    const Bounds in_a = side(std::move(a)), in_b = side(std::move(b));
    best = Meet(best, lesser ? Bounds{std::min(in_a.min, in_b.min), std::min(in_a.max, in_b.max)}
                             : Bounds{std::max(in_a.min, in_b.min), std::max(in_a.max, in_b.max)});
  }
  if (!facts.empty()) {
    best.max = std::min(best.max, UpperFromFacts(sum, depth - 1));
    best.min = std::max(best.min, SatNegate(UpperFromFacts(Scaled(sum, -1), depth - 1)));
  }
  return best;
}

Analyzer::Residue Analyzer::Impl::ResidueOf(const Sum& sum) {
  int64_t modulus = 0, remainder = sum.constant;  // the constant, exactly
  for (const Term& term : sum.terms) {
    int64_t step = 1;  // the term is offset + step * anything
    if (term.is_split() && term.lower == 1 && term.upper != 0) {
      const Residue inside = ResidueOf(term.source->sum);
      step = std::gcd(inside.modulus, term.upper);
      if (step > 1) remainder += term.coefficient * FloorModulo(inside.remainder, step);
    }
    modulus = std::gcd(modulus, step * term.coefficient);
  }
  if (modulus == 0) return {0, remainder};
  return {modulus, FloorModulo(remainder, modulus)};
}

}  // namespace hone
