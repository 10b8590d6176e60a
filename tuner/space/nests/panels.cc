#include "tuner/space/nests/panels.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/analysis/index_map.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/layout_constant.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/pack.h"
#include "compiler/schedule/primitives/transform_layout.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/nest_loops.h"

namespace hone {
namespace {

// (i, j, n) -> (n // nr, i, j, n % nr) for the dimension `along`; with groups of j, (n // nr, i, j // g, n % nr, j %
// g).
IndexMap PanelMap(const BlockInfo::Access& operand, const Panels& panels) {
  const int rank = static_cast<int>(operand.indices.size());
  const size_t along = static_cast<size_t>(panels.along);
  IndexMap map;
  for (int d = 0; d < rank; ++d) map.inputs.emplace_back(absl::StrCat("d", d));
  map.outputs.push_back(FloorDiv(map.inputs[along], Expr(panels.width)));
  for (int d = 0; d < rank; ++d) {
    const Var& input = map.inputs[static_cast<size_t>(d)];
    if (d != panels.along) map.outputs.push_back(d == panels.group_along ? FloorDiv(input, Expr(panels.group)) : input);
  }
  map.outputs.push_back(FloorMod(map.inputs[along], Expr(panels.width)));
  if (panels.group_along >= 0) {
    const Var& grouped = map.inputs[static_cast<size_t>(panels.group_along)];
    map.outputs.push_back(FloorMod(grouped, Expr(panels.group)));
  }
  return map;
}

// Another row of the tile reads the same elements.
bool IsShared(const BlockInfo& block, const BlockInfo::Access& operand) {
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    const size_t at = static_cast<size_t>(i);
    if (block.spatial(i) && block.extents[at] > 1 && operand.strides[at] == 0) return true;
  }
  return false;
}

}  // namespace

int DimensionAlong(const BlockInfo& block, const BlockInfo::Access& operand, int iter) {
  int along = -1, uses = 0;
  for (size_t d = 0; d < operand.indices.size(); ++d) {
    const VarRef* ref = operand.indices[d].As<VarRef>();
    if (ref == nullptr || !(ref->var == block.iters[static_cast<size_t>(iter)].var)) continue;
    along = static_cast<int>(d);
    ++uses;
  }
  return uses == 1 ? along : -1;
}

int DimensionToPack(const BlockInfo& block, const BlockInfo::Access& operand, int64_t lanes) {
  const size_t n = static_cast<size_t>(block.last_iter());
  const int64_t stride = operand.strides[n];
  if (stride == 0) return -1;
  const bool worth = operand.constant ? stride != 1 || block.extents[n] > lanes
                                      : stride != 1 || (operand.affine && IsShared(block, operand));
  return worth ? DimensionAlong(block, operand, block.last_iter()) : -1;
}

absl::StatusOr<int> ReadOf(const Schedule& schedule, BlockRef block, const BlockInfo::Access& operand) {
  HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, schedule.FindBlock(block));
  const std::vector<BufferRegion>& reads = realize->block.reads;
  const auto read = std::ranges::find_if(
      reads, [&](const BufferRegion& region) { return region.buffer.name() == operand.buffer.name(); });
  if (read != reads.end()) return static_cast<int>(read - reads.begin());
  if (operand.constant) return absl::InternalError(absl::StrCat("the tile reads no ", operand.buffer.name()));
  return -1;
}

absl::Status PackBefore(Schedule& schedule, BlockRef block, const BlockInfo::Access& operand, const Panels& panels,
                        int threads) {
  HONE_ASSIGN_OR_RETURN(const int read, ReadOf(schedule, block, operand));
  if (read < 0) return absl::OkStatus();
  const IndexMap map = PanelMap(operand, panels);
  if (operand.constant) return LayoutConstant(schedule, block, read, map);
  HONE_ASSIGN_OR_RETURN(const BlockRef copy, CacheRead(schedule, block, read, Scope::kGlobal));
  HONE_RETURN_IF_ERROR(TransformLayout(schedule, copy, 0, BufferKind::kWrite, map));
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, GetLoops(schedule, copy));
  if (threads == 1 || loops.size() < 2) return absl::OkStatus();
  loops.pop_back();
  return FuseAndParallel(schedule, std::move(loops));
}

absl::Status PackAt(Schedule& schedule, BlockRef block, const BlockInfo::Access& operand, const Panels& panels,
                    LoopRef loop, size_t depth, int lanes) {
  HONE_ASSIGN_OR_RETURN(const int read, ReadOf(schedule, block, operand));
  if (read < 0) return absl::OkStatus();
  // What a panel lacks at the end of the operand is not read: tails of tiles are cut off.
  HONE_ASSIGN_OR_RETURN(const BlockRef copy, Pack(schedule, block, read, loop, PanelMap(operand, panels),
                                                  PanelTails::kMask, Scope::kThread));
  return VectorizeInnermost(schedule, copy, depth, lanes, false);
}

}  // namespace hone
