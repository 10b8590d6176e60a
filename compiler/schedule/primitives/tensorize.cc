#include "compiler/schedule/primitives/tensorize.h"

#include <utility>

#include "compiler/schedule/analysis/divide_block.h"
#include "compiler/schedule/analysis/match_intrinsic.h"
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
  if (intrinsic->threads > 1) {
    return Refused(where, ": it is done by ", intrinsic->threads,
                   " threads together, and a schedule cannot say yet which of them holds which part of a tile");
  }
  HONE_ASSIGN_OR_RETURN(const DividedBlock divided, DivideBlock(index, node, where));
  HONE_ASSIGN_OR_RETURN(TileOp op, MatchIntrinsic(index, divided, *intrinsic, where));
  // ---- nothing below fails ----
  BlockRealize tile = MakeTileBlock(index, divided, index.block(divided.block).name);
  tile.block.annotations = index.block(divided.block).annotations;
  tile.block.body = Stmt::Make(std::move(op));
  schedule.SetBody(index.Replace(node, Stmt::Make(std::move(tile))));
  schedule.Record(TensorizeStep{.loop = ref, .intrinsic = name}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const TensorizeStep& step) {
  return Tensorize(schedule, step.loop, step.intrinsic);
}

HONE_PRIMITIVES(tensorize, TensorizeStep)

}  // namespace hone
