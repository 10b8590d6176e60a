#include "compiler/verify/undeclared_access.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/interval_set.h"
#include "compiler/ir/block_accesses.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/sum.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

bool SameExpr(const Expr& a, const Expr& b) { return a.SameAs(b) || StructuralEqual(a, b); }

class CoverCheck {
 public:
  explicit CoverCheck(const Block& block) : block_(block) {}

  bool IsDeclared(const BlockAccess& access) const {
    const auto covered_by = [&](const std::vector<BufferRegion>& regions) {
      return std::ranges::any_of(regions, [&](const BufferRegion& region) { return Covers(region, access); });
    };
    const bool declared = access.write ? covered_by(block_.writes)
                                       : covered_by(block_.reads) || (block_.init && covered_by(block_.writes));
    return declared || (access.nested != nullptr && (StaysDeclared(access) || TouchesDeclared(access)));
  }

 private:
  // Whatever values the loops would give them, the variables of a nested block stay in their domains.
  bool StaysDeclared(const BlockAccess& access) const {
    const BufferRegion in_nested{access.region.buffer, access.in_nested};
    const std::vector<std::pair<Var, Range>> loops = access.LoopsAndDomains();
    return IsDeclared(BlockAccess{in_nested, access.write, loops, access.conditions});
  }

  // The region that a nested block declares may be more than it touches: a hull of accesses, or of what a tile that is
  // cut off would touch if it were whole. Then each of its own accesses has to be declared.
  bool TouchesDeclared(const BlockAccess& access) const {
    const BlockRealize& realize = *access.nested;
    const VarMap bind = [&realize](const Var& var) -> std::optional<Expr> {
      for (size_t i = 0; i < realize.block.iters.size() && i < realize.values.size(); ++i) {
        if (realize.block.iters[i].var == var) return realize.values[i];
      }
      return std::nullopt;
    };
    const Stmt bound = Substitute(Stmt::Make(realize), bind);
    bool declared = true;
    ForEachAccess(bound.As<BlockRealize>()->block, [&](const BlockAccess& inside) {
      if (!declared || inside.write != access.write || inside.region.buffer != access.region.buffer) return;
      std::vector<std::pair<Var, Range>> loops = access.loops;
      loops.insert(loops.end(), inside.loops.begin(), inside.loops.end());
      std::vector<Expr> conditions = access.conditions;
      conditions.insert(conditions.end(), inside.conditions.begin(), inside.conditions.end());
      declared = IsDeclared(
          BlockAccess{inside.region, inside.write, loops, conditions, inside.nested, inside.in_nested, inside.domains});
    });
    return declared;
  }

  bool Covers(const BufferRegion& declared, const BlockAccess& access) const {
    if (declared.buffer != access.region.buffer) return false;
    for (size_t d = 0; d < declared.region.size(); ++d) {
      if (!CoversDimension(declared.region[d], access, d) && !ProvedByAnalyzer(declared.region[d], access, d))
        return false;
    }
    return true;
  }

  // The quick proofs: the whole dimension, the same range, ends that are affine in loops and variables.
  bool CoversDimension(const Range& declared, const BlockAccess& access, size_t d) const {
    const Range& range = access.region.region[d];
    if (IsConst(declared.min, 0) && SameExpr(declared.extent, access.region.buffer.shape()[d])) return true;
    const std::optional<int64_t> have = ConstantValue(declared.extent), need = ConstantValue(range.extent);
    if (SameExpr(declared.min, range.min) &&
        (SameExpr(declared.extent, range.extent) || (have.has_value() && need.has_value() && *need <= *have))) {
      return true;
    }
    const Sum in_front = Difference(SumOf(range.min), SumOf(declared.min));
    Sum behind = Difference(SumOf(declared.extent), SumOf(range.extent));
    AddScaled(behind, in_front, -1);
    return NeverNegative(in_front, access.loops) && NeverNegative(behind, access.loops);
  }

  // With the conditions of the access and all that the analyzer knows of division and minima: first for every iteration
  // of the loops, then for the interval around all of them.
  bool ProvedByAnalyzer(const Range& declared, const BlockAccess& access, size_t d) const {
    Analyzer known;
    for (const IterVar& iter : block_.iters) known.Bind(iter.var, iter.domain);
    for (const auto& [var, range] : access.loops) known.Bind(var, range);
    for (const Expr& condition : access.conditions) known.Assume(condition);
    const Range& range = access.region.region[d];
    SetMap parts;
    const Range apart = {PartsOfLoops(range.min, access, known, parts),
                         PartsOfLoops(range.extent, access, known, parts)};
    const IntervalSet all = EvalRegion({&apart, 1}, parts, known)[0];
    const Expr size = access.region.buffer.shape()[d];
    if (IsConst(range.extent, 1)) {
      known.Assume(range.min >= IntConst(0, range.min.type()));
      known.Assume(range.min < size);
    }
    NamedRemainders remainders;
    const auto not_above = [&](const Expr& a, const Expr& b) {
      return known.CanProveLessEqual(a, b) || known.CanProveLessEqual(WithRemaindersNamed(a, known, remainders),
                                                                      WithRemaindersNamed(b, known, remainders));
    };
    const auto at_least = [&](const Expr& first) { return first && not_above(declared.min, first); };
    const auto at_most = [&](const Expr& last) { return last && not_above(last, declared.min + declared.extent - 1); };
    const Expr last = range.min + range.extent - 1;
    // The region that an inner block declares may end behind the buffer: what it touches does not.
    return (at_least(IntConst(0, declared.min.type())) || at_least(range.min) || at_least(all.min)) &&
           (at_most(size - 1) || at_most(last) || at_most(all.max) || at_most(Min(size - 1, last)) ||
            (all.max && at_most(Min(size - 1, all.max))));
  }

  using NamedRemainders = std::vector<std::pair<Expr, Var>>;

  // The expression with a variable in place of every remainder, x // a % b being taken for x % (a * b) // a, and a
  // remainder that the analyzer takes apart for its parts, (x * 3 + y) % 6 for x % 2 * 3 + y where y is below 3: so
  // what quotients of one remainder have to do with each other is seen.
  static Expr WithRemaindersNamed(const Expr& root, Analyzer& known, NamedRemainders& names) {
    return RewriteBottomUp(root, [&](const Expr& e) -> std::optional<Expr> {
      const Binary* remainder = AsRemainder(e);
      if (remainder == nullptr) return std::nullopt;
      const Binary* quotient = remainder->a.As<Binary>();
      const bool of_quotient =
          quotient != nullptr && quotient->op == BinaryOp::kFloorDiv && ConstantValue(quotient->b).value_or(0) > 0;
      const Expr whole = of_quotient ? FloorMod(quotient->a, quotient->b * remainder->b) : e;
      const Expr parts = RewriteBottomUp(known.Simplify(whole), [&](const Expr& part) -> std::optional<Expr> {
        return AsRemainder(part) == nullptr ? std::nullopt : std::optional<Expr>(NameOf(part, known, names));
      });
      return of_quotient ? FloorDiv(parts, quotient->b) : parts;
    });
  }

  // A scalar's remainder by a positive constant.
  static const Binary* AsRemainder(const Expr& e) {
    const Binary* remainder = e.As<Binary>();
    const bool is_one = remainder != nullptr && remainder->op == BinaryOp::kFloorMod && e.type().is_scalar() &&
                        ConstantValue(remainder->b).value_or(0) > 0;
    return is_one ? remainder : nullptr;
  }

  static Var NameOf(const Expr& remainder, Analyzer& known, NamedRemainders& names) {
    const auto named = std::ranges::find_if(names, [&](const auto& name) { return SameExpr(name.first, remainder); });
    if (named != names.end()) return named->second;
    const Var name("remainder", remainder.type());
    known.Bind(name, Range{IntConst(0, remainder.type()), AsRemainder(remainder)->b});
    names.emplace_back(remainder, name);
    return name;
  }

  static void Addends(const Expr& e, std::vector<Expr>& all) {
    const Binary* sum = e.As<Binary>();
    if (sum == nullptr || sum->op != BinaryOp::kAdd) return all.push_back(e);
    Addends(sum->a, all);
    Addends(sum->b, all);
  }

  static bool IsOfLoops(const Expr& e, const BlockAccess& access) {
    return e.type().is_int() && e.type().is_scalar() && std::ranges::all_of(FreeVars(e), [&](const Var& var) {
             return std::ranges::any_of(access.loops, [&](const auto& loop) { return loop.first == var; });
           });
  }

  // What the analyzer knows, and what the conditions of the access say of the expression: of a multiple of what they
  // bound, give or take a constant.
  static Bounds BoundsOf(const Expr& e, const BlockAccess& access, Analyzer& known) {
    Bounds bounds = known.ConstBounds(e);
    const Sum value = SumOf(e);
    if (value.is_constant()) return bounds;
    for (const Expr& condition : access.conditions) {
      for (const Expr& part : Conjuncts(condition)) {
        const std::optional<Expr> at_most_zero = AtMostZero(part);
        if (!at_most_zero.has_value()) continue;
        const Sum bounded = SumOf(*at_most_zero);
        const Term* same = FindTerm(bounded, value.terms[0]);
        if (same == nullptr || value.terms[0].coefficient % same->coefficient != 0) continue;
        const int64_t factor = value.terms[0].coefficient / same->coefficient;
        Sum rest = value;
        AddScaled(rest, bounded, -factor);
        if (!rest.is_constant()) continue;
        if (factor > 0) bounds.max = std::min(bounds.max, rest.constant);
        if (factor < 0) bounds.min = std::max(bounds.min, rest.constant);
      }
    }
    return bounds;
  }

  // The expression with a variable for every part of it that is made of loops alone, the addends of a sum together;
  // `parts` gets their bounds.
  static Expr PartsOfLoops(const Expr& e, const BlockAccess& access, Analyzer& known, SetMap& parts) {
    if (FreeVars(e).empty()) return e;
    const auto parts_of = [&](const Expr& child) { return PartsOfLoops(child, access, known, parts); };
    if (!IsOfLoops(e, access)) {
      std::vector<Expr> addends;
      Addends(e, addends);
      const auto others = std::ranges::stable_partition(addends, [&](const Expr& a) { return IsOfLoops(a, access); });
      const size_t of_loops = addends.size() - others.size();
      if (of_loops < 2) return MapChildren(e, parts_of);
      Expr together = addends[0];
      for (size_t i = 1; i < of_loops; ++i) together = together + addends[i];
      Expr sum = parts_of(together);
      for (const Expr& other : others) sum = parts_of(other) + sum;
      return sum;
    }
    const Bounds bounds = BoundsOf(e, access, known);
    if (!bounds.bounded() || bounds.empty()) return e;
    const Var part("part", e.type());
    parts[part] = {IntConst(bounds.min, e.type()), IntConst(bounds.max, e.type())};
    return part;
  }

  // Every variable is put at the end of its range that makes the sum least: innermost loops first, the block's own
  // variables last.
  bool NeverNegative(Sum sum, const std::vector<std::pair<Var, Range>>& loops) const {
    for (size_t l = loops.size(); l-- > 0;) {
      if (!PutAtLeast(sum, loops[l].first, loops[l].second)) return false;
    }
    if (!sum.is_constant()) {
      for (const IterVar& iter : block_.iters) {
        if (!PutAtLeast(sum, iter.var, iter.domain)) return false;
      }
    }
    return sum.is_constant() && sum.constant >= 0;
  }
  static bool PutAtLeast(Sum& sum, const Var& var, const Range& range) {
    const Term* term = FindTerm(sum, Term{.atom = var});
    if (term == nullptr) return true;
    const int64_t coefficient = term->coefficient;
    Sum end = SumOf(range.min);
    if (coefficient < 0) {
      const std::optional<int64_t> trips = ConstantValue(range.extent);
      if (!trips.has_value()) return false;
      end.constant += *trips - 1;
    }
    AddTerm(sum, Term{.atom = var}, -coefficient);
    AddScaled(sum, end, coefficient);
    return true;
  }

  const Block& block_;
};

std::string Text(const BufferRegion& region) {
  std::string text = absl::StrCat(region.buffer.name(), "[");
  for (size_t d = 0; d < region.region.size(); ++d) {
    const Range& r = region.region[d];
    absl::StrAppend(&text, d == 0 ? "" : ", ", ToText(r.min));
    if (!IsConst(r.extent, 1)) absl::StrAppend(&text, ":", ToText(ToExpr(SumOf(r.min + r.extent), r.min.type())));
  }
  return text + "]";
}

}  // namespace

std::optional<std::string> UndeclaredAccess(const Block& block) {
  const CoverCheck check(block);
  std::optional<std::string> found;
  ForEachAccess(block, [&](const BlockAccess& access) {
    if (found.has_value() || check.IsDeclared(access)) return;
    std::string declared;
    for (const BufferRegion& region : access.write ? block.writes : block.reads) {
      if (region.buffer == access.region.buffer)
        absl::StrAppend(&declared, declared.empty() ? "" : " and ", Text(region));
    }
    const char* verb = access.write ? "writes" : "reads";
    found = absl::StrCat("the block ", verb, " ", Text(access.region), ", ",
                         declared.empty()
                             ? absl::StrCat("but does not declare that it ", verb, " ", access.region.buffer.name())
                             : absl::StrCat("which is not proven to lie in what it declares, ", declared));
  });
  return found;
}

}  // namespace hone
