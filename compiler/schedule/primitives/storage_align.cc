#include "compiler/schedule/primitives/storage_align.h"

#include <utility>

#include "compiler/ir/annotations.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/step_argument.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status StorageAlign(Schedule& schedule, BlockRef ref, int buffer_index, int axis, int64_t factor,
                          int64_t offset) {
  constexpr int64_t kLargest = 1 << 20;
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "storage_align"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  if (buffer_index < 0 || buffer_index >= static_cast<int>(block.writes.size())) {
    return Invalid("storage_align(", block.name, "): it writes ", block.writes.size(), " buffers, there is no number ",
                   buffer_index);
  }
  const Buffer buffer = block.writes[buffer_index].buffer;
  const std::string where = Message("storage_align(", block.name, ", ", buffer, ")");
  const int rank = buffer.rank(), at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) return Invalid(where, ": axis is ", axis, ", the buffer has ", rank, " dimensions");
  if (at == rank - 1) return Invalid(where, ": axis ", axis, " is the last, whose elements lie side by side");
  if (factor < 1 || factor > kLargest) return Invalid(where, ": factor is ", factor, ", not from 1 to ", kLargest);
  if (offset < 0 || offset >= factor)
    return Invalid(where, ": offset is ", offset, ", not from 0 to below the factor ", factor);
  if (offset != 0 && at != rank - 2) {
    return Refused(where, ": the stride of axis ", axis, " is a multiple of that of axis ", at + 1,
                   ", so it takes no offset; give the offset to axis ", rank - 2);
  }
  if (AllocatingBlock(index, buffer) < 0) {
    return Refused(where,
                   ": it is a param of the function, which the caller laid out; cache_read and cache_write make a copy "
                   "that can be aligned");
  }
  if (buffer.scope() == Scope::kRegister) return Refused(where, ": it lives in registers, which have no addresses");
  // ---- nothing below fails ----
  std::vector<int64_t> aligned;
  const auto old = block.annotations.find(kStorageAlign);
  if (old != block.annotations.end()) {
    if (const auto* list = std::get_if<std::vector<int64_t>>(&old->second)) aligned = *list;
  }
  std::vector<int64_t> kept;
  for (size_t i = 0; i + 4 <= aligned.size(); i += 4) {
    if (aligned[i] != buffer_index || aligned[i + 1] != at) kept.insert(kept.end(), &aligned[i], &aligned[i] + 4);
  }
  kept.insert(kept.end(), {buffer_index, at, factor, offset});
  BlockRealize changed = index.realize(node);
  changed.block.annotations[kStorageAlign] = std::move(kept);
  schedule.SetBody(index.Replace(node, Stmt::Make(std::move(changed))));
  schedule.Record(
      StorageAlignStep{.block = ref, .buffer_index = buffer_index, .axis = axis, .factor = factor, .offset = offset},
      {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const StorageAlignStep& step) {
  return StorageAlign(schedule, step.block, AsIndex(step.buffer_index), AsIndex(step.axis), step.factor, step.offset);
}

HONE_PRIMITIVES(storage_align, StorageAlignStep)

}  // namespace hone
