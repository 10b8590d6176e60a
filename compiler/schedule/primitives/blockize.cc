#include "compiler/schedule/primitives/blockize.h"

#include <utility>

#include "compiler/ir/block_regions.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/divide_block.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<BlockRef> Blockize(Schedule& schedule, LoopRef ref) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "blockize"));
  const ProgramIndex& index = schedule.index();
  HONE_ASSIGN_OR_RETURN(const DividedBlock divided,
                        DivideBlock(index, node, Message("blockize(", index.loop(node).var, ")")));
  // ---- nothing below fails ----
  const Block& block = index.block(divided.block);
  const std::string name = FreshBlockName(index, block.name + "_o");
  BlockRealize outer = MakeTileBlock(index, divided, name);
  BlockRealize inner = index.realize(divided.block);
  for (size_t i = 0; i < divided.iters.size(); ++i) inner.values[i] = divided.iters[i].value;
  inner.predicate = divided.inside_predicate;
  if (inner.block.init) {
    inner.block.init = Stmt();
    DeclareRegions(inner.block);
  }
  Stmt nest = Stmt::Make(std::move(inner));
  for (size_t i = divided.loops.size(); i-- > 0;) nest = WithBody(*divided.loops[i], std::move(nest));
  outer.block.body = std::move(nest);
  schedule.SetBody(index.Replace(node, Stmt::Make(std::move(outer))));
  return BlockRef{schedule.Record(BlockizeStep{.loop = ref}, {Schedule::Output::Block(name)}), 0};
}

absl::Status Apply(Schedule& schedule, const BlockizeStep& step) { return Blockize(schedule, step.loop).status(); }

HONE_PRIMITIVES(blockize, BlockizeStep)

}  // namespace hone
