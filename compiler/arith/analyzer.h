// What is known about integers, and what follows from it: simplification, proofs, constant bounds.
//
// The integers are the signed 32- and 64-bit ones of index arithmetic, which is assumed not to overflow (as in C).
// Inside, an expression is a sum of products with an ordered list of terms, so that equal affine expressions come out
// as structurally equal ones, whatever order they were written in. Expressions of other types are kept, their integer
// parts simplified.
//
//   Analyzer known;
//   known.Bind(i, Range{0, 100});
//   known.Simplify(FloorMod(i + 200, 100));                     // i
//   ConstraintScope inside(known, i * 8 + j < 100);             // holds until the end of the scope
//   known.CanProve(i <= 12);
//
// An analyzer belongs to one thread. Building one costs little: passes make their own.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "compiler/ir/expr.h"
#include "compiler/ir/stmt.h"

namespace hone {

// The closed interval of values an expression can take; the ends of int64 stand for "no bound known".
struct Bounds {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();       // as `min`
  static constexpr int64_t kNoneAbove = std::numeric_limits<int64_t>::max();  // as `max`
  int64_t min = kNone;
  int64_t max = kNoneAbove;
  bool bounded_below() const { return min != kNone; }
  bool bounded_above() const { return max != kNoneAbove; }
  bool bounded() const { return bounded_below() && bounded_above(); }
  bool empty() const { return min > max; }
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

using VarRanges = std::map<Var, Range>;  // ordered by creation: iterating is deterministic

class Analyzer {
 public:
  Analyzer();
  explicit Analyzer(const VarRanges& ranges);
  ~Analyzer();
  Analyzer(Analyzer&&) noexcept;
  Analyzer& operator=(Analyzer&&) noexcept;

  // `var` lies in the range, which may mention other variables. Binding again replaces what was known of it; a range of
  // one value binds the value.
  void Bind(const Var& var, const Range& range);
  // `var` is `value`: Simplify replaces it.
  void Bind(const Var& var, const Expr& value);
  void BindBounds(const Var& var, Bounds bounds);
  // `condition` holds from here on; a conjunction gives all its parts. Affine comparisons are used fully, others when
  // the same condition is asked again.
  void Assume(const Expr& condition);

  // Assumptions made and variables bound after Save are forgotten by Restore; calls nest. ConstraintScope does it by
  // scope.
  size_t Save() const;
  void Restore(size_t mark);

  // An expression of the same type and value wherever what is known holds. Cheap to call on what is simple already.
  Expr Simplify(const Expr& e);
  // The simplified ends and body of every statement under the root, loops and predicates known inside them.
  Stmt Simplify(const Stmt& root);

  // True only when it is certain; false says nothing.
  bool CanProve(const Expr& condition);
  bool CanProveEqual(const Expr& a, const Expr& b);
  bool CanProveLess(const Expr& a, const Expr& b);       // a < b
  bool CanProveLessEqual(const Expr& a, const Expr& b);  // a <= b

  // Bounds of an integer expression under what is known.
  Bounds ConstBounds(const Expr& e);
  // The largest m >= 1 such that e is always r modulo m for a constant r; m = 0 when e is the constant r.
  struct Residue {
    int64_t modulus = 1, remainder = 0;
  };
  Residue ResidueOf(const Expr& e);
  bool IsMultipleOf(const Expr& e, int64_t factor);

  struct Impl;  // analyzer_impl.h: for the other files of this folder
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Assumes for as long as it lives.
class ConstraintScope {
 public:
  ConstraintScope(Analyzer& analyzer, const Expr& condition) : analyzer_(analyzer), mark_(analyzer.Save()) {
    analyzer_.Assume(condition);
  }
  ~ConstraintScope() { analyzer_.Restore(mark_); }
  ConstraintScope(const ConstraintScope&) = delete;
  ConstraintScope& operator=(const ConstraintScope&) = delete;

 private:
  Analyzer& analyzer_;
  size_t mark_;
};

// For a single expression.
Expr Simplify(const Expr& e, const VarRanges& ranges = {});
// Every expression of a statement, with the ranges of its loops and the conditions around it.
Stmt Simplify(const Stmt& root);

}  // namespace hone
