#include "compiler/schedule/primitives/tensorize.h"

#include <utility>

#include "compiler/schedule/analysis/divide_block.h"
#include "compiler/schedule/analysis/match_intrinsic.h"
#include "compiler/schedule/analysis/match_warp_operation.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

absl::Status Tensorize(Schedule& schedule, LoopRef ref, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "tensorize"));
  const ProgramIndex& index = schedule.index();
  const std::string where = Message("tensorize(", index.loop(node).var, ", ", name, ")");
  const TileIntrinsic* intrinsic = FindTileIntrinsic(name);
  if (intrinsic == nullptr) {
    std::string known;
    for (const TileIntrinsic& row : TileIntrinsics()) known.append(known.empty() ? "" : ", ").append(row.name);
    return Invalid(where, ": no intrinsic is called ", name, "; there are ", known);
  }
  HONE_ASSIGN_OR_RETURN(const DividedBlock divided, DivideBlock(index, node, where));
  BlockRealize tile = MakeTileBlock(index, divided, index.block(divided.block).name);
  tile.block.annotations = index.block(divided.block).annotations;
  if (intrinsic->threads > 1) {
    HONE_ASSIGN_OR_RETURN(WarpOperation op, MatchWarpOperation(index, divided, *intrinsic, where));
    tile.block.allocs = std::move(op.fragments);
    tile.block.reads = std::move(op.reads);
    for (const BufferRegion& sums : tile.block.writes) tile.block.reads.push_back(sums);
    tile.block.body = std::move(op.body);
  } else {
    HONE_ASSIGN_OR_RETURN(TileOp op, MatchIntrinsic(index, divided, *intrinsic, where));
    tile.block.body = Stmt::Make(std::move(op));
  }
  // ---- nothing below fails ----
  schedule.SetBody(index.Replace(node, Stmt::Make(std::move(tile))));
  schedule.Record(TensorizeStep{.loop = ref, .intrinsic = name}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const TensorizeStep& step) {
  return Tensorize(schedule, step.loop, step.intrinsic);
}

HONE_PRIMITIVES(tensorize, TensorizeStep)

}  // namespace hone
