// The inside of the analyzer. Four files share it: what is known (analyzer.cc), bounds (bounds.cc), the sums that
// integer expressions become (simplify_int.cc), and conditions (simplify_bool.cc).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/saturating.h"
#include "compiler/ir/shared_results.h"
#include "compiler/ir/sum.h"

namespace hone {

// Index arithmetic: what sums stand for.
inline bool IsIndexType(DType t) { return t.code == TypeCode::kInt && t.lanes == 1 && t.bits >= 32; }

struct Analyzer::Impl {
  // ---- What is known
  struct VarFacts {
    Bounds bounds;
    std::optional<Sum> value;
    Expr replacement;  // the value of a variable that is no index
  };
  // sum <= limit; the sum has no constant.
  struct Fact {
    Sum sum;
    int64_t limit = 0;
    uint64_t owner = 0;  // the variable whose range it came from, 0 when assumed
    bool live = true;
  };
  // What Restore undoes: a variable's former facts, a fact that was switched off, or additions at the ends of the
  // lists.
  struct Change {
    uint64_t var = 0;
    std::optional<VarFacts> before;  // absent: nothing was known
    int64_t retired = -1;
    size_t facts = 0, conditions = 0;  // sizes before
  };
  absl::flat_hash_map<uint64_t, VarFacts> vars;
  std::deque<Fact> facts;        // references hold while more are added
  std::vector<Expr> conditions;  // simplified conditions that hold and are no affine comparison
  std::vector<Change> changes;
  int facts_in_use = 0;  // how many calls of UpperFromFacts are under way

  void Bind(const Var& var, const Range& range);
  void Bind(const Var& var, const Expr& value);
  void SetVar(const Var& var, VarFacts now);
  void Assume(const Expr& condition) { Know(SimplifyBool(condition)); }
  void Know(const Expr& condition);  // that it holds; it is simplified, and so are the sides of an and
  void AddFact(Sum sum, int64_t limit, uint64_t owner = 0);
  size_t Save() const { return changes.size(); }
  void Restore(size_t mark);

  // ---- Bounds
  Bounds BoundsOf(const Sum& sum, int depth = 2);
  Bounds BoundsOf(const Term& term, int depth);
  Bounds AtomBounds(const Expr& atom, int depth);
  Bounds BinaryBounds(const Binary& op, int depth);  // of an atom: no sum, no multiple, no piece
  Bounds ChoiceBounds(const Binary& op, int depth);  // of a min or max
  Bounds PlainBounds(const Sum& sum, int depth);     // term by term
  Bounds QuotientBounds(const Sum& sum, int depth);  // by pairs of quotients
  Bounds QuotientsApart(const Sum& x, const Bounds& d, int64_t l);
  int64_t UpperFromFacts(const Sum& sum, int depth);
  Residue ResidueOf(const Sum& sum);

  // ---- Integers
  Sum ToSum(const Expr& e);   // canonical, pieces recombined; e is of index type
  Sum Linear(const Expr& e);  // the same before recombination
  void Accumulate(const Expr& e, int64_t scale, Sum& into);
  Sum AtomOf(const Expr& e);  // e's children simplified, e itself one term
  Sum ExclusiveOr(const Expr& e);
  Sum Product(const Sum& a, const Sum& b, DType type);  // here and below: the type new atoms get
  Sum Div(const Sum& s, int64_t divisor);               // floor, divisor not 0
  Sum Mod(const Sum& s, int64_t divisor);
  std::pair<Sum, Sum> DivMod(Sum s, int64_t divisor, int depth = 0);
  // Of a sum without multiples of the divisor: nullopt where it is not of the form.
  std::optional<std::pair<Sum, Sum>> DivModByCommonDivisor(const Sum& s, int64_t divisor, int depth);
  static std::optional<std::pair<Sum, Sum>> DivModOfPiece(const Sum& s, int64_t divisor);
  std::optional<std::pair<Sum, Sum>> DivModOfQuotient(const Sum& s, int64_t divisor, int depth);
  Sum DivModBySum(BinaryOp op, const Sum& s, const Sum& divisor, DType type);
  using Sides = absl::InlinedVector<Sum, 4>;  // the operands of a min or max
  // Drops every side that is provably never the smaller (kMin) or the larger (kMax) of some other one.
  void DropDominated(BinaryOp op, Sides& sides);
  Sum Choose(BinaryOp op, const Sum& a, const Sum& b, DType type);
  Sum Recombined(Sum s);
  bool RecombineOnce(Sum& s);
  bool PushIntoChoice(Sum& s);
  bool FitsInt32(const Sum& s);
  Expr Materialize(const Sum& s, DType type);

  // ---- Everything
  Expr Simplify(const Expr& e);
  Expr SimplifyBool(const Expr& e);
  Expr SimplifyComparison(const Binary& op);
  Expr CompareZero(BinaryOp op, Sum difference, DType type);  // op is kLe, kEq or kNe: difference op 0
  Expr EqualsZero(BinaryOp op, Sum difference, DType type);   // op is kEq or kNe
  Expr AtMostZero(Sum difference, DType type);
  // A sum that is at most 0 where d is at most k, which is simpler; nullopt when there is none.
  std::optional<Sum> WithoutSmallTerms(const Sum& d, int64_t k);
  std::optional<Sum> WithoutQuotient(const Sum& d, int64_t k);
  Expr PrintAtMost(const Sum& d, int64_t k, DType type);
  Expr SimplifyJunction(const Binary& op);
  Expr Negated(const Expr& condition);  // simplified, of a simplified condition
  template <class Choice>
  Expr SimplifyChoice(const Expr& e, const Choice& choice);
  Expr SimplifyLet(const Expr& e, const LetExpr& let);
  std::optional<bool> KnownCondition(const Expr& condition);

  // What was simplified in the present call of Simplify, in layers: each holds under what was known when it began. What
  // an outer layer says of an expression is right in an inner one too, and as simple unless it mentions a variable that
  // the inner layer is about.
  struct Layer {
    std::set<Var> about;
    bool used = true;
    SharedResults simplified;
  };
  std::vector<Layer> layers;
  template <class Compute>
  Expr Once(const Expr& e, const Compute& compute);

  // What is assumed or bound while it lives holds for that time alone, and so does what is simplified under it.
  class Supposing {
   public:
    Supposing(Impl& impl, std::set<Var> about) : Supposing(impl, Layer{.about = std::move(about)}) {}
    // Where assumptions come and go: nothing is kept.
    explicit Supposing(Impl& impl) : Supposing(impl, Layer{.used = false}) {}
    ~Supposing() {
      impl_.layers.pop_back();
      impl_.Restore(mark_);
    }
    Supposing(const Supposing&) = delete;
    Supposing& operator=(const Supposing&) = delete;

   private:
    Supposing(Impl& impl, Layer layer) : impl_(impl), mark_(impl.Save()) { impl_.layers.push_back(std::move(layer)); }

    Impl& impl_;
    size_t mark_;
  };
};

}  // namespace hone
