// The normal form of index expressions: constant + sum of coefficient * term, terms in a fixed order. The one
// representation of affine forms: LinearForm (compiler/arith/linear.h) is what a sum says of chosen variables.
//
// A term is an atom (a variable, a product of atoms, a load, a min, ...) or a split floormod(floordiv(source, lower),
// upper) of another sum, which is how pieces of split and fused loops are told apart and put together again.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "compiler/ir/expr.h"

namespace hone {

struct SumNode;

struct Term {
  int64_t coefficient = 1;
  Expr atom;                  // absent for a split
  Ref<const SumNode> source;  // absent for an atom
  int64_t lower = 1;
  int64_t upper = 0;  // 0: no modulus, the whole quotient
  bool is_split() const { return static_cast<bool>(source); }
};

struct Sum {
  int64_t constant = 0;
  absl::InlinedVector<Term, 4> terms;  // ordered by CompareTerms, no two equal, no coefficient 0

  static Sum Constant(int64_t value) { return {value, {}}; }
  static Sum Atom(Expr atom) {
    Sum sum;
    sum.terms.push_back(Term{.coefficient = 1, .atom = std::move(atom)});
    return sum;
  }
  static Sum Split(const Sum& source, int64_t lower, int64_t upper);
  bool is_constant() const { return terms.empty(); }
  bool has_splits() const { return !terms.empty() && terms.back().is_split(); }  // splits come after atoms
};
struct SumNode : Counted {
  explicit SumNode(Sum s) : sum(std::move(s)) {}
  Sum sum;
};

// A total order, the same whenever variables were created in the same order: -1, 0 or 1.
int CompareExprs(const Expr& a, const Expr& b);
int CompareTerms(const Term& a, const Term& b);  // coefficients do not count
int CompareSums(const Sum& a, const Sum& b);

// a += scale * b. Arithmetic wraps, which is exact wherever the expressions themselves do not overflow.
void AddScaled(Sum& a, const Sum& b, int64_t scale = 1);
void AddTerm(Sum& a, const Term& term, int64_t scale = 1);
Sum Scaled(const Sum& a, int64_t scale);
Sum Difference(const Sum& a, const Sum& b);
// Every coefficient and the constant divided; they are multiples of it.
Sum DividedExactly(const Sum& a, int64_t divisor);
// The greatest common divisor of the coefficients (not of the constant); 0 when there are no terms.
int64_t CoefficientGcd(const Sum& a);
// Where the term is in the sum, or nullptr.
const Term* FindTerm(const Sum& a, const Term& term);

// The sum that an integer expression is as it is written: additions, multiplications by constants and widening casts
// are taken apart, everything else is an atom. Analyzer::Impl::ToSum also uses what is known of variables.
Sum SumOf(const Expr& e);

// The sum as an expression of the type (int32 or int64): larger coefficients first, then what is subtracted, the
// constant last.
Expr ToExpr(const Sum& sum, DType type);
Expr ToExpr(const Term& term, DType type);  // without the coefficient

}  // namespace hone
