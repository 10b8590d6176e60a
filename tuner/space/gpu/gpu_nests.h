// The rules of default_gpu_schedule.h, each in a file of its own. A rule schedules one block of a program in which
// everything that can be inlined is; it is refused as primitives are, and leaves the schedule half-way then.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/gpu_target.h"
#include "tuner/space/block_fusion.h"
#include "tuner/space/workload_info.h"

namespace hone {

struct GpuContext {
  const WorkloadInfo& info;
  const BlockFusion& fusion;
  const GpuTarget& target;
  const BlockInfo& block(int i) const { return info.blocks[static_cast<size_t>(i)]; }
};

// ---- map
absl::Status ScheduleMap(Schedule& schedule, const GpuContext& context, int block);

// ---- reduction: terms are shared out where the elements of the output alone would not keep a processor busy.
bool IsGpuReduction(const GpuContext& context, int block);
absl::Status ScheduleGpuReduction(Schedule& schedule, const GpuContext& context, int block);

// ---- rows: all blocks of the function in one launch, the last of them the one that the rows are of.
struct RowsPlan {
  int64_t threads = 1;       // of a row
  std::vector<bool> is_row;  // of each iteration variable of the last block
};
// nullopt where the blocks are of another kind, or a row has no room in shared memory.
std::optional<RowsPlan> PlanRows(const GpuContext& context);
absl::Status ScheduleRows(Schedule& schedule, const GpuContext& context, const RowsPlan& plan);

// ---- product: tiles of the output, what is read in shared memory.
struct ProductPlan {
  // By iteration variable. Of spatial ones: threads along it, and elements of each thread; tiles cover the rest.
  // Of reduce ones `inner` says how many terms are in shared memory at once.
  std::vector<int64_t> threads, inner;
  std::vector<int> shared;  // reads that are copied to shared memory, as indices into BlockInfo::reads
};
// A reduction in which one operand is read again for other rows of the output, and another for other columns.
bool IsGpuProduct(const WorkloadInfo& info, int block);
// nullopt where no tile has room in shared memory.
std::optional<ProductPlan> PlanProduct(const GpuContext& context, int block);
absl::Status ScheduleProduct(Schedule& schedule, const GpuContext& context, int block, const ProductPlan& plan);

// ---- Shared pieces
// The least power of 2 that is not below n.
int64_t PowerOfTwoFrom(int64_t n);
// Terms of a sum lie beside one another in memory, in the operand that is the largest.
bool AddsAlongMemory(const BlockInfo& block);
// One loop of several, outermost first.
absl::StatusOr<LoopRef> FuseAll(Schedule& schedule, std::vector<LoopRef> loops);
// The loops around a block from depth `outer` on.
absl::StatusOr<std::vector<LoopRef>> InnerLoops(Schedule& schedule, BlockRef block, size_t outer);
// Gives a block that accumulates into registers somebody who takes its results out of them: its epilogue, or a copy.
absl::StatusOr<BlockRef> TakeFromRegisters(Schedule& schedule, const GpuContext& context, int block, BlockRef ref);

}  // namespace hone
