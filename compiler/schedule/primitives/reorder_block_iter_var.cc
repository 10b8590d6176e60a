#include "compiler/schedule/primitives/reorder_block_iter_var.h"

#include <utility>

#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status ReorderBlockIterVar(Schedule& schedule, BlockRef ref, std::vector<int64_t> new_order) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "reorder_block_iter_var"));
  const BlockRealize& realize = schedule.index().realize(node);
  const std::vector<IterVar>& iters = realize.block.iters;
  const std::string where = Message("reorder_block_iter_var(", realize.block.name, ")");
  const int64_t count = static_cast<int64_t>(iters.size());
  if (static_cast<int64_t>(new_order.size()) != count) {
    return Invalid(where, ": the block has ", count, " iteration variables, the new order ", new_order.size());
  }
  std::vector<bool> taken(iters.size(), false);
  for (const int64_t k : new_order) {
    if (k < 0 || k >= count) return Invalid(where, ": there is no variable number ", k, "; they count from 0");
    if (taken[k]) return Invalid(where, ": variable ", iters[k].var, " (number ", k, ") is there twice");
    taken[k] = true;
  }
  // ---- nothing below fails ----
  BlockRealize reordered = realize;
  for (size_t i = 0; i < new_order.size(); ++i) {
    reordered.block.iters[i] = iters[new_order[i]];
    reordered.values[i] = realize.values[new_order[i]];
  }
  schedule.SetBody(schedule.index().Replace(node, Stmt::Make(std::move(reordered))));
  schedule.Record(ReorderBlockIterVarStep{.block = ref, .new_order = std::move(new_order)}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const ReorderBlockIterVarStep& step) {
  return ReorderBlockIterVar(schedule, step.block, step.new_order);
}

HONE_PRIMITIVES(reorder_block_iter_var, ReorderBlockIterVarStep)

}  // namespace hone
