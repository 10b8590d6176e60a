#include "compiler/ir/sum.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/ir/fields.h"
#include "compiler/ir/scalar_arith.h"

namespace hone {
namespace {

int64_t WrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t WrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <class T>
int Three(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

template <class T>
int CompareField(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Expr>) {
    if (!a || !b) return Three(static_cast<bool>(a), static_cast<bool>(b));
    return CompareExprs(a, b);
  } else if constexpr (std::is_same_v<T, double>) {
    return Three(std::bit_cast<uint64_t>(a), std::bit_cast<uint64_t>(b));
  } else if constexpr (IsVector<T>::value) {
    if (a.size() != b.size()) return Three(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      if (const int order = CompareField(a[i], b[i])) return order;
    }
    return 0;
  } else {
    return Three(a, b);
  }
}
template <class T>
int CompareFields(const T& a, const T& b) {
  int order = 0;
  ForEachFieldPair(a, b, [&](const auto& x, const auto& y) {
    if (order == 0) order = CompareField(x, y);
  });
  return order;
}

uint64_t TypeKey(DType t) {
  return (uint64_t{static_cast<uint8_t>(t.code)} << 32) | (uint64_t{t.bits} << 16) | t.lanes;
}

// The variables of two terms first: they are by far the most common.
int KindRank(const Expr& e) { return e.As<VarRef>() != nullptr ? -1 : static_cast<int>(e.node().kind.index()); }

// e + c, with the sign in the operator.
Expr PlusConstant(Expr e, int64_t c) {
  const DType type = e.type();
  if (c < 0 && c != INT64_MIN) return std::move(e) - IntConst(-c, type);
  return std::move(e) + IntConst(c, type);
}

// side + shift, where the side is what ToExpr printed: its own constant, first or last, takes the shift.
Expr Shifted(const Expr& side, int64_t shift) {
  const Binary* sum = side.As<Binary>();
  if (sum != nullptr && (sum->op == BinaryOp::kMin || sum->op == BinaryOp::kMax)) {
    return MakeBinary(sum->op, Shifted(sum->a, shift), Shifted(sum->b, shift));
  }
  if (sum != nullptr && sum->op == BinaryOp::kMul && shift > 0) {
    const std::optional<int64_t> factor = ConstantValue(sum->b);
    if (factor && *factor < 0 && *factor != INT64_MIN)
      return IntConst(shift, side.type()) - sum->a * IntConst(-*factor, side.type());
  }
  if (sum == nullptr || (sum->op != BinaryOp::kAdd && sum->op != BinaryOp::kSub)) return PlusConstant(side, shift);
  if (const std::optional<int64_t> tail = ConstantValue(sum->b)) {
    return PlusConstant(sum->a, WrapAdd(shift, sum->op == BinaryOp::kAdd ? *tail : WrapMul(*tail, -1)));
  }
  if (const std::optional<int64_t> head = ConstantValue(sum->a); head && sum->op == BinaryOp::kSub) {
    const int64_t moved = WrapAdd(*head, shift);
    if (moved > 0) return IntConst(moved, side.type()) - sum->b;
  }
  return PlusConstant(side, shift);
}

}  // namespace

Sum Sum::Split(const Sum& source, int64_t lower, int64_t upper) {
  Sum sum;
  sum.terms.push_back(Term{.source = Ref<const SumNode>(new SumNode(source)), .lower = lower, .upper = upper});
  return sum;
}

int CompareExprs(const Expr& a, const Expr& b) {
  if (a.SameAs(b)) return 0;
  if (const int order = Three(KindRank(a), KindRank(b))) return order;
  if (const VarRef* va = a.As<VarRef>()) return Three(va->var.id(), b.As<VarRef>()->var.id());
  if (const int order = Three(TypeKey(a.type()), TypeKey(b.type()))) return order;
  return std::visit(
      [&](const auto& node) {
        using Node = std::decay_t<decltype(node)>;
        return CompareFields(node, *b.As<Node>());
      },
      a.node().kind);
}

int CompareTerms(const Term& a, const Term& b) {
  if (a.is_split() != b.is_split()) return a.is_split() ? 1 : -1;
  if (!a.is_split()) return CompareExprs(a.atom, b.atom);
  if (!(a.source == b.source)) {
    if (const int order = CompareSums(a.source->sum, b.source->sum)) return order;
  }
  if (const int order = Three(a.lower, b.lower)) return order;
  return Three(a.upper, b.upper);
}

int CompareSums(const Sum& a, const Sum& b) {
  const size_t common = std::min(a.terms.size(), b.terms.size());
  for (size_t i = 0; i < common; ++i) {
    if (const int order = CompareTerms(a.terms[i], b.terms[i])) return order;
    if (const int order = Three(a.terms[i].coefficient, b.terms[i].coefficient)) return order;
  }
  if (const int order = Three(a.terms.size(), b.terms.size())) return order;
  return Three(a.constant, b.constant);
}

void AddTerm(Sum& a, const Term& term, int64_t scale) {
  const int64_t coefficient = WrapMul(term.coefficient, scale);
  if (coefficient == 0) return;
  for (size_t i = 0; i < a.terms.size(); ++i) {
    const int order = CompareTerms(a.terms[i], term);
    if (order < 0) continue;
    if (order == 0) {
      a.terms[i].coefficient = WrapAdd(a.terms[i].coefficient, coefficient);
      if (a.terms[i].coefficient == 0) a.terms.erase(a.terms.begin() + i);
      return;
    }
    a.terms.insert(a.terms.begin() + i, term)->coefficient = coefficient;
    return;
  }
  a.terms.push_back(term);
  a.terms.back().coefficient = coefficient;
}

void AddScaled(Sum& a, const Sum& b, int64_t scale) {
  a.constant = WrapAdd(a.constant, WrapMul(b.constant, scale));
  for (const Term& term : b.terms) AddTerm(a, term, scale);
}

Sum Scaled(const Sum& a, int64_t scale) {
  if (scale == 0) return {};
  Sum scaled = a;
  scaled.constant = WrapMul(scaled.constant, scale);
  for (Term& term : scaled.terms) term.coefficient = WrapMul(term.coefficient, scale);
  return scaled;
}

Sum Difference(const Sum& a, const Sum& b) {
  Sum difference = a;
  AddScaled(difference, b, -1);
  return difference;
}

Sum DividedExactly(const Sum& a, int64_t divisor) {
  Sum divided = a;
  divided.constant /= divisor;
  for (Term& term : divided.terms) term.coefficient /= divisor;
  return divided;
}

int64_t CoefficientGcd(const Sum& a) {
  int64_t gcd = 0;
  for (const Term& term : a.terms) gcd = std::gcd(gcd, term.coefficient);
  return gcd;
}

const Term* FindTerm(const Sum& a, const Term& term) {
  for (const Term& candidate : a.terms) {
    const int order = CompareTerms(candidate, term);
    if (order == 0) return &candidate;
    if (order > 0) return nullptr;
  }
  return nullptr;
}

namespace {

bool IsIndex(DType type) { return type.code == TypeCode::kInt && type.lanes == 1 && type.bits >= 32; }

// into += scale * e
void Accumulate(const Expr& e, int64_t scale, Sum& into) {
  if (const std::optional<int64_t> value = ConstantValue(e)) return AddScaled(into, Sum::Constant(*value), scale);
  if (const Cast* cast = e.As<Cast>();
      cast != nullptr && IsIndex(cast->a.type()) && e.type().bits >= cast->a.type().bits) {
    return Accumulate(cast->a, scale, into);
  }
  if (const Binary* op = e.As<Binary>()) {
    if (op->op == BinaryOp::kAdd || op->op == BinaryOp::kSub) {
      Accumulate(op->a, scale, into);
      return Accumulate(op->b, op->op == BinaryOp::kAdd ? scale : WrapMul(scale, -1), into);
    }
    if (op->op == BinaryOp::kMul) {
      if (const std::optional<int64_t> c = ConstantValue(op->b)) return Accumulate(op->a, WrapMul(scale, *c), into);
      if (const std::optional<int64_t> c = ConstantValue(op->a)) return Accumulate(op->b, WrapMul(scale, *c), into);
    }
  }
  AddTerm(into, Term{.coefficient = 1, .atom = e}, scale);
}

}  // namespace

Sum SumOf(const Expr& e) {
  Sum sum;
  Accumulate(e, 1, sum);
  return sum;
}

Expr ToExpr(const Term& term, DType type) {
  if (!term.is_split()) return term.atom.type() == type ? term.atom : MakeCast(type, term.atom);
  Expr e = ToExpr(term.source->sum, type);
  if (term.lower != 1) e = FloorDiv(std::move(e), IntConst(term.lower, type));
  if (term.upper != 0) e = FloorMod(std::move(e), IntConst(term.upper, type));
  return e;
}

Expr ToExpr(const Sum& sum, DType type) {
  if (sum.terms.empty()) return IntConst(sum.constant, type);
  // A constant beside a min or max reads better inside it: min(i*16 + 16, n), not min(i*16, n - 16) + 16.
  int64_t constant = sum.constant;
  absl::InlinedVector<const Term*, 8> order;
  for (const Term& term : sum.terms) order.push_back(&term);
  std::stable_sort(order.begin(), order.end(), [](const Term* a, const Term* b) {
    const bool negative_a = a->coefficient < 0, negative_b = b->coefficient < 0;
    if (negative_a != negative_b) return negative_b;
    return negative_a ? a->coefficient < b->coefficient : a->coefficient > b->coefficient;
  });
  Expr total;
  if (order[0]->coefficient < 0 && constant > 0) {
    total = IntConst(constant, type);
    constant = 0;
  }
  for (const Term* term : order) {
    Expr e = ToExpr(*term, type);
    const Binary* choice = e.As<Binary>();
    if (constant != 0 && term->coefficient == 1 && choice != nullptr &&
        (choice->op == BinaryOp::kMin || choice->op == BinaryOp::kMax)) {
      e = MakeBinary(choice->op, Shifted(choice->a, constant), Shifted(choice->b, constant));
      constant = 0;
    }
    const bool subtract = total && term->coefficient < 0 && term->coefficient != INT64_MIN;
    const int64_t factor = subtract ? -term->coefficient : term->coefficient;
    e = std::move(e) * IntConst(factor, type);
    total = !total ? std::move(e) : subtract ? std::move(total) - std::move(e) : std::move(total) + std::move(e);
  }
  return constant == 0 ? total : PlusConstant(std::move(total), constant);
}

}  // namespace hone
