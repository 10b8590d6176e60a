#include "tuner/space/stage.h"

#include "absl/strings/str_cat.h"
#include "compiler/schedule/fuse.h"
#include "compiler/schedule/loop_kind.h"
#include "compiler/support/status_macros.h"

namespace hone {

double ParallelTime(double work_us, int64_t tasks, int threads) {
  if (tasks <= 1 || threads <= 1) return work_us;
  const int64_t rounds = (tasks + threads - 1) / threads;        // of the busiest thread
  return work_us * static_cast<double>(rounds) / static_cast<double>(tasks) + kParallelMicroseconds;
}

// Rates of Zen 4 and Zen 5 cores between levels (codegen.md 2.1: 2 x 64 B from L1, 64 B from L2), lowered to what loops
// with other work reach.
double BytesPerCycle(const Target& target, double footprint) {
  if (footprint <= 0.6 * static_cast<double>(target.l1d)) return 96;
  if (footprint <= 0.8 * static_cast<double>(target.l2)) return 36;
  if (footprint <= 0.6 * static_cast<double>(target.l3)) return 14;
  return 6;
}

std::vector<int64_t> DivisorsUpTo(int64_t n, int64_t limit) {
  std::vector<int64_t> found;
  for (int64_t d = 1; d <= n && d <= limit; ++d) {
    if (n % d == 0) found.push_back(d);
  }
  return found;
}

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

absl::StatusOr<std::optional<int>> ReadIndex(const Schedule& schedule, BlockRef block, const Buffer& buffer) {
  HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, schedule.FindBlock(block));
  const std::vector<BufferRegion>& reads = realize->block.reads;
  for (size_t i = 0; i < reads.size(); ++i) {
    if (reads[i].buffer == buffer) return static_cast<int>(i);
  }
  return std::nullopt;
}

absl::Status FuseAndParallel(Schedule& schedule, std::vector<LoopRef> loops) {
  LoopRef loop = loops.front();
  if (loops.size() > 1) {
    HONE_ASSIGN_OR_RETURN(loop, Fuse(schedule, std::move(loops)));
  }
  return Parallel(schedule, loop);
}

}  // namespace hone
