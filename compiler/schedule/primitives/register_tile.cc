#include "compiler/schedule/primitives/register_tile.h"

#include <algorithm>
#include <utility>

#include "compiler/arith/analyzer.h"
#include "compiler/schedule/analysis/divide_block.h"
#include "compiler/schedule/analysis/match_intrinsic.h"
#include "compiler/schedule/analysis/message.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr int64_t kMostElements = 1024, kMostLanes = 64, kMostUnrolled = 64;

// The register tile of the type that the block writes.
const TileIntrinsic* TileOf(const Block& block) {
  if (block.writes.empty()) return nullptr;
  const DType type = block.writes[0].buffer.type();
  for (const char* name : {"fma_tile_f32", "fma_tile_f64", "fma_tile_s32"}) {
    const TileIntrinsic* row = FindTileIntrinsic(name);
    if (row != nullptr && row->operands[0].type() == type) return row;
  }
  return nullptr;
}

}  // namespace

absl::Status RegisterTile(Schedule& schedule, LoopRef ref, int64_t lanes, int64_t unroll) {
  HONE_ASSIGN_OR_RETURN(const int node, schedule.LoopNode(ref, "register_tile"));
  const ProgramIndex& index = schedule.index();
  const std::string where = Message("register_tile(", index.loop(node).var, ")");
  if (lanes < 0 || lanes > kMostLanes) return Invalid(where, ": lanes is ", lanes, ", not from 0 to ", kMostLanes);
  if (unroll < 1 || unroll > kMostUnrolled)
    return Invalid(where, ": unroll is ", unroll, ", not from 1 to ", kMostUnrolled);
  HONE_ASSIGN_OR_RETURN(const DividedBlock divided, DivideBlock(index, node, where));
  const Block& block = index.block(divided.block);
  const TileIntrinsic* intrinsic = TileOf(block);
  if (intrinsic == nullptr)
    return Refused(where, ": there is no register tile of the type that block ", block.name, " writes");
  HONE_ASSIGN_OR_RETURN(MatchedTile matched, MatchIntrinsic(index, divided, *intrinsic, where));
  TileOp op = std::move(matched.op);  // a register tile has no fragments
  int64_t elements = 1;
  for (const Range& range : op.operands[0].region) {  // every part of a minimum is a bound
    const Binary* least = range.extent.As<Binary>();
    const Expr bound = least != nullptr && ConstantValue(least->b).has_value() ? least->b : range.extent;
    elements *= ConstantValue(bound).value_or(1);
  }
  int64_t largest = 1;
  for (size_t i = 0; i < divided.iters.size(); ++i) {
    if (block.iters[i].kind == IterKind::kSpatial) largest *= divided.iters[i].factor;
  }
  if (std::max(elements, largest) > kMostElements) {
    return Refused(where, ": a tile has ", largest, " elements, registers hold no more than ", kMostElements,
                   "; split the loops and tile an inner one");
  }

  // ---- nothing below fails ----
  const std::vector<Expr> extents = TileExtents(*intrinsic, op);
  for (size_t a = 0; a < extents.size(); ++a) {
    const IterVar& axis = intrinsic->axes[a];
    if (axis.kind != IterKind::kSpatial || ConstantValue(extents[a]).has_value()) continue;
    Analyzer known;
    for (const DividedIter& part : divided.iters) known.Bind(part.tile, part.tile_domain);
    op.params[axis.var.name()] = known.ConstBounds(extents[a]).max;
  }
  if (lanes != 0) op.params["lanes"] = lanes;
  if (unroll != 1) op.params["unroll"] = unroll;
  BlockRealize tile = MakeTileBlock(index, divided, block.name);
  tile.block.annotations = block.annotations;
  tile.block.body = Stmt::Make(std::move(op));
  schedule.SetBody(index.Replace(node, Stmt::Make(std::move(tile))));
  schedule.Record(RegisterTileStep{.loop = ref, .lanes = lanes, .unroll = unroll}, {});
  return absl::OkStatus();
}

absl::Status Apply(Schedule& schedule, const RegisterTileStep& step) {
  return RegisterTile(schedule, step.loop, step.lanes, step.unroll);
}

HONE_PRIMITIVES(register_tile, RegisterTileStep)

}  // namespace hone
