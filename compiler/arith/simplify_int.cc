// Integer expressions to sums: the rules of floordiv, floormod, min and max.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "absl/container/inlined_vector.h"
#include "compiler/arith/analyzer_impl.h"
#include "compiler/ir/visit.h"

namespace hone {
namespace {

// The factors of a product, sorted.
void CollectFactors(const Expr& e, std::vector<Expr>& factors) {
  const Binary* op = e.As<Binary>();
  if (op != nullptr && op->op == BinaryOp::kMul) {
    CollectFactors(op->a, factors);
    CollectFactors(op->b, factors);
  } else {
    factors.push_back(e);
  }
}

// A product of atoms as one term.
Sum Monomial(std::vector<Expr> factors) {
  std::sort(factors.begin(), factors.end(), [](const Expr& a, const Expr& b) { return CompareExprs(a, b) < 0; });
  Expr product = factors[0];
  for (size_t i = 1; i < factors.size(); ++i)
    product = Expr::Make(Binary{BinaryOp::kMul, product, factors[i]}, product.type());
  return Sum::Atom(std::move(product));
}

std::vector<Expr> FactorsOf(const Term& term, DType type) {
  std::vector<Expr> factors;
  CollectFactors(ToExpr(term, type), factors);
  return factors;
}

// Terms with a coefficient that `modulus` divides, and the whole multiples in the constant, go to `quotient`. Other
// coefficients stay as they are, even above the modulus: 5*o + n is a fusion of two loops, 2*2*o + (o + n) is not.
void TakeMultiples(Sum& s, int64_t modulus, Sum* quotient) {
  Sum rest;
  const int64_t whole = FloorDivide(s.constant, modulus);
  rest.constant = s.constant - whole * modulus;
  if (quotient != nullptr) quotient->constant += whole;
  for (const Term& term : s.terms) {
    if (term.coefficient % modulus != 0) {
      rest.terms.push_back(term);
    } else if (quotient != nullptr) {
      quotient->terms.push_back(term);
      quotient->terms.back().coefficient /= modulus;
    }
  }
  s = std::move(rest);
}

bool DivisibleBy(const Sum& s, int64_t divisor) {
  if (s.constant % divisor != 0) return false;
  return std::all_of(s.terms.begin(), s.terms.end(), [&](const Term& t) { return t.coefficient % divisor == 0; });
}

// The factor q for which s contains q * part, term by term; 0 when there is none.
int64_t ContainedTimes(const Sum& s, const Sum& part) {
  if (part.terms.empty()) return 0;
  const Term* first = FindTerm(s, part.terms[0]);
  if (first == nullptr || first->coefficient % part.terms[0].coefficient != 0) return 0;
  const int64_t times = first->coefficient / part.terms[0].coefficient;
  for (size_t i = 1; i < part.terms.size(); ++i) {
    const Term* own = FindTerm(s, part.terms[i]);
    if (own == nullptr || own->coefficient != times * part.terms[i].coefficient) return 0;
  }
  return times;
}

const Binary* AsChoice(const Term& term) {
  const Binary* op = term.atom.As<Binary>();
  return op != nullptr && (op->op == BinaryOp::kMin || op->op == BinaryOp::kMax) ? op : nullptr;
}

}  // namespace

Sum Analyzer::Impl::ToSum(const Expr& e) { return Recombined(Linear(e)); }

// into += scale * e, without a sum for every node of a chain of additions.
void Analyzer::Impl::Accumulate(const Expr& e, int64_t scale, Sum& into) {
  if (const Binary* op = e.As<Binary>()) {
    if (op->op == BinaryOp::kAdd || op->op == BinaryOp::kSub) {
      Accumulate(op->a, scale, into);
      return Accumulate(op->b, op->op == BinaryOp::kAdd ? scale : -scale, into);
    }
    int64_t product;
    const IntImm* factor = op->op == BinaryOp::kMul ? op->b.As<IntImm>() : nullptr;
    if (factor != nullptr && !__builtin_mul_overflow(scale, factor->value, &product)) {
      return Accumulate(op->a, product, into);
    }
  }
  if (const IntImm* value = e.As<IntImm>()) {
    AddScaled(into, Sum::Constant(value->value), scale);
  } else {
    AddScaled(into, Linear(e), scale);
  }
}

Sum Analyzer::Impl::Linear(const Expr& e) {
  if (const IntImm* value = e.As<IntImm>()) return Sum::Constant(value->value);
  if (const VarRef* ref = e.As<VarRef>()) {
    const auto found = vars.find(ref->var.id());
    if (found == vars.end()) return Sum::Atom(e);
    const VarFacts& known = found->second;
    if (known.value) return *known.value;
    if (const Expr replacement = known.replacement) return Linear(replacement);
    if (known.bounds.min == known.bounds.max) return Sum::Constant(known.bounds.min);
    return Sum::Atom(e);
  }
  if (const Cast* cast = e.As<Cast>()) {
    if (!IsIndexType(cast->a.type())) return AtomOf(e);
    Sum inner = Linear(cast->a);
    if (e.type().bits >= cast->a.type().bits) return inner;
    inner = Recombined(std::move(inner));
    return FitsInt32(inner) ? inner : Sum::Atom(MakeCast(e.type(), Materialize(inner, cast->a.type())));
  }
  const Binary* op = e.As<Binary>();
  if (op == nullptr) return AtomOf(e);
  switch (op->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      Sum total;
      Accumulate(e, 1, total);
      return total;
    }
    case BinaryOp::kMul: {
      const Sum a = Linear(op->a), b = Linear(op->b);
      if (b.is_constant()) return Scaled(a, b.constant);
      if (a.is_constant()) return Scaled(b, a.constant);
      return Product(Recombined(a), Recombined(b), e.type());
    }
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kDiv:
    case BinaryOp::kMod: {
      const Sum a = ToSum(op->a), b = ToSum(op->b);
      const bool floors = op->op == BinaryOp::kFloorDiv || op->op == BinaryOp::kFloorMod;
      const bool same_as_floor = floors || (BoundsOf(a).min >= 0 && BoundsOf(b).min >= 1);
      const bool divides = op->op == BinaryOp::kFloorDiv || op->op == BinaryOp::kDiv;
      if (same_as_floor && b.is_constant() && b.constant != 0) return divides ? Div(a, b.constant) : Mod(a, b.constant);
      if (same_as_floor && !b.is_constant()) {
        return DivModBySum(divides ? BinaryOp::kFloorDiv : BinaryOp::kFloorMod, a, b, e.type());
      }
      const Expr kept = Expr::Make(Binary{op->op, Materialize(a, e.type()), Materialize(b, e.type())}, e.type());
      return Sum::Atom(kept);
    }
    case BinaryOp::kMin:
    case BinaryOp::kMax: return Choose(op->op, ToSum(op->a), ToSum(op->b), e.type());
    case BinaryOp::kBitXor: return ExclusiveOr(e);
    default: return AtomOf(e);
  }
}

// x ^ x is 0, whatever stands between: layouts that spread rows over banks are undone by themselves.
Sum Analyzer::Impl::ExclusiveOr(const Expr& e) {
  std::vector<Sum> left;
  const std::function<void(const Expr&)> add = [&](const Expr& part) {
    const Binary* op = part.As<Binary>();
    if (op != nullptr && op->op == BinaryOp::kBitXor) {
      add(op->a);
      return add(op->b);
    }
    Sum sum = ToSum(part);
    const auto same = std::ranges::find_if(left, [&](const Sum& other) { return CompareSums(sum, other) == 0; });
    if (same == left.end()) left.push_back(std::move(sum));
    else left.erase(same);
  };
  add(e);
  Expr kept = IntConst(0, e.type());
  for (const Sum& sum : left) kept = MakeBinary(BinaryOp::kBitXor, kept, Materialize(sum, e.type()));
  const Binary* op = kept.As<Binary>();
  return op != nullptr && op->op == BinaryOp::kBitXor ? Sum::Atom(kept) : Linear(kept);
}

Sum Analyzer::Impl::AtomOf(const Expr& e) {
  Expr simple;
  if (const Select* choice = e.As<Select>()) simple = SimplifyChoice(e, *choice);
  else if (const IfThenElseExpr* choice = e.As<IfThenElseExpr>()) simple = SimplifyChoice(e, *choice);
  else if (const LetExpr* let = e.As<LetExpr>()) simple = SimplifyLet(e, *let);
  else simple = MapChildren(e, [this](const Expr& child) { return Simplify(child); });
  const bool same_kind = simple.node().kind.index() == e.node().kind.index();
  return same_kind ? Sum::Atom(std::move(simple)) : Linear(simple);
}

Sum Analyzer::Impl::Product(const Sum& a, const Sum& b, DType type) {
  if (a.is_constant()) return Scaled(b, a.constant);
  if (b.is_constant()) return Scaled(a, b.constant);
  if ((a.terms.size() + 1) * (b.terms.size() + 1) > 20) {  // too much to multiply out
    Sum swapped[] = {a, b};
    if (CompareSums(a, b) > 0) std::swap(swapped[0], swapped[1]);
    const Expr kept = Expr::Make(Binary{BinaryOp::kMul, ToExpr(swapped[0], type), ToExpr(swapped[1], type)}, type);
    return Sum::Atom(kept);
  }
  Sum total = Scaled(a, b.constant);
  Sum times_constant = b;
  times_constant.constant = 0;
  AddScaled(total, times_constant, a.constant);
  for (const Term& x : a.terms) {
    for (const Term& y : b.terms) {
      std::vector<Expr> factors = FactorsOf(x, type);
      for (Expr& factor : FactorsOf(y, type)) factors.push_back(std::move(factor));
      AddScaled(total, Scaled(Monomial(std::move(factors)), x.coefficient), y.coefficient);
    }
  }
  return total;
}

Sum Analyzer::Impl::Div(const Sum& s, int64_t divisor) {
  return divisor > 0 ? DivMod(s, divisor).first : DivMod(Scaled(s, -1), -divisor).first;
}
Sum Analyzer::Impl::Mod(const Sum& s, int64_t divisor) {
  return divisor > 0 ? DivMod(s, divisor).second : Scaled(DivMod(Scaled(s, -1), -divisor).second, -1);
}

// With g a divisor of c: (g*L + small) div c = L div (c/g), and mod c = g*(L mod (c/g)) + small, for small in [0, g).
// The greatest common divisor of all coefficients leaves only part of the constant as small.
std::optional<std::pair<Sum, Sum>> Analyzer::Impl::DivModByCommonDivisor(const Sum& s, int64_t divisor, int depth) {
  absl::InlinedVector<int64_t, 4> candidates;
  for (const Term& term : s.terms) candidates.push_back(std::gcd(term.coefficient, divisor));
  candidates.push_back(std::gcd(CoefficientGcd(s), divisor));
  std::sort(candidates.begin(), candidates.end(), std::greater<>());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (const int64_t g : candidates) {
    if (g == 1) continue;
    Sum large, small;
    for (const Term& term : s.terms) (term.coefficient % g == 0 ? large : small).terms.push_back(term);
    small.constant = FloorModulo(s.constant, g);
    large.constant = s.constant - small.constant;
    const Bounds in = BoundsOf(small);
    if (!in.bounded() || FloorDivide(in.min, g) != FloorDivide(in.max, g)) continue;
    const int64_t q = FloorDivide(in.min, g);
    small.constant -= q * g;
    large.constant += q * g;
    auto [inner_quotient, inner_remainder] = DivMod(DividedExactly(large, g), divisor / g, depth);
    AddScaled(small, inner_remainder, g);
    return std::pair(std::move(inner_quotient), std::move(small));
  }
  return std::nullopt;
}

// ((x div l) mod u) div c = (x div l*c) mod u/c when c divides u, and mod c drops the u.
std::optional<std::pair<Sum, Sum>> Analyzer::Impl::DivModOfPiece(const Sum& s, int64_t divisor) {
  if (s.terms.size() == 1 && s.constant == 0 && s.terms[0].is_split() && s.terms[0].coefficient == 1) {
    const Term& piece = s.terms[0];
    int64_t lower;
    if (piece.upper != 0 && piece.upper % divisor == 0 && !__builtin_mul_overflow(piece.lower, divisor, &lower)) {
      const int64_t upper = piece.upper / divisor;
      Sum q = upper == 1 ? Sum{} : Sum::Split(piece.source->sum, lower, upper);
      Sum r = Sum::Split(piece.source->sum, piece.lower, divisor);
      return std::pair(std::move(q), std::move(r));
    }
  }
  return std::nullopt;
}

// Where x div l stands in the sum once: (x div l + z) div c = (x + l*z) div l*c, and mod c is the piece (x + l*z; l;
// c).
std::optional<std::pair<Sum, Sum>> Analyzer::Impl::DivModOfQuotient(const Sum& s, int64_t divisor, int depth) {
  const Term* inner = nullptr;
  int inner_count = 0;
  for (const Term& term : s.terms) {
    if (!term.is_split() || term.upper != 0) continue;
    ++inner_count;
    if (term.coefficient == 1 && inner == nullptr) inner = &term;
  }
  int64_t lower;
  if (inner != nullptr && inner_count == 1 && depth < 8 && !__builtin_mul_overflow(inner->lower, divisor, &lower) &&
      lower < (int64_t{1} << 40)) {
    const int64_t l = inner->lower;
    Sum source = inner->source->sum, z = s;
    AddTerm(z, *inner, -1);
    AddScaled(source, z, l);
    source = Recombined(std::move(source));
    Sum inner_quotient = DivMod(source, lower, depth + 1).first;
    TakeMultiples(source, lower, nullptr);
    return std::pair(std::move(inner_quotient), Sum::Split(source, l, divisor));
  }
  return std::nullopt;
}

// floordiv and floormod by a positive constant, together.
std::pair<Sum, Sum> Analyzer::Impl::DivMod(Sum s, int64_t divisor, int depth) {
  Sum quotient;
  if (!facts.empty()) {  // x - 8*o with 8*o <= x < 8*o + 8: known before it is taken apart
    const Bounds whole = BoundsOf(s);
    if (whole.bounded() && FloorDivide(whole.min, divisor) == FloorDivide(whole.max, divisor)) {
      quotient.constant = FloorDivide(whole.min, divisor);
      s.constant -= quotient.constant * divisor;
      return {std::move(quotient), std::move(s)};
    }
  }
  TakeMultiples(s, divisor, &quotient);  // (c*q + r) div c = q + r div c, and the constant of r is in [0, c)
  const auto finish = [&](Sum rest_quotient, Sum remainder) {
    AddScaled(quotient, rest_quotient);
    return std::pair(Recombined(std::move(quotient)), std::move(remainder));
  };
  if (s.is_constant()) return finish({}, s);
  const Bounds bounds = BoundsOf(s);
  if (bounds.bounded() && FloorDivide(bounds.min, divisor) == FloorDivide(bounds.max, divisor)) {
    const int64_t q = FloorDivide(bounds.min, divisor);
    s.constant -= q * divisor;
    return finish(Sum::Constant(q), std::move(s));
  }
  std::optional<std::pair<Sum, Sum>> simpler = DivModByCommonDivisor(s, divisor, depth);
  if (!simpler.has_value()) simpler = DivModOfPiece(s, divisor);
  if (!simpler.has_value()) simpler = DivModOfQuotient(s, divisor, depth);
  if (simpler.has_value()) return finish(std::move(simpler->first), std::move(simpler->second));
  return finish(Sum::Split(s, divisor, 0), Sum::Split(s, 1, divisor));
}

// By a symbolic divisor: multiples of it are taken out, the rest vanishes when it is proven to lie in [0, divisor).
Sum Analyzer::Impl::DivModBySum(BinaryOp op, const Sum& s, const Sum& divisor, DType type) {
  const bool modulo = op == BinaryOp::kFloorMod;
  Sum quotient, rest;
  if (const int64_t times = ContainedTimes(s, divisor); times != 0 && divisor.terms.size() > 1) {
    quotient = Sum::Constant(times);
    rest = s;
    AddScaled(rest, divisor, -times);
  } else if (divisor.terms.size() == 1 && divisor.constant == 0) {
    const std::vector<Expr> wanted = FactorsOf(divisor.terms[0], type);
    const int64_t c = divisor.terms[0].coefficient;
    rest.constant = s.constant;
    for (const Term& term : s.terms) {
      std::vector<Expr> left = FactorsOf(term, type);
      bool divides = term.coefficient % c == 0;
      for (const Expr& factor : wanted) {
        const auto found =
            std::find_if(left.begin(), left.end(), [&](const Expr& f) { return CompareExprs(f, factor) == 0; });
        if (found == left.end()) {
          divides = false;
          break;
        }
        left.erase(found);
      }
      if (!divides) AddTerm(rest, term);
      else if (left.empty()) quotient.constant += term.coefficient / c;
      else AddScaled(quotient, left.size() == 1 ? Linear(left[0]) : Monomial(std::move(left)), term.coefficient / c);
    }
  } else {
    rest = s;
  }
  const bool is_rest = BoundsOf(rest).min >= 0 && BoundsOf(Difference(rest, divisor)).max < 0;
  if (rest.is_constant() && rest.constant == 0) return modulo ? rest : quotient;
  if (is_rest) return modulo ? rest : quotient;
  const Expr kept = Expr::Make(Binary{op, Materialize(rest, type), Materialize(divisor, type)}, type);
  if (modulo) return Sum::Atom(kept);
  AddScaled(quotient, Sum::Atom(kept));
  return quotient;
}

void Analyzer::Impl::DropDominated(BinaryOp op, Sides& sides) {
  for (size_t i = 0; i < sides.size(); ++i) {
    for (size_t j = i + 1; j < sides.size();) {
      const Bounds apart = BoundsOf(Recombined(Difference(sides[i], sides[j])));
      const bool keep_first = op == BinaryOp::kMin ? apart.max <= 0 : apart.min >= 0;
      const bool keep_second = op == BinaryOp::kMin ? apart.min >= 0 : apart.max <= 0;
      if (!keep_first && !keep_second) {
        ++j;
        continue;
      }
      if (keep_first) {
        sides.erase(sides.begin() + j);
      } else {
        sides[i] = sides[j];
        sides.erase(sides.begin() + j);
        j = i + 1;  // a new side meets all others again
      }
    }
  }
}

// min or max of all operands of nested ones: dominated operands go, what all share comes out in front.
Sum Analyzer::Impl::Choose(BinaryOp op, const Sum& a, const Sum& b, DType type) {
  Sides sides;
  const auto flatten = [&](const Sum& side, const auto& self) -> void {
    const Binary* inner = side.terms.size() == 1 && side.terms[0].coefficient == 1 ? AsChoice(side.terms[0]) : nullptr;
    if (inner == nullptr || inner->op != op) {
      sides.push_back(side);
      return;
    }
    for (const Expr& e : {inner->a, inner->b}) {
      Sum shifted = ToSum(e);
      shifted.constant += side.constant;
      self(shifted, self);
    }
  };
  flatten(a, flatten);
  flatten(b, flatten);
  DropDominated(op, sides);
  if (sides.size() == 1) return sides[0];
  Sum common;
  for (const Term& term : sides[0].terms) {
    const bool everywhere = std::all_of(sides.begin() + 1, sides.end(), [&](const Sum& side) {
      const Term* own = FindTerm(side, term);
      return own != nullptr && own->coefficient == term.coefficient;
    });
    if (everywhere) common.terms.push_back(term);
  }
  for (Sum& side : sides) AddScaled(side, common, -1);
  // Ordered without their constants, numbers last; then the first has constant 0.
  std::sort(sides.begin(), sides.end(), [](const Sum& x, const Sum& y) {
    if (x.is_constant() != y.is_constant()) return y.is_constant();
    Sum bare_x = x, bare_y = y;
    bare_x.constant = bare_y.constant = 0;
    const int order = CompareSums(bare_x, bare_y);
    return order != 0 ? order < 0 : x.constant < y.constant;
  });
  common.constant = sides[0].constant;
  for (Sum& side : sides) side.constant -= common.constant;
  Expr chosen = Materialize(sides[0], type);
  for (size_t i = 1; i < sides.size(); ++i) {
    chosen = Expr::Make(Binary{op, std::move(chosen), Materialize(sides[i], type)}, type);
  }
  AddTerm(common, Term{.coefficient = 1, .atom = std::move(chosen)});
  return common;
}

Sum Analyzer::Impl::Recombined(Sum s) {
  for (int round = 0; round < 16; ++round) {
    const bool has_choice = s.terms.size() > 1 && std::any_of(s.terms.begin(), s.terms.end(),
                                                              [](const Term& t) { return AsChoice(t) != nullptr; });
    if (has_choice && PushIntoChoice(s)) continue;
    if (s.terms.size() > 1 && s.has_splits() && RecombineOnce(s)) continue;
    break;
  }
  return s;
}

// Pieces of one source put together. True when the sum changed.
bool Analyzer::Impl::RecombineOnce(Sum& s) {
  for (const Term& high : s.terms) {
    if (!high.is_split()) continue;
    const Sum& source = high.source->sum;
    for (const Term& low : s.terms) {
      // l2*u2 * piece(x; l2*u2; u) + piece(x; l2; u2) = piece(x; l2; u*u2), in multiples of the low coefficient.
      if (&low == &high || !low.is_split() || low.upper == 0) continue;
      if (high.lower != low.lower * low.upper || high.coefficient != low.coefficient * low.upper) continue;
      if (!DivisibleBy(Difference(source, low.source->sum), high.lower)) continue;
      Sum merged = source;
      if (low.lower != 1) merged = Div(merged, low.lower);
      if (high.upper != 0) merged = Mod(merged, high.upper * low.upper);
      const int64_t scale = low.coefficient;
      const Term high_copy = high, low_copy = low;
      AddTerm(s, high_copy, -1);
      AddTerm(s, low_copy, -1);
      AddScaled(s, merged, scale);
      return true;
    }
    // q*x - q*l * (x div l) = q * (x mod l), and q*x - q * (x mod u) = q*u * (x div u).
    const int64_t times = ContainedTimes(s, source);
    if (times == 0) continue;
    if (high.upper == 0 && high.coefficient == -times * high.lower) {
      const Term copy = high;
      const Ref<const SumNode> kept = high.source;
      AddTerm(s, copy, -1);
      AddScaled(s, kept->sum, -times);
      AddScaled(s, Mod(kept->sum, copy.lower), times);
      return true;
    }
    if (high.lower == 1 && high.upper != 0 && high.coefficient == -times) {
      const Term copy = high;
      AddTerm(s, copy, -1);
      AddScaled(s, copy.source->sum, -times);
      AddScaled(s, Div(copy.source->sum, copy.upper), times * copy.upper);
      return true;
    }
  }
  return false;
}

// min(a, b) + rest = min(a + rest, b + rest), where that has fewer terms: min(i*16 + 16, n) - i*16 = min(16, n - i*16).
bool Analyzer::Impl::PushIntoChoice(Sum& s) {
  for (const Term& term : s.terms) {
    const Binary* op = AsChoice(term);
    if (op == nullptr || (term.coefficient != 1 && term.coefficient != -1)) continue;
    const Sum a = Linear(op->a), b = Linear(op->b);
    Sum in_a = s;
    AddTerm(in_a, term, -1);
    const size_t rest_terms = in_a.terms.size();
    if (rest_terms == 0) continue;
    Sum in_b = in_a;
    AddScaled(in_a, a, term.coefficient);
    AddScaled(in_b, b, term.coefficient);
    if (in_a.terms.size() + in_b.terms.size() >= a.terms.size() + b.terms.size() + rest_terms) continue;
    const bool minimum = (op->op == BinaryOp::kMin) == (term.coefficient == 1);
    s = Choose(minimum ? BinaryOp::kMin : BinaryOp::kMax, Recombined(std::move(in_a)), Recombined(std::move(in_b)),
               term.atom.type());
    return true;
  }
  return false;
}

bool Analyzer::Impl::FitsInt32(const Sum& s) {
  int64_t size = Clamp(s.constant < 0 ? -static_cast<__int128>(s.constant) : s.constant);
  for (const Term& term : s.terms) {
    if (term.is_split() ? !FitsInt32(term.source->sum) : term.atom.type() != kInt32) return false;
    const Bounds b = Scale(BoundsOf(term, 2), term.coefficient);
    size = SatAdd(size, std::max(SatNegate(b.min), b.max));
  }
  return size <= INT32_MAX;
}

Expr Analyzer::Impl::Materialize(const Sum& s, DType type) {
  if (type == kInt64 && !s.is_constant() && FitsInt32(s)) return MakeCast(kInt64, ToExpr(s, kInt32));
  return ToExpr(s, type);
}

}  // namespace hone
