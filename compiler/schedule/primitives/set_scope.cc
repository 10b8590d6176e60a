#include "compiler/schedule/primitives/set_scope.h"

#include <utility>

#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/step_argument.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status SetScope(Schedule& schedule, BlockRef ref, int write_index, Scope scope) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "set_scope"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  if (write_index < 0 || write_index >= static_cast<int>(block.writes.size())) {
    return Invalid("set_scope(", block.name, "): it writes ", block.writes.size(), " buffers, there is no number ",
                   write_index);
  }
  const Buffer buffer = block.writes[write_index].buffer;
  if (AllocatingBlock(index, buffer) < 0) {
    return Refused("set_scope(", block.name, "): ", buffer,
                   " is a param of the function and lives where the caller put it; "
                   "cache_write gives the block a buffer of its own");
  }
  // ---- nothing below fails ----
  const Buffer moved(buffer.name(), buffer.type(), buffer.shape(), scope);
  schedule.SetBody(ReplaceBuffers(schedule.func().body, [&](const Buffer& b) -> std::optional<Buffer> {
    return b.SameAs(buffer) ? std::optional<Buffer>(moved) : std::nullopt;
  }));
  schedule.Record(SetScopeStep{.block = ref, .buffer_index = write_index, .storage_scope = std::string(ToText(scope))},
                  {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const SetScopeStep& step) {
  HONE_ASSIGN_OR_RETURN(const Scope scope, ScopeOf(step.storage_scope));
  return SetScope(schedule, step.block, AsIndex(step.buffer_index), scope);
}

HONE_PRIMITIVES(set_scope, SetScopeStep)

}  // namespace hone
