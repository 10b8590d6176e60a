#include "compiler/verify/undeclared_access.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer.h"
#include "compiler/arith/interval_set.h"
#include "compiler/ir/block_accesses.h"
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
    if (access.write) return covered_by(block_.writes);
    return covered_by(block_.reads) || (block_.init && covered_by(block_.writes));
  }

 private:
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
    const Expr declared_last = declared.min + declared.extent - 1;
    const auto at_least = [&](const Expr& first) { return first && known.CanProveLessEqual(declared.min, first); };
    const auto at_most = [&](const Expr& last) { return last && known.CanProveLessEqual(last, declared_last); };
    const Expr last = range.min + range.extent - 1;
    // The region that an inner block declares may end behind the buffer: what it touches does not.
    return (at_least(IntConst(0, declared.min.type())) || at_least(range.min) || at_least(all.min)) &&
           (at_most(size - 1) || at_most(last) || at_most(all.max) || at_most(Min(size - 1, last)));
  }

  // The expression with a variable for every part of it that is made of loops alone; `parts` gets their bounds.
  static Expr PartsOfLoops(const Expr& e, const BlockAccess& access, Analyzer& known, SetMap& parts) {
    bool any = false, loops_alone = e.type().is_int() && e.type().is_scalar();
    for (const Var& var : FreeVars(e)) {
      any = true;
      loops_alone &= std::ranges::any_of(access.loops, [&](const auto& loop) { return loop.first == var; });
    }
    if (!any) return e;
    if (!loops_alone)
      return MapChildren(e, [&](const Expr& child) { return PartsOfLoops(child, access, known, parts); });
    const Bounds bounds = known.ConstBounds(e);
    if (!bounds.bounded()) return e;
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
