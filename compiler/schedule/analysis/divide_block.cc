#include "compiler/schedule/analysis/divide_block.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/arith/interval_set.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/symbolic_sizes.h"
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

// The loops inside, as digits of the positions in a tile.
struct Digits {
  std::vector<Var> vars;
  std::vector<int64_t> extents;
  std::vector<bool> used;  // by some iteration variable; a loop that runs once need not be
};

Digits DigitsOf(const std::vector<const For*>& loops) {
  Digits digits;
  for (const For* loop : loops) {
    digits.vars.push_back(loop->var);
    digits.extents.push_back(*ConstantValue(loop->extent));
    digits.used.push_back(digits.extents.back() == 1);
  }
  return digits;
}

bool UsesAny(const Expr& e, const std::vector<Var>& vars) {
  return std::ranges::any_of(vars, [&](const Var& var) { return UsesVar(e, var); });
}

// How many values the sum over the loops inside takes: they must number [0, factor), each value once.
absl::StatusOr<int64_t> FactorOf(const LinearForm& form, const Block& block, const Var& iter, const Expr& bound,
                                 Digits& inside, const std::string& where) {
  std::vector<std::pair<int64_t, int64_t>> digits;
  for (size_t v = 0; v < inside.vars.size(); ++v) {
    if (form.coefficients[v] == 0 || inside.extents[v] == 1) continue;
    if (inside.used[v])
      return Refused(where, ": loop ", inside.vars[v], " runs over two variables of block ", block.name);
    inside.used[v] = true;
    digits.push_back({form.coefficients[v], inside.extents[v]});
  }
  std::sort(digits.begin(), digits.end());
  int64_t factor = 1;
  for (const auto& [coefficient, extent] : digits) {
    if (coefficient != factor)
      return Refused(where, ": ", iter, " of block ", block.name, " is bound to ", bound,
                     ", whose values in one tile are not neighbours");
    factor *= extent;
  }
  return factor;
}

// The tiles of a domain that starts at 0, `part.factor` values each but for the last; `base` is where a tile starts.
void SetTiles(DividedIter& part, const Expr& size, const Expr& base, Analyzer& outside) {
  const DType type = part.tile.type();
  const Expr factor = IntConst(part.factor, type);
  part.tile_domain = Range{IntConst(0, type), outside.Simplify(FloorDiv(size + (part.factor - 1), factor))};
  part.tile_value = MakeCast(type, outside.Simplify(FloorDiv(base, IntConst(part.factor, base.type()))));
  part.first = Expr(part.tile) * factor;
  part.cut_off = !outside.IsMultipleOf(size, part.factor);
  part.count = part.cut_off ? Min(factor, size - part.first) : factor;
  if (ConstantValue(part.tile_domain.extent) == 1) {  // one tile: it starts at 0
    part.count = size;
    part.first = IntConst(0, type);
  }
}

absl::StatusOr<DividedIter> DivideIter(const Block& block, const IterVar& iter, const Expr& bound, Digits& inside,
                                       Analyzer& outside, const std::string& where) {
  const DType type = iter.var.type();
  const std::optional<LinearForm> form = DetectLinear(bound, inside.vars);
  if (!form.has_value())
    return Refused(where, ": ", iter.var, " of block ", block.name, " is bound to ", bound,
                   ", which is no sum of the loops inside");
  DividedIter part;
  HONE_ASSIGN_OR_RETURN(part.factor, FactorOf(*form, block, iter.var, bound, inside, where));
  part.tile = Var(Message(iter.var, "_o"), type);
  if (part.factor == 1) {
    part.tile_domain = iter.domain;
    part.tile_value = outside.Simplify(form->base);
    part.first = part.tile;
    part.count = IntConst(1, type);
  } else {
    if (!IsConst(iter.domain.min, 0) || !IsOverSizes(iter.domain.extent))
      return Refused(where, ": the domain of ", iter.var, " of block ", block.name,
                     " is not from 0 to a number or symbolic size");
    if (!outside.IsMultipleOf(form->base, part.factor))
      return Refused(where, ": ", iter.var, " of block ", block.name, " is bound to ", bound, ", but tiles of ",
                     part.factor, " do not start at multiples of ", part.factor);
    SetTiles(part, iter.domain.extent, form->base, outside);
  }
  Expr position = IntConst(0, type);
  for (size_t v = 0; v < inside.vars.size(); ++v) {
    if (form->coefficients[v] != 0) position = position + Expr(inside.vars[v]) * IntConst(form->coefficients[v], type);
  }
  part.value = part.first + position;
  return part;
}

// What one tile writes must be a box without holes: others go by it.
absl::Status CheckWritesBoxes(const DividedBlock& divided, const Block& block, const std::string& where) {
  for (const BufferRegion& write : block.writes) {
    for (const Range& range : write.region) {
      const std::optional<TileRange> tile = RangeInTile(divided, block, range);
      const bool is_box = tile.has_value() &&
                          std::ranges::count_if(tile->steps, [](int64_t step) { return step != 0; }) <= 1 &&
                          std::ranges::all_of(tile->steps, [](int64_t step) { return step <= 1; });
      if (!is_box)
        return Refused(where, ": block ", block.name, " writes ", write.buffer, " at ", range.min,
                       ", of which a tile is no box");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DividedBlock> DivideBlock(const ProgramIndex& index, int loop, const std::string& where) {
  const std::vector<int> below = index.BlocksBelow(loop);
  if (below.size() != 1)
    return Refused(where, ": ", below.size(), " blocks are under the loop; it must be exactly one");
  DividedBlock divided{.loop = loop, .block = below[0], .tile_predicate = True(), .inside_predicate = True()};
  HONE_ASSIGN_OR_RETURN(divided.loops, LoopsInside(index, loop, divided.block, where));
  const BlockRealize& realize = index.realize(divided.block);
  const Block& block = realize.block;
  Digits inside = DigitsOf(divided.loops);
  Analyzer outside(RangesAround(index, loop));
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const IterVar& iter = block.iters[i];
    HONE_ASSIGN_OR_RETURN(DividedIter part, DivideIter(block, iter, realize.values[i], inside, outside, where));
    const Expr tiles = part.tile_domain.min + part.tile_domain.extent;
    if (!outside.CanProve(part.tile_value < tiles))
      divided.tile_predicate = Conjoin(divided.tile_predicate, outside.Simplify(part.tile_value < tiles));
    if (part.cut_off) divided.inside_predicate = Conjoin(divided.inside_predicate, part.value < iter.domain.extent);
    divided.iters.push_back(std::move(part));
  }
  for (size_t v = 0; v < inside.vars.size(); ++v) {
    if (!inside.used[v])
      return Refused(where, ": block ", block.name, " does not depend on loop ", inside.vars[v],
                     ", so its every iteration does the same");
  }
  // What the domains say is said above; the rest must not look into a tile.
  for (const Expr& part : PartsBeyondDomain(realize, RangesAround(index, divided.block))) {
    if (UsesAny(part, inside.vars))
      return Refused(where, ": block ", block.name, " runs only where ", part, ", which cuts tiles");
  }
  for (const Expr& part : Conjuncts(realize.predicate)) {
    if (!UsesAny(part, inside.vars)) divided.tile_predicate = Conjoin(divided.tile_predicate, part);
  }
  HONE_RETURN_IF_ERROR(CheckWritesBoxes(divided, block, where));
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
