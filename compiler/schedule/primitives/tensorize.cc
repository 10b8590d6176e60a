#include "compiler/schedule/primitives/tensorize.h"

#include <utility>
#include <variant>

#include "compiler/ir/annotations.h"
#include "compiler/schedule/analysis/divide_block.h"
#include "compiler/schedule/analysis/match_intrinsic.h"
#include "compiler/schedule/analysis/match_warp_operation.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {

namespace {

// What the block's annotation says of its operands' registers.
absl::StatusOr<std::vector<const TileIntrinsic*>> FragmentLoads(const Block& block, const std::string& where) {
  const auto said = block.annotations.find(kFragmentLoads);
  std::vector<const TileIntrinsic*> loads;
  if (said == block.annotations.end()) return loads;
  const auto* names = std::get_if<std::vector<std::string>>(&said->second);
  if (names == nullptr) return Invalid(where, ": ", kFragmentLoads, " is no list of names");
  for (const std::string& name : *names) {
    loads.push_back(name.empty() ? nullptr : FindTileIntrinsic(name));
    if (!name.empty() && loads.back() == nullptr)
      return Invalid(where, ": ", kFragmentLoads, " names ", name, ", and no intrinsic is called that");
  }
  return loads;
}

// Returns whether a block can become operations of the row: loads of a warp go with a product, by kFragmentLoads, and
// asynchronous copies with a pipeline.
bool MakesTiles(const TileIntrinsic& row) {
  const bool is_load = row.threads > 1 && row.operands.size() < 3;
  return row.token == AsyncToken::kNone && !is_load;
}

absl::StatusOr<const TileIntrinsic*> IntrinsicOf(const std::string& name, const std::string& where) {
  const TileIntrinsic* found = FindTileIntrinsic(name);
  if (found != nullptr && MakesTiles(*found)) return found;
  std::string known;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (MakesTiles(row)) known.append(known.empty() ? "" : ", ").append(row.name);
  }
  const char* why = found == nullptr ? ": no intrinsic is called " : ": no block becomes tile operations of ";
  return Invalid(where, why, name, "; there are ", known);
}

// The loop, or the outermost one around the block and nothing else.
absl::StatusOr<int> LoopOf(const Schedule& schedule, const BlockOrLoop& target) {
  if (const LoopRef* loop = std::get_if<LoopRef>(&target)) return schedule.LoopNode(*loop, "tensorize");
  HONE_ASSIGN_OR_RETURN(const int block, schedule.BlockNode(std::get<BlockRef>(target), "tensorize"));
  const ProgramIndex& index = schedule.index();
  int outermost = block;
  for (int n = index.parent(block); n >= 0 && index.IsLoop(n); n = index.parent(n)) {
    if (!index.loop(n).body.SameAs(index.stmt(outermost))) break;
    outermost = n;
  }
  if (outermost == block)
    return Refused("tensorize(", index.block(block).name, "): no loop is around this block alone");
  return outermost;
}

}  // namespace

absl::Status Tensorize(Schedule& schedule, BlockOrLoop target, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const int node, LoopOf(schedule, target));
  const ProgramIndex& index = schedule.index();
  const std::string where = Message("tensorize(", index.loop(node).var, ", ", name, ")");
  HONE_ASSIGN_OR_RETURN(const TileIntrinsic* intrinsic, IntrinsicOf(name, where));
  HONE_ASSIGN_OR_RETURN(const DividedBlock divided, DivideBlock(index, node, where));
  BlockRealize tile = MakeTileBlock(index, divided, index.block(divided.block).name);
  tile.block.annotations = index.block(divided.block).annotations;
  if (intrinsic->threads > 1) {
    HONE_ASSIGN_OR_RETURN(const std::vector<const TileIntrinsic*> loads, FragmentLoads(tile.block, where));
    HONE_ASSIGN_OR_RETURN(WarpOperation op, MatchWarpOperation(index, divided, *intrinsic, loads, where));
    tile.block.annotations.erase(kFragmentLoads);
    tile.block.allocs = std::move(op.fragments);
    tile.block.reads = std::move(op.reads);
    for (const BufferRegion& sums : tile.block.writes) tile.block.reads.push_back(sums);
    tile.block.body = std::move(op.body);
  } else {
    HONE_ASSIGN_OR_RETURN(MatchedTile matched, MatchIntrinsic(index, divided, *intrinsic, where));
    for (const auto& [axis, iter] : matched.axes) {
      if (intrinsic->adds_once() && divided.iters[iter].cut_off) matched.op.params[axis] = divided.iters[iter].factor;
    }
    tile.block.allocs = std::move(matched.fragments);
    matched.fills.push_back(Stmt::Make(std::move(matched.op)));
    tile.block.body = MakeSeq(std::move(matched.fills));
  }
  // ---- nothing below fails ----
  schedule.SetBody(index.Replace(node, Stmt::Make(std::move(tile))));
  schedule.Record(TensorizeStep{.target = target, .intrinsic = name}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const TensorizeStep& step) {
  return Tensorize(schedule, step.target, step.intrinsic);
}

HONE_PRIMITIVES(tensorize, TensorizeStep)

}  // namespace hone
