// reduction: the terms of an element are shared among threads, which add up what each has found.
//
//   for i: for k: S   =>   blockIdx.x i0: threadIdx.y i1: for k0: threadIdx.x k1: S      terms that are neighbours
//                          blockIdx.x i0: threadIdx.x i1: for k0: threadIdx.y k1: S      elements that are
#include <algorithm>
#include <cmath>

#include "compiler/schedule/primitives/add_unit_loop.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/gpu/gpu_nests.h"

namespace hone {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kFewestTerms = 64;  // below that a thread is done sooner than threads agree

// The iteration variable along which terms are shared out.
int Longest(const BlockInfo& block) {
  return AddsAlongMemory(block) ? block.last_reduce_iter() : block.longest_reduce_iter();
}

class ReductionNest : public GpuNest {
 public:
  ReductionNest(GpuContextRef context, int block) : GpuNest("reduction", std::move(context), block) {
    const int64_t most =
        std::min(target().threads, PowerOfTwoFrom(info().extents[static_cast<size_t>(Longest(info()))]));
    AddKnob("together", {4, 8, 16, 32, 64, 128, 256}, most);
    AddKnob("elements", {1, 2, 4, 8, 16, 32, 64}, PowerOfTwoFrom(Elements()));
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan&) const override {
    const int64_t together = values[0], elements = values[1];
    if (together * elements > target().threads) return std::nullopt;
    LaunchWork work{.threads = together * elements};
    work.shared_bytes = work.threads * info().output.type().bytes();
    if (work.shared_bytes > target().shared) return std::nullopt;
    work.blocks = std::ceil(static_cast<double>(Elements()) / static_cast<double>(elements));
    const double instances = static_cast<double>(elements * TermsOf(info()));
    work.operations = instances * std::max(1.0, info().operations);
    work.memory_bytes = BytesOfBuffers(info());
    for (const BlockInfo::Access& read : info().reads) work.near_bytes += instances * read.buffer.type().bytes();
    work.far_bytes = work.near_bytes;
    work.barriers = 1 + std::log2(static_cast<double>(together));
    return LaunchMicroseconds(work, target());
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override;

 private:
  int64_t Elements() const { return info().instances() / TermsOf(info()); }
};

absl::Status ReductionNest::Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const {
  Schedule& schedule = build.schedule;
  const int64_t together = values[0], elements = values[1];
  HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, info().name));
  HONE_ASSIGN_OR_RETURN(LoopsOfBlock loops, FindLoops(schedule, ref, info()));
  auto& [spatial, terms, by_iter] = loops;
  const std::optional<LoopRef> longest = by_iter[static_cast<size_t>(Longest(info()))];
  if (!longest.has_value()) return absl::FailedPreconditionError("reduction: one term");
  if (spatial.empty()) {  // one element
    HONE_ASSIGN_OR_RETURN(const LoopRef around, AddUnitLoop(schedule, terms[0]));
    spatial.push_back(around);
  }
  const bool along = AddsAlongMemory(info());
  std::erase(terms, *longest);
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> shared, Split(schedule, *longest, {-1, together}));
  std::vector<LoopRef> order = spatial;
  order.insert(order.end(), terms.begin(), terms.end());
  order.insert(order.end(), shared.begin(), shared.end());
  HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  HONE_ASSIGN_OR_RETURN(const LoopRef fused, FuseAll(schedule, spatial));
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, fused, {-1, elements}));
  HONE_RETURN_IF_ERROR(Bind(schedule, parts[0], "blockIdx.x"));
  HONE_RETURN_IF_ERROR(Bind(schedule, parts[1], along ? "threadIdx.y" : "threadIdx.x"));
  HONE_RETURN_IF_ERROR(Bind(schedule, shared[1], along ? "threadIdx.x" : "threadIdx.y"));
  const int epilogue = context_->fusion.Epilogue(block_);
  if (epilogue < 0) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(SetScope(schedule, ref, 0, Scope::kShared));
  HONE_ASSIGN_OR_RETURN(const BlockRef taker, GetBlock(schedule, context_->block(epilogue).name));
  return ReverseComputeAt(schedule, taker, parts[1]);
}

}  // namespace

GpuNestRef MakeReductionNest(GpuContextRef context, int block) {
  const BlockInfo& info = context->block(block);
  const int64_t terms = TermsOf(info);
  if (!info.reduces || !info.splits || !info.single_store || terms < kFewestTerms) return nullptr;
  if (!AddsAlongMemory(info) && info.instances() / terms >= context->target.processors * kThreads) return nullptr;
  return std::make_shared<ReductionNest>(std::move(context), block);
}

}  // namespace hone
