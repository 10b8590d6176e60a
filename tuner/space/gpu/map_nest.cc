// map: a thread an element, and where the block reduces, all its terms.
//
//   for i: for j: for k: S      =>   blockIdx.x ij0: threadIdx.x ij1: for k: S;  [epilogue]
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/gpu/gpu_nests.h"
#include "tuner/space/nest_loops.h"

namespace hone {
namespace {

constexpr int64_t kThreads = 256;

}  // namespace

absl::Status ScheduleMap(Schedule& schedule, const GpuContext& context, int block) {
  const BlockInfo& info = context.block(block);
  HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, info.name));
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> spatial, GetLoops(schedule, ref));
  HONE_ASSIGN_OR_RETURN(const auto by_iter, LoopsOfIters(schedule, ref, spatial));
  std::vector<LoopRef> terms;
  for (size_t i = 0; i < info.iters.size(); ++i) {
    if (info.spatial(static_cast<int>(i)) || !by_iter[i].has_value()) continue;
    terms.push_back(*by_iter[i]);
    std::erase(spatial, *by_iter[i]);
  }
  if (spatial.empty()) return absl::FailedPreconditionError("map: the block has one element");
  std::vector<LoopRef> order = spatial;
  order.insert(order.end(), terms.begin(), terms.end());
  if (order.size() > 1) HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  std::optional<BlockRef> taker;
  if (info.reduces) { HONE_ASSIGN_OR_RETURN(taker, TakeFromRegisters(schedule, context, block, ref)); }
  HONE_ASSIGN_OR_RETURN(const LoopRef elements, FuseAll(schedule, spatial));
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts,
                        Split(schedule, elements, {-1, std::min(kThreads, context.target.threads)}));
  HONE_RETURN_IF_ERROR(Bind(schedule, parts[0], "blockIdx.x"));
  HONE_RETURN_IF_ERROR(Bind(schedule, parts[1], "threadIdx.x"));
  if (!taker.has_value()) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(ReverseComputeAt(schedule, *taker, parts[1]));
  return terms.empty() ? absl::OkStatus() : DecomposeReduction(schedule, ref, terms[0]).status();
}

}  // namespace hone
