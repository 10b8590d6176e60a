#include "tuner/space/stage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/cache.h"
#include "compiler/schedule/index_map.h"
#include "compiler/schedule/layout_constant.h"
#include "compiler/schedule/locate.h"
#include "compiler/schedule/transform_layout.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nest_loops.h"

namespace hone {
namespace {

// A layout in panels of `nr` along one dimension: (i, j, n) -> (n // nr, i, j, n % nr) for the dimension `along`.
IndexMap PanelMap(int rank, int along, int64_t nr) {
  IndexMap map;
  for (int d = 0; d < rank; ++d) map.inputs.emplace_back(absl::StrCat("d", d));
  map.outputs.push_back(FloorDiv(map.inputs[static_cast<size_t>(along)], Expr(nr)));
  for (int d = 0; d < rank; ++d) {
    if (d != along) map.outputs.push_back(map.inputs[static_cast<size_t>(d)]);
  }
  map.outputs.push_back(FloorMod(map.inputs[static_cast<size_t>(along)], Expr(nr)));
  return map;
}

}  // namespace

double ParallelTime(const Machine& machine, double work_us, int64_t tasks, int threads) {
  if (tasks <= 1 || threads <= 1) return work_us;
  const int64_t rounds = (tasks + threads - 1) / threads;  // of the busiest thread
  return work_us * static_cast<double>(rounds) / static_cast<double>(tasks) + machine.fork_us +
         machine.piece_us * static_cast<double>(rounds);
}

double BytesPerCycle(const Target& target, const Machine& machine, double footprint) {
  // Of the rate that nothing but loads reach.
  constexpr double kWithOtherWork = 0.75;
  // A level serves all of what takes up to this share of it, and nothing of twice as much.
  constexpr double kServed = 0.6;
  struct Beyond {
    int64_t capacity;  // of a level
    double rate;       // of the next one
  };
  double cycles = 1 / machine.l1;  // for a byte
  for (const Beyond& level :
       {Beyond{target.l1d, machine.l2}, Beyond{target.l2, machine.l3}, Beyond{target.l3, machine.memory}}) {
    const double served = kServed * static_cast<double>(level.capacity);
    const double missing = served > 0 ? std::clamp(footprint / served - 1, 0.0, 1.0) : 1;
    cycles += missing * (1 / level.rate - cycles);
  }
  return kWithOtherWork / cycles;
}

std::vector<int64_t> DivisorsUpTo(int64_t n, int64_t limit) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d <= n && d <= limit; ++d) {
    if (n % d == 0) found.push_back(d);
  }
  return found;
}

std::vector<int64_t> BlocksOfK(const BlockInfo& block, int along) {
  constexpr int64_t kLongReduction = 512;  // in all; of a shorter one the panels are in cache anyway
  constexpr int64_t kShortestBlock = 64;
  constexpr int64_t kMostBlocks = 16;
  int64_t steps = 1;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (!block.spatial(i)) steps *= block.extents[static_cast<size_t>(i)];
  }
  const int64_t extent = block.extents[static_cast<size_t>(along)];
  if (steps < kLongReduction || extent < 2 * kShortestBlock) return {1};
  return DivisorsUpTo(extent, std::min(kMostBlocks, extent / kShortestBlock));
}

int DimensionToPack(const BlockInfo& block, const BlockInfo::Access& operand, int64_t lanes) {
  const size_t n = static_cast<size_t>(block.last_iter());
  const int64_t stride = operand.strides[n];
  if (stride == 0 || (stride == 1 && !(operand.constant && block.extents[n] > lanes))) return -1;
  int along = -1, uses = 0;
  for (size_t d = 0; d < operand.indices.size(); ++d) {
    const VarRef* ref = operand.indices[d].As<VarRef>();
    if (ref == nullptr || !(ref->var == block.iters[n].var)) continue;
    along = static_cast<int>(d);
    ++uses;
  }
  return uses == 1 ? along : -1;
}

absl::Status PackOperand(Schedule& schedule, BlockRef block, const BlockInfo::Access& operand, int along, int64_t nr,
                         int threads) {
  HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, schedule.FindBlock(block));
  const std::vector<BufferRegion>& reads = realize->block.reads;
  const auto read = std::find_if(reads.begin(), reads.end(),
                                 [&](const BufferRegion& region) { return region.buffer == operand.buffer; });
  if (read == reads.end()) return absl::OkStatus();
  const int index = static_cast<int>(read - reads.begin());
  const IndexMap panels = PanelMap(static_cast<int>(operand.indices.size()), along, nr);
  if (operand.constant) return LayoutConstant(schedule, block, index, panels);
  HONE_ASSIGN_OR_RETURN(const BlockRef copy, CacheRead(schedule, block, index, Scope::kGlobal));
  HONE_RETURN_IF_ERROR(TransformLayout(schedule, copy, 0, BufferKind::kWrite, panels));
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, GetLoops(schedule, copy));
  if (threads == 1 || loops.size() < 2) return absl::OkStatus();
  loops.pop_back();
  return FuseAndParallel(schedule, std::move(loops));
}

}  // namespace hone
