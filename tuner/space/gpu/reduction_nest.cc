// reduction: the terms of an element are shared among threads, which add up what each has found.
//
//   for i: for k: S   =>   blockIdx.x i0: threadIdx.y i1: threadIdx.x k2:                terms that are neighbours
//                            for k0: for k1, unrolled: registers R = A[i, k..];  for k3, unrolled: S of R
//                          blockIdx.x i0: threadIdx.x i1: threadIdx.y k2:                elements that are
//                            for k0: for k1, unrolled: S
//
// The loads of an unrolled loop are on their way at once. Where terms are neighbours a load is a vector of them, k3.
#include <algorithm>
#include <cmath>

#include "compiler/schedule/primitives/add_unit_loop.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/gpu/gpu_nests.h"
#include "tuner/space/gpu/memory_draft.h"

namespace hone {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kFewestTerms = 64;  // below that a thread is done sooner than threads agree

// The iteration variable along which terms are shared out.
int Longest(const BlockInfo& block) {
  return AddsAlongMemory(block) ? block.last_reduce_iter() : block.longest_reduce_iter();
}

// Reads of which a thread takes neighbours along `iter` at once.
std::vector<size_t> ReadsInVectors(const BlockInfo& block, int iter) {
  std::vector<size_t> found;
  for (size_t r = 0; r < block.reads.size(); ++r) {
    const BlockInfo::Access& read = block.reads[r];
    if (read.affine && read.places == 1 && read.strides[static_cast<size_t>(iter)] == 1) found.push_back(r);
  }
  return found;
}

class ReductionNest : public GpuNest {
 public:
  ReductionNest(GpuContextRef context, int block)
      : GpuNest("reduction", std::move(context), block),
        along_(AddsAlongMemory(info())),
        longest_(Longest(info())),
        extent_(info().extents[static_cast<size_t>(longest_)]) {
    if (along_) in_vectors_ = ReadsInVectors(info(), longest_);
    const int64_t most = std::min(target().threads, PowerOfTwoFrom(extent_));
    AddKnob("together", {4, 8, 16, 32, 64, 128, 256, 512, 1024}, most);
    AddKnob("elements", {1, 2, 4, 8, 16, 32, 64}, PowerOfTwoFrom(Elements()));
    int64_t bytes = 1;
    for (const size_t r : in_vectors_) bytes = std::max<int64_t>(bytes, info().reads[r].buffer.type().bytes());
    AddKnob("width", {1, 2, 4, 8}, in_vectors_.empty() ? 1 : std::min(kVectorBytes / bytes, extent_ & -extent_));
    AddKnob("unroll", {1, 2, 4, 8, 16}, PowerOfTwoFrom(extent_));
  }

  std::optional<double> Cost(std::span<const int64_t> values, const SketchPlan&) const override {
    const int64_t together = values[0], elements = values[1], width = values[2], unroll = values[3];
    const int64_t step = together * width * unroll;
    if (together * elements > target().threads || width * unroll > kMostInFlight) return std::nullopt;
    if (step > std::max(extent_, together * width)) return std::nullopt;  // nothing is left for some loads
    LaunchWork work{.threads = together * elements};
    work.registers = 24 + width * unroll * static_cast<int64_t>(info().reads.size());
    const int64_t result = info().output.type().bytes();
    work.shared_bytes = elements * (ElementsOfSum(together) + 1) * result + kBuffersOfSum * kLineBytes;
    if (work.shared_bytes > target().shared) return std::nullopt;
    work.blocks = std::ceil(static_cast<double>(Elements()) / static_cast<double>(elements));
    const double steps = std::ceil(static_cast<double>(extent_) / static_cast<double>(step));
    const double others = static_cast<double>(TermsOf(info()) / extent_);
    const double instances = static_cast<double>(elements * step) * steps * others;
    work.operations = instances * std::max(1.0, info().operations);
    const auto rounds = static_cast<double>(BarriersOfSum(together));
    // Other blocks of a processor go on while one waits.
    work.barriers = rounds / static_cast<double>(std::max<int64_t>(1, ResidentBlocks(work, target())));
    const int neighbours = along_ ? longest_ : info().last_iter();
    Streaming streaming{.idle_us = (kStartUs + rounds * kRoundUs) / (steps * others)};
    for (const BlockInfo::Access& read : info().reads) {
      const double bytes = static_cast<double>(read.buffer.type().bytes());
      const bool apart = neighbours >= 0 && read.strides[static_cast<size_t>(neighbours)] > 1;
      const double run = bytes * static_cast<double>(apart ? 1 : along_ ? together * width : elements);
      const double sectors = target().lanes > 1 ? SectorsOfRuns(run) : 1;
      work.near_bytes += instances * bytes * (apart ? sectors : 1);
      work.far_bytes += instances * bytes * sectors;
      work.memory_bytes += static_cast<double>(read.elements) * bytes * sectors;
      const bool moves = neighbours < 0 || read.strides[static_cast<size_t>(neighbours)] != 0;
      if (moves && read.strides[static_cast<size_t>(longest_)] != 0)
        streaming.thread_bytes += bytes * static_cast<double>(width * unroll);
    }
    work.memory_bytes += static_cast<double>(info().output.NumElements().value_or(0) * info().output.type().bytes());
    return StreamingMicroseconds(work, streaming, target());
  }

  absl::Status Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const override;

 private:
  static constexpr int64_t kMostInFlight = 32;  // elements of each operand: a register each
  static constexpr double kStartUs = 0.5;       // in which a block takes the place of another
  static constexpr double kRoundUs = 0.1;       // in which threads agree

  int64_t Elements() const { return info().instances() / TermsOf(info()); }

  const bool along_;
  const int longest_;  // along which terms are shared out
  const int64_t extent_;
  std::vector<size_t> in_vectors_;  // reads
};

absl::Status ReductionNest::Apply(std::span<const int64_t> values, const SketchPlan&, SketchBuild& build) const {
  Schedule& schedule = build.schedule;
  const int64_t together = values[0], elements = values[1], width = values[2], unroll = values[3];
  HONE_ASSIGN_OR_RETURN(const BlockRef ref, GetBlock(schedule, info().name));
  HONE_ASSIGN_OR_RETURN(LoopsOfBlock loops, FindLoops(schedule, ref, info()));
  auto& [spatial, terms, by_iter] = loops;
  const std::optional<LoopRef> longest = by_iter[static_cast<size_t>(longest_)];
  if (!longest.has_value()) return absl::FailedPreconditionError("reduction: one term");
  if (spatial.empty()) {  // one element
    HONE_ASSIGN_OR_RETURN(const LoopRef around, AddUnitLoop(schedule, terms[0]));
    spatial.push_back(around);
  }
  std::erase(terms, *longest);
  // In the order of the variables, by which elements that are numbered together tell their place.
  std::vector<LoopRef> in_order;
  for (const std::optional<LoopRef>& loop : by_iter) {
    if (loop.has_value() && std::erase(spatial, *loop) > 0) in_order.push_back(*loop);
  }
  spatial.insert(spatial.end(), in_order.begin(), in_order.end());
  std::optional<LoopRef> vectors = *longest, lanes;
  if (width > 1) {  // apart from the others, so that what a thread loads at once is there or not as a whole
    HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, *longest, {-1, width}));
    vectors = parts[0];
    lanes = parts[1];
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> shared, Split(schedule, *vectors, {-1, unroll, together}));
  std::vector<LoopRef> order = spatial;
  order.push_back(shared[2]);
  order.insert(order.end(), terms.begin(), terms.end());
  order.insert(order.end(), {shared[0], shared[1]});
  if (lanes.has_value()) order.push_back(*lanes);
  HONE_RETURN_IF_ERROR(Reorder(schedule, order));
  HONE_ASSIGN_OR_RETURN(const LoopRef fused, FuseAll(schedule, spatial));
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> parts, Split(schedule, fused, {-1, elements}));
  HONE_RETURN_IF_ERROR(Bind(schedule, parts[0], "blockIdx.x"));
  HONE_RETURN_IF_ERROR(Bind(schedule, parts[1], along_ ? "threadIdx.y" : "threadIdx.x"));
  HONE_RETURN_IF_ERROR(Bind(schedule, shared[2], along_ ? "threadIdx.x" : "threadIdx.y"));
  HONE_RETURN_IF_ERROR(Unroll(schedule, shared[1]));
  if (lanes.has_value()) {
    for (const size_t r : in_vectors_) {
      HONE_ASSIGN_OR_RETURN(const BlockRef copy, CopyTo(schedule, ref, info().reads[r].buffer, Scope::kRegister));
      HONE_RETURN_IF_ERROR(ComputeAt(schedule, copy, shared[1]));
      HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> own, InnerLoops(schedule, copy, 5 + terms.size()));
      HONE_RETURN_IF_ERROR(Vectorize(schedule, own.back()));
    }
    HONE_RETURN_IF_ERROR(Unroll(schedule, *lanes));
  }
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
