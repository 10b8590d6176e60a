#include "compiler/arith/interval_set.h"

#include <algorithm>

#include "compiler/arith/analyzer_impl.h"
#include "compiler/ir/visit.h"
#include "compiler/support/check.h"

namespace hone {
namespace {

struct Ends {
  std::optional<Sum> min, max;
};

// Intervals of sums. The domains of the relaxed variables are known to the analyzer while it works, so that what
// depends on their bounds is simplified; the ends themselves never mention them.
class SetEvaluator {
 public:
  SetEvaluator(const SetMap& domains, Analyzer& known) : known_(known.impl()), mark_(known.Save()) {
    for (const auto& [var, set] : domains) {
      Ends ends;
      if (set.min) ends.min = known_.ToSum(set.min);
      if (set.max) ends.max = known_.ToSum(set.max);
      domains_.emplace(var.id(), std::move(ends));
    }
    for (const auto& [var, set] : domains) {
      if (set.bounded()) known.Bind(var, Range{set.min, set.max - set.min + 1});
      else known.BindBounds(var, {});
    }
  }
  ~SetEvaluator() { known_.Restore(mark_); }

  IntervalSet Evaluate(const Expr& e) {
    const Ends ends = Of(known_.ToSum(e), e.type());
    return {ends.min ? known_.Materialize(*ends.min, e.type()) : Expr(),
            ends.max ? known_.Materialize(*ends.max, e.type()) : Expr()};
  }

 private:
  bool Relaxed(const Expr& e) const {
    bool found = false;
    ForEachExpr(e, [&](const Expr& part) {
      const VarRef* ref = part.As<VarRef>();
      found = found || (ref != nullptr && domains_.contains(ref->var.id()));
      return !found;
    });
    return found;
  }
  bool Relaxed(const Sum& s) const {
    return std::any_of(s.terms.begin(), s.terms.end(), [&](const Term& t) { return Relaxed(t); });
  }
  bool Relaxed(const Term& t) const { return t.is_split() ? Relaxed(t.source->sum) : Relaxed(t.atom); }

  Ends Of(const Sum& s, DType type) {
    Ends total{Sum::Constant(s.constant), Sum::Constant(s.constant)};
    for (const Term& term : s.terms) {
      if (!Relaxed(term)) {
        if (total.min) AddTerm(*total.min, term);
        if (total.max) AddTerm(*total.max, term);
        continue;
      }
      Ends part = Of(term, type);
      if (term.coefficient < 0) std::swap(part.min, part.max);
      Accumulate(total.min, part.min, term.coefficient);
      Accumulate(total.max, part.max, term.coefficient);
    }
    if (total.min) total.min = known_.Recombined(*std::move(total.min));
    if (total.max) total.max = known_.Recombined(*std::move(total.max));
    return total;
  }
  static void Accumulate(std::optional<Sum>& total, const std::optional<Sum>& part, int64_t scale) {
    if (!part) total.reset();
    else if (total) AddScaled(*total, *part, scale);
  }

  // One term, without its coefficient.
  Ends Of(const Term& term, DType type) {
    if (!term.is_split()) return OfAtom(term.atom);
    Ends ends = Of(term.source->sum, type);
    if (term.lower != 1) {
      if (ends.min) ends.min = known_.Div(*ends.min, term.lower);
      if (ends.max) ends.max = known_.Div(*ends.max, term.lower);
    }
    if (term.upper == 0) return ends;
    if (ends.min && ends.max) {  // the quotient does not change: the remainder runs from end to end
      const Sum first = known_.Div(*ends.min, term.upper), last = known_.Div(*ends.max, term.upper);
      const Sum apart = known_.Recombined(Difference(last, first));
      if (apart.is_constant() && apart.constant == 0)
        return {known_.Mod(*ends.min, term.upper), known_.Mod(*ends.max, term.upper)};
    }
    return {Sum::Constant(0), Sum::Constant(term.upper - 1)};
  }

  Ends OfAtom(const Expr& atom) {
    if (const VarRef* ref = atom.As<VarRef>()) return domains_.at(ref->var.id());
    const DType type = atom.type();
    if (const Binary* op = atom.As<Binary>()) {
      if (op->op == BinaryOp::kMin || op->op == BinaryOp::kMax) {
        const Ends a = Of(known_.ToSum(op->a), type), b = Of(known_.ToSum(op->b), type);
        return {Choose(op->op, a.min, b.min, type), Choose(op->op, a.max, b.max, type)};
      }
      if (op->op == BinaryOp::kMul && Relaxed(op->a) != Relaxed(op->b)) {
        const Expr& fixed = Relaxed(op->a) ? op->b : op->a;
        const Expr& moving = Relaxed(op->a) ? op->a : op->b;
        const Sum factor = known_.ToSum(fixed);
        const Bounds sign = known_.BoundsOf(factor);
        Ends ends = Of(known_.ToSum(moving), type);
        if (sign.max <= 0) std::swap(ends.min, ends.max);
        if (sign.min >= 0 || sign.max <= 0) {
          if (ends.min) ends.min = known_.Product(*ends.min, factor, type);
          if (ends.max) ends.max = known_.Product(*ends.max, factor, type);
          return ends;
        }
      }
      if (op->op == BinaryOp::kFloorDiv && !Relaxed(op->b)) {
        const Sum divisor = known_.ToSum(op->b);
        if (known_.BoundsOf(divisor).min >= 1) {
          Ends ends = Of(known_.ToSum(op->a), type);
          if (ends.min) ends.min = known_.DivModBySum(op->op, *ends.min, divisor, type);
          if (ends.max) ends.max = known_.DivModBySum(op->op, *ends.max, divisor, type);
          return ends;
        }
      }
      if (op->op == BinaryOp::kFloorMod && !Relaxed(op->b)) {
        Sum divisor = known_.ToSum(op->b);
        if (known_.BoundsOf(divisor).min >= 1) {
          divisor.constant -= 1;
          return {Sum::Constant(0), divisor};
        }
      }
    }
    const Expr *yes = nullptr, *no = nullptr;
    if (const Select* choice = atom.As<Select>()) yes = &choice->yes, no = &choice->no;
    if (const IfThenElseExpr* choice = atom.As<IfThenElseExpr>()) yes = &choice->yes, no = &choice->no;
    if (yes != nullptr) {
      const Ends a = Of(known_.ToSum(*yes), type), b = Of(known_.ToSum(*no), type);
      return {Choose(BinaryOp::kMin, a.min, b.min, type), Choose(BinaryOp::kMax, a.max, b.max, type)};
    }
    const Bounds bounds = known_.AtomBounds(atom, 2);
    Ends ends;
    if (bounds.bounded_below()) ends.min = Sum::Constant(bounds.min);
    if (bounds.bounded_above()) ends.max = Sum::Constant(bounds.max);
    return ends;
  }
  std::optional<Sum> Choose(BinaryOp op, const std::optional<Sum>& a, const std::optional<Sum>& b, DType type) {
    if (!a || !b) return std::nullopt;
    return known_.Choose(op, *a, *b, type);
  }

  Analyzer::Impl& known_;
  size_t mark_;
  absl::flat_hash_map<uint64_t, Ends> domains_;
};

Expr Combine(BinaryOp op, const Expr& a, const Expr& b, Analyzer& known) {
  if (!a || !b) return Expr();
  return known.Simplify(MakeBinary(op, a, b));
}

// Clipped to [0, extent of the buffer's dimension), whole when nothing is known.
Range ToClippedRange(const IntervalSet& set, const Expr& whole, Analyzer& known, bool constant_extent) {
  if (!set.bounded()) return {IntConst(0, whole.type()), whole};
  Analyzer::Impl& impl = known.impl();
  const DType type = set.min.type();
  const auto extent_of = [&](const Sum& min, const Sum& max) {
    Sum extent = Difference(max, min);
    extent.constant += 1;
    return impl.Recombined(std::move(extent));
  };
  Sum edge = impl.ToSum(whole);
  edge.constant -= 1;
  const Sum min = impl.ToSum(set.min), max = impl.ToSum(set.max);
  const Sum first = impl.Choose(BinaryOp::kMax, min, Sum::Constant(0), type);
  const Sum last = impl.Choose(BinaryOp::kMin, max, edge, type);
  Sum extent = extent_of(first, last);
  if (constant_extent && !extent.is_constant()) {
    // Both bound the number of elements: the clipped interval and the unclipped one.
    const int64_t most = std::min(impl.BoundsOf(extent).max, impl.BoundsOf(extent_of(min, max)).max);
    if (most != kPlusInf) extent = Sum::Constant(std::max<int64_t>(most, 0));
    // As long as the dimension: it starts at 0, whether that can be seen or not.
    const std::optional<int64_t> size = ConstantValue(whole);
    if (size.has_value() && extent.is_constant() && extent.constant >= *size) return {IntConst(0, whole.type()), whole};
  }
  return {impl.Materialize(first, type), impl.Materialize(extent, type)};
}

}  // namespace

IntervalSet IntervalSet::FromRange(const Range& range) { return {range.min, range.min + range.extent - 1}; }

SetMap ToSets(const VarRanges& ranges) {
  SetMap sets;
  for (const auto& [var, range] : ranges) sets.emplace(var, IntervalSet::FromRange(range));
  return sets;
}

IntervalSet EvalSet(const Expr& e, const SetMap& domains, Analyzer& known) {
  return SetEvaluator(domains, known).Evaluate(e);
}

std::vector<IntervalSet> EvalRegion(std::span<const Range> region, const SetMap& domains, Analyzer& known) {
  SetEvaluator evaluator(domains, known);
  std::vector<IntervalSet> sets;
  for (const Range& range : region) {
    const IntervalSet first = evaluator.Evaluate(range.min);
    if (IsConst(range.extent, 1)) sets.push_back(first);
    else sets.push_back({first.min, evaluator.Evaluate(range.min + range.extent - 1).max});
  }
  return sets;
}

IntervalSet Union(const IntervalSet& a, const IntervalSet& b, Analyzer& known) {
  return {Combine(BinaryOp::kMin, a.min, b.min, known), Combine(BinaryOp::kMax, a.max, b.max, known)};
}

IntervalSet Intersect(const IntervalSet& a, const IntervalSet& b, Analyzer& known) {
  const auto end = [&](BinaryOp op, const Expr& x, const Expr& y) {
    return !x ? y : !y ? x : Combine(op, x, y, known);
  };
  return {end(BinaryOp::kMax, a.min, b.min), end(BinaryOp::kMin, a.max, b.max)};
}

std::optional<Range> ToRange(const IntervalSet& set, Analyzer& known) {
  if (!set.bounded()) return std::nullopt;
  return Range{known.Simplify(set.min), known.Simplify(set.max - set.min + 1)};
}

std::optional<int64_t> MaxExtent(const IntervalSet& set, Analyzer& known) {
  if (!set.bounded()) return std::nullopt;
  const Bounds bounds = known.ConstBounds(set.max - set.min + 1);
  return bounds.bounded_above() ? std::optional(bounds.max) : std::nullopt;
}

std::vector<Range> RelaxRegion(const BufferRegion& access, const SetMap& domains, Analyzer& known,
                               bool constant_extent) {
  const std::vector<IntervalSet> sets = EvalRegion(access.region, domains, known);
  std::vector<Range> region;
  for (size_t i = 0; i < sets.size(); ++i) {
    region.push_back(ToClippedRange(sets[i], access.buffer.shape()[i], known, constant_extent));
  }
  return region;
}

std::vector<Range> UnionRegions(std::span<const std::vector<Range>> accesses, const std::vector<Expr>& shape,
                                Analyzer& known, bool constant_extent) {
  HONE_CHECK(!accesses.empty());
  std::vector<Range> region;
  for (size_t i = 0; i < shape.size(); ++i) {
    IntervalSet all = IntervalSet::FromRange(accesses[0][i]);
    std::vector<const Range*> distinct = {&accesses[0][i]};
    for (size_t k = 1; k < accesses.size(); ++k) {
      const Range& range = accesses[k][i];
      const bool new_one = std::none_of(distinct.begin(), distinct.end(), [&](const Range* other) {
        return CompareExprs(range.min, other->min) == 0 && CompareExprs(range.extent, other->extent) == 0;
      });
      if (!new_one) continue;
      distinct.push_back(&range);
      all = Union(all, IntervalSet::FromRange(range), known);
    }
    region.push_back(ToClippedRange(all, shape[i], known, constant_extent));
  }
  return region;
}

}  // namespace hone
