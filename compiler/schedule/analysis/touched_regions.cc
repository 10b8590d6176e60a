#include "compiler/schedule/analysis/touched_regions.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "compiler/arith/iter_map.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/support/status_macros.h"

namespace hone {

VarMap BindingsOf(const BlockRealize& realize) {
  return [&realize](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if (realize.block.iters[i].var.SameAs(var)) return realize.values[i];
    }
    return std::nullopt;
  };
}

Analyzer KnownAround(const ProgramIndex& index, int node) { return Analyzer(RangesAround(index, node)); }

std::vector<std::vector<IntervalSet>> TouchedWithin(const ProgramIndex& index, int outer, int block,
                                                    const Buffer& buffer, bool writes, Analyzer& known) {
  const BlockRealize& realize = index.realize(block);
  SetMap loops;
  for (const int n : index.LoopsBetween(outer, block)) {
    const For& loop = index.loop(n);
    loops[loop.var] = IntervalSet::FromRange(Range{loop.min, loop.extent});
  }
  const VarMap bind = BindingsOf(realize);
  std::vector<std::vector<IntervalSet>> found;
  for (const BufferRegion& access : writes ? realize.block.writes : realize.block.reads) {
    if (!access.buffer.SameAs(buffer)) continue;
    std::vector<Range> region;
    for (const Range& r : access.region) region.push_back(Range{Substitute(r.min, bind), Substitute(r.extent, bind)});
    found.push_back(EvalRegion(region, loops, known));
  }
  return found;
}

std::vector<IntervalSet> UnionOf(std::span<const std::vector<IntervalSet>> regions, Analyzer& known) {
  std::vector<IntervalSet> all = regions[0];
  for (size_t r = 1; r < regions.size(); ++r) {
    for (size_t d = 0; d < all.size(); ++d) all[d] = Union(all[d], regions[r][d], known);
  }
  return all;
}

bool Covers(const std::vector<IntervalSet>& outer, const std::vector<IntervalSet>& inner, const Buffer& buffer,
            Analyzer& known) {
  for (size_t d = 0; d < outer.size(); ++d) {
    const Expr last = buffer.shape()[d] - 1;
    if (outer[d].min && !known.CanProve(outer[d].min <= IntConst(0))) {
      if (!inner[d].min || !known.CanProve(outer[d].min <= inner[d].min)) return false;
    }
    if (outer[d].max && !known.CanProve(outer[d].max >= last)) {
      if (!inner[d].max || !known.CanProve(outer[d].max >= inner[d].max)) return false;
    }
  }
  return true;
}

namespace {

// The terms of a sum: (coefficient, how many values 0, 1, .. it is multiplied with: bounds of the number).
using Terms = std::vector<std::pair<int64_t, Bounds>>;

// It takes every value of its interval when no coefficient, taken in rising order, is larger than the reach of those
// before it plus one.
bool TakesAllValues(Terms terms) {
  std::ranges::sort(terms, {}, &Terms::value_type::first);
  int64_t reach = 0;
  for (const auto& [coefficient, extent] : terms) {
    if (extent.max == 1) continue;
    if (coefficient < 1 || coefficient > reach + 1) return false;
    reach += coefficient * (extent.min - 1);
  }
  return true;
}

// The values as sums over variables, no variable in two of them; nullopt when they are not of this form. A variable
// that is subtracted stands as one that is added: it takes the same values in falling order.
struct VarList {
  std::vector<Var> vars;
  std::vector<Bounds> extents;  // 0 where they depend on more than symbolic sizes
};
std::optional<std::vector<Terms>> DisjointSums(std::span<const Expr> values, const VarList& list) {
  std::vector<bool> taken(list.vars.size(), false);
  std::vector<Terms> sums;
  for (const Expr& value : values) {
    const std::optional<LinearForm> form = DetectLinear(value, list.vars);
    if (!form.has_value()) return std::nullopt;
    Terms terms;
    for (size_t i = 0; i < list.vars.size(); ++i) {
      if (form->coefficients[i] == 0 || list.extents[i].max == 1) continue;
      if (list.extents[i].min < 1 || taken[i]) return std::nullopt;
      taken[i] = true;
      terms.push_back({std::abs(form->coefficients[i]), list.extents[i]});
    }
    sums.push_back(std::move(terms));
  }
  return sums;
}

Bounds BoundsOfExtent(const Expr& extent) {
  if (const std::optional<int64_t> number = ConstantValue(extent)) return {*number, *number};
  if (!IsOverSizes(extent)) return {0, 0};
  Analyzer known;
  return known.ConstBounds(extent);
}

VarList ListOf(const VarRanges& ranges) {
  VarList list;
  for (const auto& [var, range] : ranges) {
    list.vars.push_back(var);
    list.extents.push_back(BoundsOfExtent(range.extent));
  }
  return list;
}

// Returns whether an if of the body (not the condition of a block in it) may leave out a store to the buffer.
bool StoresUnderCondition(const Stmt& body, const Buffer& buffer) {
  bool found = false;
  ForEachStmt(body, [&](const Stmt& stmt) {
    if (const Store* store = stmt.As<Store>()) found |= store->mask && store->buffer.SameAs(buffer);
    if (stmt.As<IfThen>() == nullptr) return !found;
    ForEachStmt(stmt, [&](const Stmt& inner) {
      const Store* store = inner.As<Store>();
      found |= store != nullptr && store->buffer.SameAs(buffer);
      return !found;
    });
    return !found;
  });
  return found;
}

// Over the greatest extents, where they are few enough to count.
bool AreInjective(const std::vector<Terms>& sums, const VarList& list) {
  int64_t instances = 1, different = 1;
  for (const Bounds& extent : list.extents) {
    if (__builtin_mul_overflow(instances, extent.max, &instances)) return false;
  }
  for (Terms terms : sums) {
    std::ranges::sort(terms, {}, &Terms::value_type::first);
    int64_t reach = 0;
    for (const auto& [coefficient, extent] : terms) {
      if (coefficient <= reach) return false;
      reach += coefficient * (extent.max - 1);
      different *= extent.max;
    }
  }
  return instances == different;  // every loop is used
}

}  // namespace

bool IsInjective(std::span<const Expr> values, const VarRanges& domains, const Expr& predicate) {
  const VarList list = ListOf(domains);
  const bool symbolic =
      std::ranges::any_of(list.extents, [](const Bounds& extent) { return extent.min != extent.max; });
  const auto sums = DisjointSums(values, list);
  if (sums.has_value()) {
    // What is injective over the greatest extents is so over less of them.
    const bool injective = AreInjective(*sums, list);
    if (injective || !symbolic) return injective;
  }
  return DetectIterMap(values, domains, predicate, true).ok();
}

absl::Status FillsBox(std::span<const Range> region, const VarRanges& domains) {
  std::vector<Expr> values;
  VarRanges ranges = domains;
  for (const Range& r : region) {
    Expr value = r.min;
    if (!IsConst(r.extent, 1)) {  // a run of elements is one more loop
      const Var run("run", r.extent.type());
      ranges[run] = Range{IntConst(0, run.type()), r.extent};
      value = value + Expr(run);
    }
    values.push_back(std::move(value));
  }
  // Nearly always every index is a sum of loops of its own, plus what the loops do not change. Overlaps, as of
  // h*2 + kh, do no harm.
  if (const auto sums = DisjointSums(values, ListOf(ranges)); sums.has_value()) {
    bool all = true;
    for (const Terms& terms : *sums) all = all && TakesAllValues(terms);
    if (all) return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(const IterMap map, DetectIterMap(values, ranges, True(), false));
  for (size_t d = 0; d < map.values.size(); ++d) {
    Terms terms;
    for (const IterPiece& piece : map.values[d].pieces) terms.push_back({piece.scale, BoundsOfExtent(piece.extent)});
    if (!TakesAllValues(std::move(terms))) return Refused(values[d], " leaves out elements in between");
  }
  return absl::OkStatus();
}

namespace {

// Checks that the reductions of the block come to an end within the loops of `domains`.
absl::Status CheckReducesInside(const BlockRealize& realize, const VarRanges& domains) {
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const IterVar& iter = realize.block.iters[i];
    if (iter.kind == IterKind::kSpatial) continue;
    for (const Var& var : FreeVars(realize.values[i])) {  // complete only when the whole domain is run through inside
      if (domains.count(var) == 0) {
        return Refused("block ", realize.block.name, " goes on reducing ", iter.var, " across loop ", var,
                       ", so its values are not complete after one iteration");
      }
    }
  }
  return absl::OkStatus();
}

// One for each iteration variable: true if its value may lie outside its domain in all iterations of the loops of
// `domains`. Then the block does not run at all in one iteration of `outer`.
std::vector<bool> MayBeEmpty(const ProgramIndex& index, int outer, const BlockRealize& realize,
                             const VarRanges& domains) {
  std::vector<bool> may_be_empty(realize.values.size(), false);
  if (Conjuncts(realize.predicate).empty()) return may_be_empty;
  Analyzer known = KnownAround(index, outer);
  if (index.IsLoop(outer)) known.Bind(index.loop(outer).var, Range{index.loop(outer).min, index.loop(outer).extent});
  const SetMap sets = ToSets(domains);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const Range& domain = realize.block.iters[i].domain;
    const IntervalSet set = EvalSet(realize.values[i], sets, known);
    may_be_empty[i] = !set.bounded() || !known.CanProve(set.min < domain.min + domain.extent) ||
                      !known.CanProve(set.max >= domain.min);
  }
  return may_be_empty;
}

// Checks that the region that the block declares to write is a whole box, as far as it lies inside the buffer.
absl::Status CheckWritesBox(const BlockRealize& realize, const BufferRegion& write, const VarRanges& domains,
                            const std::vector<bool>& may_be_empty) {
  // An iteration in which the block does not run at all, because a split covers more than its loop, must show: as a
  // part of the buffer that lies outside.
  for (size_t i = 0; i < realize.values.size(); ++i) {
    bool shows = !may_be_empty[i];
    for (const Range& r : write.region) {
      const std::optional<AffineIndex> at = AffineIn(r, realize.block.iters);
      shows = shows || (at.has_value() && at->iter == static_cast<int>(i));
    }
    if (!shows) {
      return Refused("block ", realize.block.name, " does not run in some iterations, those in which ",
                     realize.values[i], " is outside its domain");
    }
  }
  // Instances outside the domain do not run: that cuts the box straight only where a dimension is one variable.
  if (!Conjuncts(realize.predicate).empty()) {
    for (const Range& r : write.region) {
      const std::optional<AffineIndex> at = AffineIn(r, realize.block.iters);
      if (!at.has_value() || at->scale != 1) {
        return Refused("block ", realize.block.name, " runs only where ", realize.predicate, ", which leaves holes in ",
                       write.buffer, ", written at ", r.min);
      }
    }
  }
  const VarMap bind = BindingsOf(realize);
  std::vector<Range> region;
  for (const Range& r : write.region) region.push_back(Range{Substitute(r.min, bind), Substitute(r.extent, bind)});
  if (const absl::Status filled = FillsBox(region, domains); !filled.ok()) {
    return Refused("block ", realize.block.name, " does not write a whole box of ", write.buffer,
                   " in one iteration: ", filled.message());
  }
  return absl::OkStatus();
}

// What one statement of a block's body writes of a buffer, in the loops of the body around it.
struct BodyWrite {
  std::vector<Range> region;
  VarRanges loops;
  // Of a nested block that does not run all of its loops: what it writes over its domain, beyond which it writes
  // nothing.
  std::vector<Range> over_domain;
  VarRanges domain;
  bool cut = false;  // by a condition besides, or it has holes itself
};

absl::Status CheckWritesAll(const Block& block, const BufferRegion& write, Analyzer& known);

// Of nested blocks what they declare. Nothing is found of a store of vectors, or by way of a matched buffer.
void CollectWrites(const Stmt& stmt, const Buffer& buffer, Analyzer& known, VarRanges& loops,
                   std::vector<BodyWrite>& found) {
  if (const Store* store = stmt.As<Store>(); store != nullptr && store->buffer.SameAs(buffer)) {
    BodyWrite write{.region = {}, .loops = loops};
    for (const Expr& i : store->indices) {
      if (!i.type().is_scalar()) return;
      write.region.push_back(Range{i, IntConst(1, i.type())});
    }
    found.push_back(std::move(write));
  } else if (const TileOp* op = stmt.As<TileOp>()) {
    if (op->operands[0].buffer.SameAs(buffer)) found.push_back({.region = op->operands[0].region, .loops = loops});
  } else if (const BlockRealize* inner = stmt.As<BlockRealize>()) {
    const VarMap bind = BindingsOf(*inner);
    for (const BufferRegion& write : inner->block.writes) {
      if (!write.buffer.SameAs(buffer)) continue;
      BodyWrite bound{.region = {}, .loops = loops};
      for (const Range& r : write.region)
        bound.region.push_back(Range{Substitute(r.min, bind), Substitute(r.extent, bind)});
      if (!IsConst(inner->predicate, 1)) {
        bound.over_domain = write.region;
        for (const IterVar& iter : inner->block.iters) bound.domain[iter.var] = iter.domain;
        bound.cut = !PartsBeyondDomain(*inner, loops).empty();
      }
      const size_t mark = known.Save();
      for (const IterVar& iter : inner->block.iters) known.Bind(iter.var, iter.domain);
      bound.cut = bound.cut || !CheckWritesAll(inner->block, write, known).ok();
      known.Restore(mark);
      found.push_back(std::move(bound));
    }
  } else if (const For* loop = stmt.As<For>()) {
    loops[loop->var] = Range{loop->min, loop->extent};
    CollectWrites(loop->body, buffer, known, loops, found);
    loops.erase(loop->var);
  } else {
    ForEachChild(
        stmt, [&](const Stmt& child) { CollectWrites(child, buffer, known, loops, found); }, [](const Expr&) {});
  }
}

// Checks that an instance writes every element of the region that the block declares. That is the hull of what its
// statements write, so that one of them has to write all of it.
absl::Status CheckWritesAll(const Block& block, const BufferRegion& write, Analyzer& known) {
  if (std::ranges::all_of(write.region, [](const Range& r) { return IsConst(r.extent, 1); })) return absl::OkStatus();
  std::vector<BodyWrite> found;
  VarRanges loops;
  CollectWrites(block.body, write.buffer, known, loops, found);
  const std::vector<IntervalSet> declared = EvalRegion(write.region, SetMap(), known);
  const auto covers = [&](const std::vector<Range>& region, const VarRanges& loops) {
    return FillsBox(region, loops).ok() &&
           Covers(EvalRegion(region, ToSets(loops), known), declared, write.buffer, known);
  };
  const bool all = found.empty() || std::ranges::any_of(found, [&](const BodyWrite& part) {
                     return !part.cut && covers(part.region, part.loops) &&
                            (part.over_domain.empty() || covers(part.over_domain, part.domain));
                   });
  if (all) return absl::OkStatus();
  return Refused("block ", block.name, " declares to write a region of ", write.buffer,
                 " that no statement of it writes as a whole; it may have holes");
}

}  // namespace

absl::Status CheckExact(const ProgramIndex& index, int outer, int producer, const Buffer& buffer, Expr* outside) {
  const BlockRealize& realize = index.realize(producer);
  VarRanges domains;
  for (const int n : index.LoopsBetween(outer, producer))
    domains[index.loop(n).var] = Range{index.loop(n).min, index.loop(n).extent};
  HONE_RETURN_IF_ERROR(CheckReducesInside(realize, domains));
  for (const Expr& part : PartsBeyondDomain(realize, RangesAround(index, producer))) {
    bool stands_still = outside != nullptr;
    for (const Var& var : FreeVars(part)) stands_still = stands_still && domains.count(var) == 0;
    if (!stands_still) {
      return Refused("block ", realize.block.name, " runs only where ", part, ", which leaves holes in what it writes");
    }
    *outside = Conjoin(*outside, part);
  }
  if (StoresUnderCondition(realize.block.body, buffer)) {
    return Refused("block ", realize.block.name, " writes ", buffer,
                   " under a condition in its body, which leaves holes in what it writes");
  }
  const std::vector<bool> may_be_empty = MayBeEmpty(index, outer, realize, domains);
  Analyzer known = KnownAround(index, producer);
  for (const IterVar& iter : realize.block.iters) known.Bind(iter.var, iter.domain);
  for (const BufferRegion& write : realize.block.writes) {
    if (!write.buffer.SameAs(buffer)) continue;
    HONE_RETURN_IF_ERROR(CheckWritesBox(realize, write, domains, may_be_empty));
    HONE_RETURN_IF_ERROR(CheckWritesAll(realize.block, write, known));
  }
  return absl::OkStatus();
}

bool CoveredWithin(const ProgramIndex& index, int outer, int producer, int consumer, const Buffer& buffer) {
  Analyzer known = KnownAround(index, outer);
  if (index.IsLoop(outer)) known.Bind(index.loop(outer).var, Range{index.loop(outer).min, index.loop(outer).extent});
  const auto written = TouchedWithin(index, outer, producer, buffer, true, known);
  const auto read = TouchedWithin(index, outer, consumer, buffer, false, known);
  if (written.empty() || !CheckExact(index, outer, producer, buffer).ok()) return false;
  if (read.empty()) return true;
  return Covers(UnionOf(written, known), UnionOf(read, known), buffer, known);
}

std::optional<AffineIndex> AffineIn(const Range& index, std::span<const IterVar> iters) {
  const std::optional<int64_t> extent = ConstantValue(index.extent);
  if (!extent.has_value()) return std::nullopt;
  std::vector<Var> vars;
  for (const IterVar& it : iters) vars.push_back(it.var);
  const std::optional<LinearForm> form = DetectLinear(index.min, vars);
  if (!form.has_value()) return std::nullopt;
  AffineIndex found{-1, 1, form->base, *extent};
  for (size_t i = 0; i < vars.size(); ++i) {
    if (form->coefficients[i] == 0) continue;
    if (found.iter >= 0) return std::nullopt;
    found.iter = static_cast<int>(i);
    found.scale = form->coefficients[i];
  }
  return found;
}

}  // namespace hone
