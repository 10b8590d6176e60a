#include "compiler/schedule/primitives/decompose_reduction.h"

#include <utility>

#include "compiler/ir/block_regions.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/analysis/touched_regions.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<BlockRef> DecomposeReduction(Schedule& schedule, BlockRef block_ref, LoopRef loop_ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(block_ref, "decompose_reduction"));
  HONE_ASSIGN_OR_RETURN(const int loop_node, schedule.LoopNode(loop_ref, "decompose_reduction"));
  const ProgramIndex& index = schedule.index();
  const BlockRealize& realize = index.realize(node);
  const Block& block = realize.block;
  const For& target = index.loop(loop_node);
  const std::string where = Message("decompose_reduction(", block.name, ", ", target.var, ")");
  if (!block.init) return Refused(where, ": the block has no init; it does not reduce, or was decomposed before");
  if (!index.Contains(loop_node, node) || index.EnclosingBlock(node) != index.EnclosingBlock(loop_node)) {
    return Refused(where, ": the loop is not around the block");
  }
  const auto uses = [&](const Var& var, bool reduce) {
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if ((block.iters[i].kind != IterKind::kSpatial) == reduce && UsesVar(realize.values[i], var)) return true;
    }
    return false;
  };
  for (const int n : index.LoopsAbove(node)) {
    const For& loop = index.loop(n);
    const bool reduce = uses(loop.var, true);
    if (n < loop_node && reduce) {
      return Refused(where, ": loop ", loop.var,
                     " outside it reduces, so the init would run again in its every iteration; choose loop ", loop.var,
                     " or one outside it");
    }
    if (n >= loop_node && reduce && uses(loop.var, false)) {
      return Refused(where, ": loop ", loop.var, " runs over spatial and reduce variables at once; split it first");
    }
  }
  // The init moves in front of all that runs inside the target: nothing there may run twice for one element.
  VarRanges inside;
  for (int n = index.parent(node); n >= loop_node; n = index.parent(n)) {
    if (index.IsLoop(n)) inside[index.loop(n).var] = Range{index.loop(n).min, index.loop(n).extent};
  }
  if (!IsInjective(realize.values, inside, realize.predicate)) {
    return Refused(where,
                   ": inside the loop the block computes some elements more than once, each time from its init; choose "
                   "a loop further in");
  }

  // Nor may what the init reads be made there.
  Block start{.body = block.init};
  DeclareRegions(start);
  for (const BufferRegion& read : start.reads) {
    for (const int w : WritersOf(index, index.EnclosingBlock(node), read.buffer)) {
      if (!index.Contains(loop_node, w) || w == node) continue;
      return Refused(where, ": the init reads ", read.buffer, ", which block ", index.block(w).name,
                     " writes inside the loop; choose a loop further in");
    }
  }

  // ---- nothing below fails ----
  // Loops at and below the target that number elements of the result, each with a new variable.
  std::vector<std::pair<const For*, Var>> kept;
  std::vector<std::pair<Var, Expr>> dropped;  // the others, at their start, where the reduction's first instance is
  for (int n = index.parent(node); n >= loop_node; n = index.parent(n)) {
    if (!index.IsLoop(n)) continue;
    const For& loop = index.loop(n);
    if (uses(loop.var, false)) {
      kept.push_back({&loop, Var(loop.var.name() + "_init", loop.var.type())});
    } else {
      dropped.push_back({loop.var, loop.min});
    }
  }
  const VarMap rename = [&](const Var& var) -> std::optional<Expr> {
    for (const auto& [loop, fresh] : kept) {
      if (loop->var.SameAs(var)) return Expr(fresh);
    }
    return std::nullopt;
  };
  BlockRealize init;
  init.block.name = FreshBlockName(index, block.name + "_init");
  init.block.writes = block.writes;
  init.block.body = block.init;
  std::vector<std::pair<Var, Expr>> iters;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].kind != IterKind::kSpatial) continue;
    const Var fresh(block.iters[i].var.name(), block.iters[i].var.type());
    init.block.iters.push_back({fresh, block.iters[i].domain, IterKind::kSpatial});
    init.values.push_back(Substitute(realize.values[i], rename));
    iters.push_back({block.iters[i].var, Expr(fresh)});
  }
  const VarMap to_init = [&](const Var& var) -> std::optional<Expr> {
    for (const auto& [old, fresh] : iters) {
      if (old.SameAs(var)) return fresh;
    }
    return std::nullopt;
  };
  init.block.body = RenewDefinitions(Substitute(init.block.body, to_init));
  for (const BufferRegion& read : start.reads) init.block.reads.push_back(read);
  for (std::vector<BufferRegion>* regions : {&init.block.reads, &init.block.writes}) {
    for (BufferRegion& region : *regions) {
      for (Range& r : region.region) r = Range{Substitute(r.min, to_init), Substitute(r.extent, to_init)};
    }
  }
  Analyzer known(RangesAround(index, node));
  for (const auto& [loop, fresh] : kept) known.Bind(fresh, Range{loop->min, loop->extent});
  init.predicate = known.Simplify(Substitute(realize.predicate, [&](const Var& var) -> std::optional<Expr> {
    for (const auto& [old, start] : dropped) {
      if (old.SameAs(var)) return start;
    }
    return rename(var);
  }));
  const std::string init_name = init.block.name;
  Stmt init_nest = Stmt::Make(std::move(init));
  for (const auto& [loop, fresh] : kept) {  // innermost first
    For copy = *loop;
    copy.var = fresh;
    copy.min = Substitute(loop->min, rename);
    copy.extent = Substitute(loop->extent, rename);
    copy.body = std::move(init_nest);
    init_nest = Stmt::Make(std::move(copy));
  }

  BlockRealize update = realize;
  update.block.init = Stmt();
  for (const BufferRegion& w : block.writes) {  // it now reads what the init wrote
    if (!Reads(block, w.buffer)) update.block.reads.push_back(w);
  }
  const Stmt updated = index.Replace(node, Stmt::Make(std::move(update)));
  const ProgramIndex again(updated);
  schedule.SetBody(again.InsertBeside(again.FindLoop(target.var), std::move(init_nest), Stmt()));
  const int number = schedule.Record(DecomposeReductionStep{.block = block_ref, .loop = loop_ref},
                                     {Schedule::Output::Block(init_name)});
  return BlockRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const DecomposeReductionStep& step) {
  return DecomposeReduction(schedule, step.block, step.loop).status();
}

HONE_PRIMITIVES(decompose_reduction, DecomposeReductionStep)

}  // namespace hone
