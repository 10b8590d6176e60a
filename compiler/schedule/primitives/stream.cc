#include "compiler/schedule/primitives/stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/ir/annotations.h"
#include "compiler/schedule/analysis/dataflow.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/primitives/step_argument.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status Stream(Schedule& schedule, BlockRef ref, int buffer_index) {
  constexpr int64_t kLineBytes = 64;
  HONE_ASSIGN_OR_RETURN(const int node, schedule.BlockNode(ref, "stream"));
  const ProgramIndex& index = schedule.index();
  const Block& block = index.block(node);
  if (buffer_index < 0 || buffer_index >= static_cast<int>(block.writes.size())) {
    return Invalid("stream(", block.name, "): it writes ", block.writes.size(), " buffers, there is no number ",
                   buffer_index);
  }
  const Buffer buffer = block.writes[static_cast<size_t>(buffer_index)].buffer;
  const std::string where = Message("stream(", block.name, ", ", buffer, ")");
  if (AllocatingBlock(index, buffer) >= 0) {
    return Refused(where, ": it is made here to be read here, and is to stay in cache until then");
  }
  if (HasReduction(block)) return Refused(where, ": it is a sum, each of its elements is written many times");
  for (const int other : index.AllBlocks()) {
    if (index.Contains(other, node)) {  // a block around it, or itself, says what it does in all
      if (!Reads(index.block(other), buffer)) continue;
      return Refused(where, ": ", index.block(other).name, " reads what it writes");
    }
    if (!Reads(index.block(other), buffer) && !Writes(index.block(other), buffer)) continue;
    return Refused(where, ": ", index.block(other).name, " needs it too, and finds it in cache");
  }
  const std::vector<Expr>& shape = buffer.shape();
  const int64_t row = shape.empty() ? 1 : ConstantValue(shape.back()).value_or(kLineBytes);
  if (buffer.rank() > 1 && row * buffer.type().bytes() % kLineBytes != 0) {
    return Refused(where, ": rows of ", row * buffer.type().bytes(), " bytes begin inside lines of ", kLineBytes);
  }
  // ---- nothing below fails ----
  std::vector<int64_t> streamed;
  if (const auto old = block.annotations.find(kStreamed); old != block.annotations.end()) {
    if (const auto* list = std::get_if<std::vector<int64_t>>(&old->second)) streamed = *list;
  }
  if (std::ranges::find(streamed, buffer_index) == streamed.end()) streamed.push_back(buffer_index);
  BlockRealize changed = index.realize(node);
  changed.block.annotations[kStreamed] = std::move(streamed);
  schedule.SetBody(index.Replace(node, Stmt::Make(std::move(changed))));
  schedule.Record(StreamStep{.block = ref, .buffer_index = buffer_index}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const StreamStep& step) {
  return Stream(schedule, step.block, AsIndex(step.buffer_index));
}

HONE_PRIMITIVES(stream, StreamStep)

}  // namespace hone
