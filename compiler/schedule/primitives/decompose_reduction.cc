#include "compiler/schedule/primitives/decompose_reduction.h"

#include <utility>

#include "compiler/ir/block_regions.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/reduction.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

namespace {

struct Reduction {
  const ProgramIndex& index;
  int node, loop_node;  // of the block, of the loop in front of which its init moves

  const BlockRealize& realize() const { return index.realize(node); }
  const Block& block() const { return realize().block; }
  bool Uses(const Var& loop, bool reduce) const { return IsMadeOf(realize(), loop, reduce); }
  // What the init reads and writes.
  Block Start() const {
    Block start{.body = block().init};
    DeclareRegions(start);
    return start;
  }
};

absl::Status CheckLoops(const Reduction& r, const std::string& where) {
  if (!r.block().init) return Refused(where, ": the block has no init; it does not reduce, or was decomposed before");
  if (!r.index.Contains(r.loop_node, r.node) || r.index.EnclosingBlock(r.node) != r.index.EnclosingBlock(r.loop_node)) {
    return Refused(where, ": the loop is not around the block");
  }
  for (const int n : r.index.LoopsAbove(r.node)) {
    const For& loop = r.index.loop(n);
    const bool reduce = r.Uses(loop.var, true);
    if (n < r.loop_node && reduce) {
      return Refused(where, ": loop ", loop.var,
                     " outside it reduces, so the init would run again in its every iteration; choose loop ", loop.var,
                     " or one outside it");
    }
    if (n >= r.loop_node && reduce && r.Uses(loop.var, false)) {
      return Refused(where, ": loop ", loop.var, " runs over spatial and reduce variables at once; split it first");
    }
  }
  return absl::OkStatus();
}

// The init moves in front of all that runs inside the loop: nothing there may run twice for one element, nor make what
// the init reads.
absl::Status CheckInside(const Reduction& r, const std::string& where) {
  VarRanges inside;
  for (int n = r.index.parent(r.node); n >= r.loop_node; n = r.index.parent(n)) {
    if (r.index.IsLoop(n)) inside[r.index.loop(n).var] = Range{r.index.loop(n).min, r.index.loop(n).extent};
  }
  if (!IsInjective(r.realize().values, inside, r.realize().predicate)) {
    return Refused(where,
                   ": inside the loop the block computes some elements more than once, each time from its init; choose "
                   "a loop further in");
  }
  for (const BufferRegion& read : r.Start().reads) {
    for (const int w : WritersOf(r.index, r.index.EnclosingBlock(r.node), read.buffer)) {
      if (!r.index.Contains(r.loop_node, w) || w == r.node) continue;
      return Refused(where, ": the init reads ", read.buffer, ", which block ", r.index.block(w).name,
                     " writes inside the loop; choose a loop further in");
    }
  }
  return absl::OkStatus();
}

// The init as a block over new spatial variables; its values are still those of the old loops.
BlockRealize InitBlock(const Reduction& r, const std::string& name) {
  const Block& block = r.block();
  BlockRealize init;
  init.block.name = name;
  init.block.reads = r.Start().reads;
  init.block.writes = block.writes;
  std::vector<std::pair<Var, Expr>> old_to_new;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].kind != IterKind::kSpatial) continue;
    const Var fresh(block.iters[i].var.name(), block.iters[i].var.type());
    init.block.iters.push_back({fresh, block.iters[i].domain, IterKind::kSpatial});
    init.values.push_back(r.realize().values[i]);
    old_to_new.push_back({block.iters[i].var, Expr(fresh)});
  }
  const VarMap rename = [&](const Var& var) -> std::optional<Expr> {
    for (const auto& [old, fresh] : old_to_new) {
      if (old.SameAs(var)) return fresh;
    }
    return std::nullopt;
  };
  init.block.body = RenewDefinitions(Substitute(block.init, rename));
  for (std::vector<BufferRegion>* regions : {&init.block.reads, &init.block.writes}) {
    for (BufferRegion& region : *regions) {
      for (Range& range : region.region) range = Range{Substitute(range.min, rename), Substitute(range.extent, rename)};
    }
  }
  return init;
}

// That block in copies of the loops that number elements of the result; the others stand at their start, where the
// reduction's first instance is.
Stmt InitNest(const Reduction& r, const std::string& name) {
  LoopCopies kept;
  std::vector<std::pair<Var, Expr>> dropped;
  for (int n = r.index.parent(r.node); n >= r.loop_node; n = r.index.parent(n)) {
    if (!r.index.IsLoop(n)) continue;
    const For& loop = r.index.loop(n);
    if (r.Uses(loop.var, false)) {
      kept.push_back({&loop, Var(loop.var.name() + "_init", loop.var.type())});
    } else {
      dropped.push_back({loop.var, loop.min});
    }
  }
  const VarMap rename = RenameTo(kept);
  BlockRealize init = InitBlock(r, name);
  for (Expr& value : init.values) value = Substitute(value, rename);
  Analyzer known(RangesAround(r.index, r.node));
  for (const auto& [loop, fresh] : kept) known.Bind(fresh, Range{loop->min, loop->extent});
  init.predicate = known.Simplify(Substitute(r.realize().predicate, [&](const Var& var) -> std::optional<Expr> {
    for (const auto& [old, start] : dropped) {
      if (old.SameAs(var)) return start;
    }
    return rename(var);
  }));
  return WrapInCopies(kept, Stmt::Make(std::move(init)));
}

}  // namespace

absl::StatusOr<BlockRef> DecomposeReduction(Schedule& schedule, BlockRef block_ref, LoopRef loop_ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(block_ref, "decompose_reduction"));
  HONE_ASSIGN_OR_RETURN(const int loop_node, schedule.LoopNode(loop_ref, "decompose_reduction"));
  const ProgramIndex& index = schedule.index();
  const Reduction reduction{.index = index, .node = node, .loop_node = loop_node};
  const Block& block = reduction.block();
  const Var target = index.loop(loop_node).var;
  const std::string where = Message("decompose_reduction(", block.name, ", ", target, ")");
  HONE_RETURN_IF_ERROR(CheckLoops(reduction, where));
  HONE_RETURN_IF_ERROR(CheckInside(reduction, where));

  // ---- nothing below fails ----
  const std::string name = FreshBlockName(index, block.name + "_init");
  Stmt init = InitNest(reduction, name);
  BlockRealize update = reduction.realize();
  update.block.init = Stmt();
  for (const BufferRegion& w : block.writes) {  // it now reads what the init wrote
    if (!Reads(block, w.buffer)) update.block.reads.push_back(w);
  }
  const ProgramIndex updated(index.Replace(node, Stmt::Make(std::move(update))));
  schedule.SetBody(updated.InsertBeside(updated.FindLoop(target), std::move(init), Stmt()));
  const int number =
      schedule.Record(DecomposeReductionStep{.block = block_ref, .loop = loop_ref}, {Schedule::Output::Block(name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const DecomposeReductionStep& step) {
  return DecomposeReduction(schedule, step.block, step.loop).status();
}

HONE_PRIMITIVES(decompose_reduction, DecomposeReductionStep)

}  // namespace hone
