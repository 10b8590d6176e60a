#include "compiler/schedule/analysis/divide_block.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/arith/interval_set.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// The loops from `loop` to the block below it, which must hold nothing else.
absl::StatusOr<std::vector<const For*>> LoopsInside(const ProgramIndex& index, int loop, int block,
                                                    const std::string& where) {
  std::vector<const For*> loops;
  for (int n = loop; n != block; ++n) {
    if (!index.IsLoop(n) || (n != loop && index.parent(n) != n - 1))
      return Refused(where, ": something else than loops stands between it and block ", index.block(block).name);
    const For& inside = index.loop(n);
    if (inside.kind != ForKind::kSerial)
      return Refused(where, ": loop ", inside.var, " is ", Describe(inside.kind), "; do this before it is made so");
    if (!IsConst(inside.min, 0) || !ConstantValue(inside.extent).has_value())
      return Refused(where, ": loop ", inside.var, " does not run from 0 to a number");
    loops.push_back(&inside);
  }
  return loops;
}

}  // namespace

absl::StatusOr<DividedBlock> DivideBlock(const ProgramIndex& index, int loop, const std::string& where) {
  const std::vector<int> below = index.BlocksBelow(loop);
  if (below.size() != 1)
    return Refused(where, ": ", below.size(), " blocks are under the loop; it must be exactly one");
  DividedBlock divided;
  divided.loop = loop;
  divided.block = below[0];
  HONE_ASSIGN_OR_RETURN(divided.loops, LoopsInside(index, loop, divided.block, where));
  const BlockRealize& realize = index.realize(divided.block);
  const Block& block = realize.block;
  std::vector<Var> vars;
  std::vector<int64_t> extents;
  std::vector<bool> used;
  for (const For* inside : divided.loops) {
    vars.push_back(inside->var);
    extents.push_back(*ConstantValue(inside->extent));
    used.push_back(extents.back() == 1);
  }
  Analyzer outside(RangesAround(index, loop));
  const auto is_inside = [&](const Expr& e) {
    return std::any_of(vars.begin(), vars.end(), [&](const Var& var) { return UsesVar(e, var); });
  };
  divided.tile_predicate = True();
  divided.inside_predicate = True();
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const IterVar& iter = block.iters[i];
    const DType type = iter.var.type();
    const std::optional<LinearForm> form = DetectLinear(realize.values[i], vars);
    if (!form.has_value())
      return Refused(where, ": ", iter.var, " of block ", block.name, " is bound to ", realize.values[i],
                     ", which is no sum of the loops inside");
    // The loops inside number [0, factor), each value once.
    std::vector<std::pair<int64_t, int64_t>> digits;
    for (size_t v = 0; v < vars.size(); ++v) {
      if (form->coefficients[v] == 0 || extents[v] == 1) continue;
      if (used[v]) return Refused(where, ": loop ", vars[v], " runs over two variables of block ", block.name);
      used[v] = true;
      digits.push_back({form->coefficients[v], extents[v]});
    }
    std::sort(digits.begin(), digits.end());
    DividedIter part;
    for (const auto& [coefficient, extent] : digits) {
      if (coefficient != part.factor)
        return Refused(where, ": ", iter.var, " of block ", block.name, " is bound to ", realize.values[i],
                       ", whose values in one tile are not neighbours");
      part.factor *= extent;
    }
    part.tile = Var(Message(iter.var, "_o"), type);
    const Expr factor = IntConst(part.factor, type);
    const std::optional<int64_t> size = ConstantValue(iter.domain.extent);
    if (part.factor == 1) {
      part.tile_domain = iter.domain;
      part.tile_value = outside.Simplify(form->base);
      part.first = part.tile;
      part.count = IntConst(1, type);
    } else {
      if (!IsConst(iter.domain.min, 0) || !size.has_value())
        return Refused(where, ": the domain of ", iter.var, " of block ", block.name, " is not from 0 to a number");
      if (!outside.IsMultipleOf(form->base, part.factor))
        return Refused(where, ": ", iter.var, " of block ", block.name, " is bound to ", realize.values[i],
                       ", but tiles of ", part.factor, " do not start at multiples of ", part.factor);
      part.tile_domain = Range{IntConst(0, type), IntConst((*size + part.factor - 1) / part.factor, type)};
      part.tile_value =
          MakeCast(type, outside.Simplify(FloorDiv(form->base, IntConst(part.factor, form->base.type()))));
      part.first = Expr(part.tile) * factor;
      part.cut_off = *size % part.factor != 0;
      part.count = part.cut_off ? Min(factor, IntConst(*size, type) - part.first) : factor;
      if (ConstantValue(part.tile_domain.extent) == 1) {  // one tile: it starts at 0
        part.count = IntConst(*size, type);
        part.first = IntConst(0, type);
      }
    }
    Expr position = IntConst(0, type);
    for (size_t v = 0; v < vars.size(); ++v) {
      if (form->coefficients[v] != 0) position = position + Expr(vars[v]) * IntConst(form->coefficients[v], type);
    }
    part.value = part.first + position;
    const Expr tiles = part.tile_domain.min + part.tile_domain.extent;
    if (!outside.CanProve(part.tile_value < tiles))
      divided.tile_predicate = Conjoin(divided.tile_predicate, outside.Simplify(part.tile_value < tiles));
    if (part.cut_off) divided.inside_predicate = Conjoin(divided.inside_predicate, part.value < iter.domain.extent);
    divided.iters.push_back(std::move(part));
  }
  for (size_t v = 0; v < vars.size(); ++v) {
    if (!used[v])
      return Refused(where, ": block ", block.name, " does not depend on loop ", vars[v],
                     ", so its every iteration does the same");
  }
  // What the domains say is said above; the rest must not look into a tile.
  for (const Expr& part : PartsBeyondDomain(realize, RangesAround(index, divided.block))) {
    if (is_inside(part)) return Refused(where, ": block ", block.name, " runs only where ", part, ", which cuts tiles");
  }
  for (const Expr& part : Conjuncts(realize.predicate)) {
    if (!is_inside(part)) divided.tile_predicate = Conjoin(divided.tile_predicate, part);
  }
  // Others go by what the tile says it writes: that must be a box without holes.
  for (const BufferRegion& write : block.writes) {
    for (const Range& range : write.region) {
      const std::optional<TileRange> whole = RangeInTile(divided, block, range);
      const bool box =
          whole.has_value() &&
          std::count_if(whole->steps.begin(), whole->steps.end(), [](int64_t step) { return step != 0; }) <= 1 &&
          std::all_of(whole->steps.begin(), whole->steps.end(), [](int64_t step) { return step <= 1; });
      if (!box)
        return Refused(where, ": block ", block.name, " writes ", write.buffer, " at ", range.min,
                       ", of which a tile is no box");
    }
  }
  return divided;
}

std::optional<TileRange> RangeInTile(const DividedBlock& divided, const Block& block, const Range& index) {
  Analyzer known;
  std::vector<Var> positions;
  for (const DividedIter& part : divided.iters) {
    known.Bind(part.tile, part.tile_domain);
    positions.emplace_back("position", part.tile.type());
    known.Bind(positions.back(), Range{IntConst(0, part.tile.type()), IntConst(part.factor, part.tile.type())});
  }
  const Expr moved = known.Simplify(Substitute(index.min, [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < block.iters.size(); ++i) {
      if (!block.iters[i].var.SameAs(var)) continue;
      const DividedIter& part = divided.iters[i];
      return part.factor == 1 ? part.first : part.first + Expr(positions[i]);
    }
    return std::nullopt;
  }));
  const std::optional<LinearForm> form = DetectLinear(moved, positions);
  if (!form.has_value()) return std::nullopt;
  // How many, which may depend on the tile but not on the position in it.
  bool same = true;
  const Expr extent = Substitute(index.extent, [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < block.iters.size(); ++i) {
      if (!block.iters[i].var.SameAs(var)) continue;
      same = same && divided.iters[i].factor == 1;
      return divided.iters[i].first;
    }
    return std::nullopt;
  });
  if (!same) return std::nullopt;
  TileRange range{form->base, extent, form->coefficients};
  for (size_t i = 0; i < positions.size(); ++i) {
    const int64_t step = range.steps[i];
    if (step < 0) return std::nullopt;
    if (step == 0) continue;
    const Expr& count = divided.iters[i].count;
    range.extent =
        step == 1 && IsConst(range.extent, 1) ? count : range.extent + (count - 1) * IntConst(step, count.type());
  }
  range.first = known.Simplify(range.first);
  range.extent = known.Simplify(range.extent);
  return range;
}

namespace {

// The part of a region of the block that one tile touches: its dimensions one by one where they are affine, otherwise
// the intervals around it.
BufferRegion RegionInTile(const DividedBlock& divided, const Block& block, const BufferRegion& region) {
  std::vector<std::optional<TileRange>> affine;
  for (const Range& r : region.region) affine.push_back(RangeInTile(divided, block, r));
  BufferRegion tile = region;
  if (!std::ranges::all_of(affine, [](const auto& range) { return range.has_value(); })) {
    const VarMap to_tile = [&](const Var& var) -> std::optional<Expr> {
      for (size_t i = 0; i < block.iters.size(); ++i) {
        if (block.iters[i].var == var) return divided.iters[i].value;
      }
      return std::nullopt;
    };
    for (Range& r : tile.region) r = Range{Substitute(r.min, to_tile), Substitute(r.extent, to_tile)};
    Analyzer known;
    for (const DividedIter& part : divided.iters) known.Bind(part.tile, part.tile_domain);
    VarRanges inside;
    for (const For* loop : divided.loops) inside[loop->var] = Range{loop->min, loop->extent};
    tile.region = RelaxRegion(tile, ToSets(inside), known);
  }
  for (size_t d = 0; d < affine.size(); ++d) {
    if (affine[d].has_value()) tile.region[d] = Range{affine[d]->first, affine[d]->extent};
  }
  return tile;
}

}  // namespace

BlockRealize MakeTileBlock(const ProgramIndex& index, const DividedBlock& divided, std::string name) {
  const BlockRealize& realize = index.realize(divided.block);
  const Block& block = realize.block;
  BlockRealize outer;
  outer.predicate = divided.tile_predicate;
  outer.block.name = std::move(name);
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const DividedIter& part = divided.iters[i];
    outer.block.iters.push_back({part.tile, part.tile_domain, block.iters[i].kind});
    outer.values.push_back(part.tile_value);
  }
  for (const BufferRegion& read : block.reads) outer.block.reads.push_back(RegionInTile(divided, block, read));
  for (const BufferRegion& write : block.writes) outer.block.writes.push_back(RegionInTile(divided, block, write));
  if (!block.init) return outer;

  // The loops over what the tile writes, anew.
  std::vector<std::pair<Var, Expr>> fresh;
  std::vector<For> loops;
  for (const For* loop : divided.loops) {
    bool spatial = false;
    for (size_t i = 0; i < block.iters.size(); ++i)
      spatial |= block.iters[i].kind == IterKind::kSpatial && UsesVar(realize.values[i], loop->var);
    const Var var(loop->var.name() + "_init", loop->var.type());
    fresh.push_back({loop->var, spatial ? Expr(var) : IntConst(0, var.type())});
    if (!spatial) continue;
    For copy = *loop;
    copy.var = var;
    copy.annotations.clear();
    loops.push_back(std::move(copy));
  }
  const VarMap to_fresh = [&](const Var& var) -> std::optional<Expr> {
    for (const auto& [loop, value] : fresh) {
      if (loop.SameAs(var)) return value;
    }
    return std::nullopt;
  };
  Expr inside = True();
  std::vector<Expr> values;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    values.push_back(Substitute(divided.iters[i].value, to_fresh));
    if (divided.iters[i].cut_off && block.iters[i].kind == IterKind::kSpatial)
      inside = Conjoin(inside, values.back() < block.iters[i].domain.extent);
  }
  Stmt init = RenewDefinitions(Substitute(block.init, [&](const Var& var) -> std::optional<Expr> {
    for (size_t i = 0; i < block.iters.size(); ++i) {
      if (block.iters[i].var.SameAs(var)) return values[i];
    }
    return std::nullopt;
  }));
  if (!IsConst(inside, 1)) init = Stmt::Make(IfThen{inside, std::move(init), Stmt()});
  for (size_t i = loops.size(); i-- > 0;) {
    loops[i].body = std::move(init);
    init = Stmt::Make(std::move(loops[i]));
  }
  outer.block.init = std::move(init);
  return outer;
}

}  // namespace hone
