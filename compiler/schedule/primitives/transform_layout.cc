#include "compiler/schedule/primitives/transform_layout.h"

#include <utility>

#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/layout.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status TransformLayout(Schedule& schedule, BlockRef ref, int buffer_index, BufferKind kind, IndexMap map) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "transform_layout"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  const std::vector<BufferRegion>& regions = kind == BufferKind::kRead ? block.reads : block.writes;
  if (buffer_index < 0 || buffer_index >= static_cast<int>(regions.size())) {
    return Invalid("transform_layout(", block.name, "): it ", kind == BufferKind::kRead ? "reads " : "writes ",
                   regions.size(), " buffers, there is no number ", buffer_index);
  }
  const Buffer buffer = regions[buffer_index].buffer;
  const std::string where = Message("transform_layout(", block.name, ", ", buffer, ")");
  if (AllocatingBlock(index, buffer) < 0) {
    return Refused(where,
                   ": it is a param of the function, whose layout the caller knows; layout_constant re-lays constants, "
                   "cache_read and cache_write make a copy that can be re-laid");
  }
  const absl::StatusOr<InverseMap> inverse = InvertLayout(map, buffer.shape());
  if (!inverse.ok()) return Annotate(inverse.status(), where);
  if (IsMatched(schedule.func().body, buffer))
    return Refused(where, ": it is an operand of a tile operation, whose layout is fixed");
  for (int n = 0; n < index.size(); ++n) {
    if (!index.IsBlock(n)) continue;
    for (const BufferRegion& write : index.block(n).writes) {
      if (!write.buffer.SameAs(buffer) || StaysBox(write, index.block(n), map)) continue;
      return Refused(
          where, ": block ", index.block(n).name,
          " writes a region of it that is no box in the new layout; use transform_layout before blockize, or a map "
          "that does not cut or pad that region");
    }
  }

  // ---- nothing below fails ----
  const Buffer changed(buffer.name(), buffer.type(), inverse->shape, buffer.scope());
  schedule.SetBody(WithLayout(schedule.func().body, buffer, changed, map));
  schedule.Record(TransformLayoutStep{.block = ref, .buffer = {kind, buffer_index}, .index_map = std::move(map)}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const TransformLayoutStep& step) {
  return TransformLayout(schedule, step.block, step.buffer.index, step.buffer.kind, step.index_map);
}

HONE_PRIMITIVES(transform_layout, TransformLayoutStep)

}  // namespace hone
