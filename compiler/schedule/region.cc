#include "compiler/schedule/region.h"

#include <utility>

#include "compiler/arith/linear.h"
#include "compiler/arith/iter_map.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/message.h"
#include "compiler/schedule/nest.h"

namespace hone {

Analyzer KnownAround(const ProgramIndex& index, int node) { return Analyzer(RangesAround(index, node)); }

std::vector<std::vector<IntervalSet>> TouchedWithin(const ProgramIndex& index, int outer, int block, const Buffer& buffer,
                                                    bool writes, Analyzer& known) {
  const BlockRealize& realize = index.realize(block);
  SetMap roaming;
  for (const int n : index.LoopsBetween(outer, block)) {
    const For& loop = index.loop(n);
    roaming[loop.var] = IntervalSet::FromRange(Range{loop.min, loop.extent});
  }
  const VarMap bind = [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if (realize.block.iters[i].var.SameAs(var)) return realize.values[i];
    }
    return std::nullopt;
  };
  std::vector<std::vector<IntervalSet>> found;
  for (const BufferRegion& access : writes ? realize.block.writes : realize.block.reads) {
    if (!access.buffer.SameAs(buffer)) continue;
    std::vector<Range> region;
    for (const Range& r : access.region) region.push_back(Range{Substitute(r.min, bind), Substitute(r.extent, bind)});
    found.push_back(EvalRegion(region, roaming, known));
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

bool Covers(const std::vector<IntervalSet>& outer, const std::vector<IntervalSet>& inner, const Buffer& buffer, Analyzer& known) {
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

absl::Status CheckExact(const ProgramIndex& index, int outer, int producer) {
  const BlockRealize& realize = index.realize(producer);
  VarRanges roaming;
  for (const int n : index.LoopsBetween(outer, producer)) roaming[index.loop(n).var] = Range{index.loop(n).min, index.loop(n).extent};
  std::vector<Expr> values;
  bool simple = true;                               // every value is a loop of its own, shifted by what stands still
  std::vector<Var> taken;
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const IterVar& iter = realize.block.iters[i];
    if (iter.kind != IterKind::kSpatial) {
      // Complete only when the whole domain is run through inside.
      for (const Var& var : FreeVars(realize.values[i])) {
        if (roaming.count(var) == 0) {
          return Refused("block ", realize.block.name, " goes on reducing ", iter.var, " across loop ", var,
                         ", so its values are not complete after one iteration");
        }
      }
      continue;
    }
    values.push_back(realize.values[i]);
    const std::optional<AffineIndex> affine = [&]() -> std::optional<AffineIndex> {
      std::vector<IterVar> loops;
      for (const auto& [var, range] : roaming) loops.push_back({var, range, IterKind::kSpatial});
      std::optional<AffineIndex> found = AffineIn(Range{realize.values[i], IntConst(1)}, loops);
      if (found.has_value() && found->iter >= 0) {
        const Var& var = loops[found->iter].var;
        if (found->scale != 1) return std::nullopt;
        for (const Var& other : taken) {
          if (other.SameAs(var)) return std::nullopt;
        }
        taken.push_back(var);
      }
      return found;
    }();
    simple = simple && affine.has_value();
  }
  if (simple) return absl::OkStatus();
  Expr predicate = True();                          // the parts about what roams; others stand still with the rest
  for (const Expr& part : Conjuncts(realize.predicate)) {
    bool inside = true;
    for (const Var& var : FreeVars(part)) inside = inside && roaming.count(var) > 0;
    if (inside) predicate = Conjoin(predicate, part);
  }
  const absl::StatusOr<IterMap> map = DetectIterMap(values, roaming, predicate, false);
  if (map.ok()) return absl::OkStatus();
  return Refused("block ", realize.block.name, " does not produce a whole box in one iteration: ", map.status().message());
}

bool CoveredWithin(const ProgramIndex& index, int outer, int producer, int consumer, const Buffer& buffer) {
  Analyzer known = KnownAround(index, outer);
  if (index.IsLoop(outer)) known.Bind(index.loop(outer).var, Range{index.loop(outer).min, index.loop(outer).extent});
  const auto written = TouchedWithin(index, outer, producer, buffer, true, known);
  const auto read = TouchedWithin(index, outer, consumer, buffer, false, known);
  if (written.empty() || !CheckExact(index, outer, producer).ok()) return false;
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
