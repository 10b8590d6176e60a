// reduction: the terms of an element are shared among threads, which add up what each has found.
//
//   for i: for k: S   =>   blockIdx.x i0: threadIdx.y i1: for k0: threadIdx.x k1: S      terms that are neighbours
//                          blockIdx.x i0: threadIdx.x i1: for k0: threadIdx.y k1: S      elements that are
#include <algorithm>

#include "compiler/schedule/primitives/add_unit_loop.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/gpu/gpu_nests.h"
#include "tuner/space/nest_loops.h"

namespace hone {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kFewestTerms = 64;  // below that a thread is done sooner than threads agree

int64_t Terms(const BlockInfo& block) {
  int64_t terms = 1;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (!block.spatial(static_cast<int>(i))) terms *= block.extents[i];
  }
  return terms;
}

}  // namespace

bool IsGpuReduction(const GpuContext& context, int block) {
  const BlockInfo& info = context.block(block);
  if (!info.reduces || !info.splits || !info.single_store || Terms(info) < kFewestTerms) return false;
  const int64_t elements = info.instances() / Terms(info);
  return AddsAlongMemory(info) || elements < context.target.processors * kThreads;
}

absl::Status ScheduleGpuReduction(Schedule& schedule, const GpuContext& context, int block) {
  const BlockInfo& info = context.block(block);
  HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, info.name));
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> spatial, GetLoops(schedule, ref));
  HONE_ASSIGN_OR_RETURN(const auto by_iter, LoopsOfIters(schedule, ref, spatial));
  std::vector<LoopRef> terms;
  LoopRef longest;  // along it terms are shared out
  int64_t most = 0;
  for (size_t i = 0; i < info.iters.size(); ++i) {
    if (info.spatial(static_cast<int>(i)) || !by_iter[i].has_value()) continue;
    terms.push_back(*by_iter[i]);
    std::erase(spatial, *by_iter[i]);
    const bool last = static_cast<int>(i) == info.last_reduce_iter();
    if (info.extents[i] > most || (last && AddsAlongMemory(info))) longest = *by_iter[i], most = info.extents[i];
  }
  if (terms.empty()) return absl::FailedPreconditionError("reduction: one term");
  const bool one_element = spatial.empty();
  if (one_element) {
    HONE_ASSIGN_OR_RETURN(const LoopRef around, AddUnitLoop(schedule, terms[0]));
    spatial.push_back(around);
  }
  const bool along = AddsAlongMemory(info);
  const int64_t together = std::min(PowerOfTwoFrom(most), along ? 64 : int64_t{8});
  const int64_t elements =
      one_element ? 1 : std::max<int64_t>(1, std::min(kThreads, context.target.threads) / together / (along ? 4 : 1));
  std::erase(terms, longest);
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> shared, Split(schedule, longest, {-1, together}));
  std::vector<LoopRef> order = spatial;
  order.insert(order.end(), terms.begin(), terms.end());
  order.insert(order.end(), shared.begin(), shared.end());
  HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  HONE_ASSIGN_OR_RETURN(const LoopRef fused, FuseAll(schedule, spatial));
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, fused, {-1, elements}));
  HONE_RETURN_IF_ERROR(Bind(schedule, parts[0], "blockIdx.x"));
  HONE_RETURN_IF_ERROR(Bind(schedule, parts[1], along ? "threadIdx.y" : "threadIdx.x"));
  HONE_RETURN_IF_ERROR(Bind(schedule, shared[1], along ? "threadIdx.x" : "threadIdx.y"));
  const int epilogue = context.fusion.Epilogue(block);
  if (epilogue < 0) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(SetScope(schedule, ref, 0, Scope::kShared));
  HONE_ASSIGN_OR_RETURN(const BlockRef taker, GetBlock(schedule, context.block(epilogue).name));
  return ReverseComputeAt(schedule, taker, parts[1]);
}

}  // namespace hone
