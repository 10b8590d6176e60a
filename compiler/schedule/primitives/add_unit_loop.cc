#include "compiler/schedule/primitives/add_unit_loop.h"

#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/nest.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::StatusOr<LoopRef> AddUnitLoop(Schedule& schedule, BlockOrLoop inner) {
  int node = -1;
  if (const BlockRef* block = std::get_if<BlockRef>(&inner)) {
    HONE_ASSIGN_OR_RETURN(node, schedule.BlockNode(*block, "add_unit_loop"));
    if (node == 0) return Refused("add_unit_loop(root): no loop goes around the root block");
  } else {
    HONE_ASSIGN_OR_RETURN(node, schedule.LoopNode(std::get<LoopRef>(inner), "add_unit_loop"));
  }
  // ---- nothing below fails ----
  const Var var("u");
  schedule.SetBody(schedule.index().Replace(node, MakeLoop(var, IntConst(1), schedule.index().stmt(node))));
  const int number = schedule.Record(AddUnitLoopStep{.inner = inner}, {Schedule::Output::Loop(var)});
  return LoopRef{number, 0};
}

absl::Status Apply(Schedule& schedule, const AddUnitLoopStep& step) {
  return AddUnitLoop(schedule, step.inner).status();
}

HONE_PRIMITIVES(add_unit_loop, AddUnitLoopStep)

}  // namespace hone
