#include "compiler/arith/iter_map.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/arith/analyzer_impl.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/visit.h"
#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

absl::Status Refuse(const std::string& why) { return absl::InvalidArgumentError(why); }

// A fusion of terms: scales form a mixed radix, so its values number [0, extent) without gaps.
struct Fusion {
  Sum sum;                   // what was fused, no constant, smallest coefficient 1
  std::vector<Term> leaves;  // sum's terms
  Sum extent = Sum::Constant(1);
};

bool IsMultipleOf(const Sum& sum, int64_t factor) {
  return sum.constant % factor == 0 && CoefficientGcd(sum) % factor == 0;
}

class Detector {
 public:
  Detector(const VarRanges& loops, bool require_all_loops) : known_(loops), require_all_(require_all_loops) {
    for (const auto& [var, range] : loops) loops_.emplace(var.id(), var);
  }

  absl::StatusOr<IterMap> Run(std::span<const Expr> values, const VarRanges& loops, const Expr& predicate) {
    for (const auto& [var, range] : loops) {
      const Sum extent = known_.impl().ToSum(range.extent);
      if (std::ranges::any_of(extent.terms, [&](const Term& term) { return MentionsLoop(term); })) {
        return Refuse(
            absl::StrCat("the extent of loop ", var.name(), ", ", ToText(range.extent), ", depends on another loop"));
      }
      extents_[var.id()] = extent;
      const Expr min = known_.Simplify(range.min);
      if (!IsConst(min, 0) && !(extent.is_constant() && extent.constant <= 1)) {
        return Refuse(absl::StrCat("loop ", var.name(), " starts at ", ToText(min), ", not at 0; normalize it first"));
      }
    }
    if (predicate) HONE_RETURN_IF_ERROR(AddConstraints(predicate));
    IterMap map;
    for (const Expr& value : values) {
      absl::StatusOr<IterValue> found = Detect(value, map);
      if (!found.ok()) return Annotate(found.status(), absl::StrCat("binding ", ToText(value)));
      map.values.push_back(*std::move(found));
    }
    HONE_RETURN_IF_ERROR(CheckUse(loops));
    return map;
  }

 private:
  // ---- Predicates: conjunctions of terms < limit. Those that others are made of come first: sums that pieces are cut
  // from before the pieces, small sums before larger ones.
  static int Depth(const Sum& sum) {
    int depth = 0;
    for (const Term& term : sum.terms) depth = std::max(depth, term.is_split() ? Depth(term.source->sum) + 1 : 0);
    return depth;
  }
  absl::Status AddConstraints(const Expr& predicate) {
    std::vector<std::pair<Sum, Sum>> limits;  // sum of loops < limit
    for (const Expr& part : Conjuncts(known_.Simplify(predicate))) {
      const Binary* op = part.As<Binary>();
      if (op == nullptr || !IsIndexType(op->a.type()) || (op->op != BinaryOp::kLt && op->op != BinaryOp::kLe)) {
        return Refuse(absl::StrCat("predicate ", ToText(part), " is not of the form `sum of loops < limit`"));
      }
      const Sum difference = Difference(known_.impl().ToSum(op->a), known_.impl().ToSum(op->b));
      Sum sum, limit = Sum::Constant((op->op == BinaryOp::kLe ? 1 : 0) - difference.constant);
      for (const Term& term : difference.terms) MentionsLoop(term) ? AddTerm(sum, term) : AddTerm(limit, term, -1);
      limits.emplace_back(std::move(sum), std::move(limit));
    }
    std::stable_sort(limits.begin(), limits.end(), [](const auto& a, const auto& b) {
      return std::pair(Depth(a.first), a.first.terms.size()) < std::pair(Depth(b.first), b.first.terms.size());
    });
    for (auto& [sum, limit] : limits) {
      const int64_t scale = CoefficientGcd(sum);
      if (scale == 0) return Refuse(absl::StrCat("predicate ", Text(limit), " > 0 mentions no loop"));
      sum = DividedExactly(sum, scale);
      absl::StatusOr<Fusion> fused = Fuse(sum);
      if (!fused.ok()) return Annotate(fused.status(), absl::StrCat("predicate on ", Text(sum)));
      limit.constant += scale - 1;
      const Sum count = known_.impl().Div(limit, scale);
      const Sum cut = known_.impl().Recombined(Difference(fused->extent, count));
      if (known_.impl().BoundsOf(cut).min >= 0) fused->extent = count;
      else if (known_.impl().BoundsOf(cut).max > 0)
        return Refuse(absl::StrCat("predicate on ", Text(sum), ": which of ", Text(fused->extent), " and ", Text(count),
                                   " is less is not known"));
      constraint_used_.push_back(false);
      constraints_.push_back(*std::move(fused));
    }
    return absl::OkStatus();
  }

  // How many values a term takes: of a loop, or of a piece of a fusion.
  absl::StatusOr<Sum> ExtentOf(const Term& term) {
    if (!term.is_split()) {
      const VarRef* ref = term.atom.As<VarRef>();
      if (ref == nullptr || !loops_.contains(ref->var.id())) {
        return Refuse(absl::StrCat(ToText(term.atom), " is not affine in the loops"));
      }
      return extents_.at(ref->var.id());
    }
    HONE_ASSIGN_OR_RETURN(const Sum source, SourceExtent(term.source->sum));
    const int64_t part = term.upper == 0 ? term.lower : term.lower * term.upper;
    if (!IsMultipleOf(source, part)) {
      return Refuse(absl::StrCat(Text(term), " does not divide the ", Text(source), " values of ",
                                 Text(term.source->sum), " evenly"));
    }
    return term.upper == 0 ? DividedExactly(source, term.lower) : Sum::Constant(term.upper);
  }
  // A source of pieces is one loop, or a fusion of loops that starts at 0.
  absl::StatusOr<Sum> SourceExtent(const Sum& source) {
    Sum bare = source;
    bare.constant = 0;
    if (source.constant != 0 || bare.terms.empty()) return Refuse(absl::StrCat(Text(source), " does not start at 0"));
    if (CoefficientGcd(bare) != 1) return Refuse(absl::StrCat(Text(source), " skips values"));
    HONE_ASSIGN_OR_RETURN(const Fusion fused, Fuse(bare));
    return fused.extent;
  }

  std::string Text(const Sum& sum) { return ToText(ToExpr(sum, known_.impl().FitsInt32(sum) ? kInt32 : kInt64)); }
  std::string Text(const Term& term) {
    Sum sum;
    sum.terms.push_back(term);
    sum.terms[0].coefficient = 1;
    return Text(sum);
  }

  // The terms of a sum as a mixed radix; constraints that cover some of them make one digit of those.
  struct Digit {
    std::vector<Term> leaves;
    Sum extent = Sum::Constant(1);
    int constraint = -1;
  };
  absl::StatusOr<std::vector<Digit>> Digits(const Sum& sum) {
    std::vector<Digit> digits;
    Sum left = sum;
    left.constant = 0;
    int64_t expected = 1;
    while (!left.terms.empty()) {
      const Term* next = nullptr;
      for (const Term& term : left.terms) {
        if (term.coefficient < 0) return Refuse(absl::StrCat(Text(term), " runs backwards"));
        if (next == nullptr || term.coefficient < next->coefficient) next = &term;
      }
      if (next->coefficient != expected) {
        return Refuse(absl::StrCat(
            "the factor of ", Text(*next), " is ", next->coefficient, ", but the parts below it take ", expected,
            next->coefficient < expected ? " values: they overlap" : " values: they leave gaps"));
      }
      Digit digit;
      for (int c = static_cast<int>(constraints_.size()) - 1; c >= 0; --c) {  // the one with most terms that fits
        const Fusion& fusion = constraints_[c];
        const bool fits = std::all_of(fusion.leaves.begin(), fusion.leaves.end(), [&](const Term& leaf) {
          const Term* own = FindTerm(left, leaf);
          return own != nullptr && own->coefficient == leaf.coefficient * expected;
        });
        if (!fits) continue;
        digit = {fusion.leaves, fusion.extent, c};
        break;
      }
      if (digit.constraint < 0) {
        HONE_ASSIGN_OR_RETURN(digit.extent, ExtentOf(*next));
        digit.leaves = {*next};
        digit.leaves[0].coefficient = 1;
      }
      const Term lowest = *next;  // which goes from `left` with its leaves
      for (const Term& leaf : digit.leaves) AddTerm(left, leaf, -expected);
      if (!digit.extent.is_constant() && !left.terms.empty()) {
        return Refuse(absl::StrCat(Text(lowest), " takes ", Text(digit.extent),
                                   " values, which is symbolic, and others lie above it"));
      }
      expected *= digit.extent.constant;
      digits.push_back(std::move(digit));
    }
    return digits;
  }
  absl::StatusOr<Fusion> Fuse(const Sum& sum) {
    HONE_ASSIGN_OR_RETURN(const std::vector<Digit> digits, Digits(sum));
    Fusion fused{.sum = sum, .leaves = {sum.terms.begin(), sum.terms.end()}};
    fused.extent = ExtentOf(digits);
    return fused;
  }
  // All but the last are constant.
  static Sum ExtentOf(const std::vector<Digit>& digits) {
    Sum extent = Sum::Constant(1);
    for (const Digit& digit : digits) extent = Scaled(digit.extent, extent.constant);
    return extent;
  }

  absl::StatusOr<IterValue> Detect(const Expr& value, IterMap& map) {
    if (!IsIndexType(value.type())) return Refuse("is not an integer");
    Sum sum = known_.impl().ToSum(value), moving;
    Sum base = Sum::Constant(sum.constant);
    for (const Term& term : sum.terms) AddTerm(MentionsLoop(term) ? moving : base, term);
    IterValue found{.base = ToExpr(base, value.type())};
    const int64_t unit = std::max<int64_t>(CoefficientGcd(moving), 1);
    HONE_ASSIGN_OR_RETURN(const std::vector<Digit> digits, Digits(DividedExactly(moving, unit)));
    int64_t scale = unit;
    for (const Digit& digit : digits) {
      if (digit.constraint >= 0) MarkConstraint(digit.constraint);
      for (const Term& leaf : digit.leaves) {
        if (!Use(leaf)) return Refuse(absl::StrCat("uses ", Text(leaf), ", which another binding uses too"));
      }
      found.pieces.insert(found.pieces.begin(), PieceOf(digit, scale, value.type(), map));
      scale *= digit.extent.constant;
    }
    Sum extent = Scaled(ExtentOf(digits), unit);
    extent.constant -= unit - 1;
    found.extent = known_.impl().Materialize(extent, value.type());
    return found;
  }

  IterPiece PieceOf(const Digit& digit, int64_t scale, DType type, IterMap& map) {
    IterSource source;
    IterPiece piece{.extent = known_.impl().Materialize(digit.extent, type), .scale = scale};
    Sum of;
    if (digit.constraint < 0 && digit.leaves[0].is_split()) {
      of = digit.leaves[0].source->sum;
      piece.lower_factor = digit.leaves[0].lower;
    } else {
      for (const Term& leaf : digit.leaves) AddTerm(of, leaf);
    }
    std::vector<Term> terms(of.terms.begin(), of.terms.end());
    std::stable_sort(terms.begin(), terms.end(),
                     [](const Term& a, const Term& b) { return a.coefficient > b.coefficient; });
    for (const Term& term : terms) {
      for (const Var& var : FreeVars(ToExpr(term, kInt64))) {
        if (std::ranges::find(source.loops, var) == source.loops.end()) source.loops.push_back(var);
      }
    }
    for (size_t i = 0; i < source_sums_.size(); ++i) {
      if (CompareSums(source_sums_[i], of) == 0) {
        piece.source = static_cast<int>(i);
        return piece;
      }
    }
    source_sums_.push_back(of);
    piece.source = static_cast<int>(map.sources.size());
    map.sources.push_back(std::move(source));
    return piece;
  }

  bool MentionsLoop(const Term& term) const {
    for (const Var& var : FreeVars(ToExpr(term, kInt64))) {
      if (loops_.contains(var.id())) return true;
    }
    return false;
  }
  void MarkConstraint(int c) {
    constraint_used_[c] = true;
    for (int inner = 0; inner < c; ++inner) {  // those whose leaves it contains
      const auto& leaves = constraints_[inner].leaves;
      if (std::all_of(leaves.begin(), leaves.end(),
                      [&](const Term& leaf) { return FindTerm(constraints_[c].sum, leaf) != nullptr; })) {
        constraint_used_[inner] = true;
      }
    }
  }

  // ---- Every piece at most once, and together all of every loop.
  struct Span {
    int64_t lower, upper;  // the digits [lower, upper) of the source, as factors
  };
  struct Source {
    Sum sum;
    std::vector<Span> spans;
  };
  bool Use(const Term& leaf) {
    Sum source = Sum::Atom(leaf.atom);
    Span span{1, 0};  // 0: to the end
    if (leaf.is_split()) {
      source = leaf.source->sum;
      span = {leaf.lower, leaf.upper == 0 ? 0 : leaf.lower * leaf.upper};
    }
    for (Source& seen : used_) {
      if (CompareSums(seen.sum, source) != 0) continue;
      for (const Span& other : seen.spans) {
        const bool before = other.upper != 0 && other.upper <= span.lower;
        const bool after = span.upper != 0 && span.upper <= other.lower;
        if (!before && !after) return false;
      }
      seen.spans.push_back(span);
      return true;
    }
    used_.push_back({source, {span}});
    const absl::StatusOr<std::vector<Digit>> digits = Digits(source);
    if (!digits.ok()) return false;
    for (const Digit& digit : *digits) {
      if (digit.constraint >= 0) MarkConstraint(digit.constraint);
    }
    if (source.terms.size() == 1 && !source.terms[0].is_split()) return true;
    for (Term part : source.terms) {  // a fusion uses up what it is made of
      part.coefficient = 1;
      if (!Use(part)) return false;
    }
    return true;
  }

  absl::Status CheckUse(const VarRanges& loops) {
    for (size_t c = 0; c < constraints_.size(); ++c) {
      if (!constraint_used_[c]) {
        return Refuse(
            absl::StrCat("predicate on ", Text(constraints_[c].sum), " cuts values that no single binding has"));
      }
    }
    for (const Source& source : used_) {
      HONE_ASSIGN_OR_RETURN(const Sum extent, SourceExtent(source.sum));
      std::vector<Span> spans = source.spans;
      std::ranges::sort(spans, {}, &Span::lower);
      int64_t reached = 1;
      for (const Span& span : spans) {
        if (span.lower != reached) break;
        reached = span.upper;
        if (reached == 0) break;  // to the end
      }
      const bool whole = reached == 0 || (extent.is_constant() && extent.constant == reached);
      if (!whole && require_all_) {
        return Refuse(absl::StrCat("only a part of ", Text(source.sum),
                                   " is used: the block would run several times for the same values"));
      }
    }
    if (!require_all_) return absl::OkStatus();
    for (const auto& loop : loops) {
      const Var& var = loop.first;
      const Sum& extent = extents_.at(var.id());
      if (extent.is_constant() && extent.constant == 1) continue;
      const bool used = std::any_of(used_.begin(), used_.end(), [&](const Source& s) {
        const VarRef* ref = s.sum.terms.size() == 1 ? s.sum.terms[0].atom.As<VarRef>() : nullptr;
        return ref != nullptr && ref->var == var;
      });
      if (!used) {
        return Refuse(absl::StrCat("no binding uses loop ", var.name(), ": the block would run ", Text(extent),
                                   " times for the same values"));
      }
    }
    return absl::OkStatus();
  }

  Analyzer known_;
  bool require_all_;
  absl::flat_hash_map<uint64_t, Var> loops_;
  absl::flat_hash_map<uint64_t, Sum> extents_;
  std::vector<Fusion> constraints_;
  std::vector<bool> constraint_used_;
  std::vector<Sum> source_sums_;
  std::vector<Source> used_;
};

}  // namespace

absl::StatusOr<IterMap> DetectIterMap(std::span<const Expr> values, const VarRanges& loops, const Expr& predicate,
                                      bool require_all_loops) {
  return Detector(loops, require_all_loops).Run(values, loops, predicate);
}

absl::Status CheckBindings(const BlockRealize& realize, const VarRanges& loops, Analyzer& known) {
  const Block& block = realize.block;
  const auto annotate = [&](const absl::Status& status) {
    return Annotate(status, absl::StrCat("block ", block.name));
  };
  std::vector<Expr> values;
  std::vector<const IterVar*> iters;
  bool any_opaque = false;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const IterVar& iter = block.iters[i];
    const Expr& value = realize.values[i];
    if (iter.kind == IterKind::kOpaque) {
      any_opaque = true;
      const size_t mark = known.Save();
      for (const auto& [var, range] : loops) known.Bind(var, range);
      const bool inside = known.CanProveLessEqual(iter.domain.min, value) &&
                          known.CanProveLess(value, iter.domain.min + iter.domain.extent);
      known.Restore(mark);
      if (!inside)
        return annotate(Refuse(absl::StrCat("binding ", ToText(value), " may leave the domain of ", iter.var.name())));
      continue;
    }
    values.push_back(value);
    iters.push_back(&iter);
  }
  const absl::StatusOr<IterMap> map = DetectIterMap(values, loops, realize.predicate, !any_opaque);
  if (!map.ok()) return annotate(map.status());
  for (size_t i = 0; i < iters.size(); ++i) {
    const Range& domain = iters[i]->domain;
    const IterValue& value = map->values[i];
    const int64_t smallest = value.pieces.empty() ? 1 : value.pieces.back().scale;
    if (smallest != 1)
      return annotate(Refuse(absl::StrCat("binding ", ToText(values[i]), " skips values of ", iters[i]->var.name())));
    if (!known.CanProveEqual(value.base, domain.min) || !known.CanProveEqual(value.extent, domain.extent)) {
      return annotate(Refuse(absl::StrCat("binding ", ToText(values[i]), " runs over [", ToText(value.base), ", +",
                                          ToText(value.extent), "), the domain of ", iters[i]->var.name(), " is [",
                                          ToText(domain.min), ", +", ToText(domain.extent), ")")));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone
