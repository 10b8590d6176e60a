#include "tuner/space/gpu/gpu_nests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/support/status_macros.h"
#include "tuner/space/nests/nest_loops.h"

namespace hone {

GpuNest::GpuNest(const std::string& rule, GpuContextRef context, int block)
    : SketchStep(absl::StrCat(rule, "(", context->block(block).name, ")")),
      context_(std::move(context)),
      block_(block) {}

void GpuNest::AddKnob(const std::string& name, std::vector<int64_t> candidates, int64_t most) {
  std::erase_if(candidates, [most](int64_t candidate) { return candidate > most; });
  if (candidates.empty()) candidates.push_back(1);
  knobs_.push_back({absl::StrCat(info().name, ".", name), std::move(candidates)});
}

int64_t PowerOfTwoFrom(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

int64_t TermsOf(const BlockInfo& block) {
  int64_t terms = 1;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (!block.spatial(static_cast<int>(i))) terms *= block.extents[i];
  }
  return terms;
}

double BytesOfBuffers(const BlockInfo& block) {
  double bytes = static_cast<double>(block.output.NumElements().value_or(0) * block.output.type().bytes());
  for (const BlockInfo::Access& read : block.reads)
    bytes += static_cast<double>(read.elements * read.buffer.type().bytes());
  return bytes;
}

bool AddsAlongMemory(const BlockInfo& block) {
  const auto largest = std::ranges::max_element(block.reads, {}, &BlockInfo::Access::elements);
  const int last = block.last_reduce_iter();
  return largest != block.reads.end() && last >= 0 && largest->strides[static_cast<size_t>(last)] == 1;
}

absl::StatusOr<LoopsOfBlock> FindLoops(Schedule& schedule, BlockRef ref, const BlockInfo& block) {
  LoopsOfBlock loops;
  HONE_ASSIGN_OR_RETURN(loops.spatial, GetLoops(schedule, ref));
  HONE_ASSIGN_OR_RETURN(loops.by_iter, LoopsOfIters(schedule, ref, loops.spatial));
  for (size_t i = 0; i < block.iters.size(); ++i) {
    if (block.spatial(static_cast<int>(i)) || !loops.by_iter[i].has_value()) continue;
    loops.terms.push_back(*loops.by_iter[i]);
    std::erase(loops.spatial, *loops.by_iter[i]);
  }
  return loops;
}

int64_t PartsUpTo(int64_t extent, int64_t most) {
  int64_t parts = std::min(most, extent);
  while (parts > 1 && extent % parts != 0) --parts;
  return std::max<int64_t>(1, parts);
}

absl::StatusOr<LoopRef> FuseAll(Schedule& schedule, std::vector<LoopRef> loops) {
  if (loops.size() == 1) return loops[0];
  return Fuse(schedule, std::move(loops));
}

absl::StatusOr<std::vector<LoopRef>> InnerLoops(Schedule& schedule, BlockRef block, size_t outer) {
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> loops, GetLoops(schedule, block));
  loops.erase(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(std::min(outer, loops.size())));
  return loops;
}

absl::Status ShareOutElements(Schedule& schedule, BlockRef block, size_t outer, std::span<const int64_t> extents,
                              int64_t together) {
  HONE_ASSIGN_OR_RETURN(const std::vector<LoopRef> own, InnerLoops(schedule, block, outer));
  if (own.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const LoopRef elements, FuseAll(schedule, own));
  std::vector<Value> sizes{-1};
  for (const int64_t extent : extents) sizes.emplace_back(extent);
  if (together > 1) sizes.emplace_back(together);
  HONE_ASSIGN_OR_RETURN(std::vector<LoopRef> parts, Split(schedule, elements, sizes));
  if (together > 1) {
    HONE_RETURN_IF_ERROR(Vectorize(schedule, parts.back()));
    parts.pop_back();
  }
  for (size_t t = 0; t < extents.size(); ++t)
    HONE_RETURN_IF_ERROR(Bind(schedule, parts[parts.size() - 1 - t], std::string(kThreadAxes[t])));
  return absl::OkStatus();
}

int OwnProducer(const GpuContext& context, int block, size_t read) {
  const int producer = context.info.Producer(context.block(block).reads[read].buffer);
  const bool own = producer >= 0 && context.info.Consumers(producer) == std::vector<int>{block} &&
                   !context.block(producer).reduces && context.block(producer).single_store;
  return own ? producer : -1;
}

absl::StatusOr<BlockRef> CopyTo(Schedule& schedule, BlockRef ref, const Buffer& buffer, Scope scope) {
  HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, schedule.FindBlock(ref));
  const auto& reads = realize->block.reads;
  // By name: what a rewrite made is another buffer in every schedule.
  const auto at =
      std::ranges::find_if(reads, [&](const BufferRegion& read) { return read.buffer.name() == buffer.name(); });
  if (at == reads.end()) return absl::InternalError("an operand of a block is not read by it");
  return CacheRead(schedule, ref, static_cast<int>(at - reads.begin()), scope);
}

absl::StatusOr<BlockRef> CopyToShared(Schedule& schedule, BlockRef ref, const Buffer& buffer) {
  return CopyTo(schedule, ref, buffer, Scope::kShared);
}

absl::StatusOr<BlockRef> TakeFromRegisters(Schedule& schedule, const GpuContext& context, int block, BlockRef ref) {
  if (!context.block(block).single_store) {  // several results, such as a maximum and its place
    HONE_ASSIGN_OR_RETURN(const std::vector<BlockRef> consumers, GetConsumers(schedule, ref));
    HONE_ASSIGN_OR_RETURN(const BlockRealize* realize, schedule.FindBlock(ref));
    const int results = static_cast<int>(realize->block.writes.size());
    if (consumers.size() != 1) return absl::FailedPreconditionError("several blocks take its results");
    for (int i = 0; i < results; ++i) HONE_RETURN_IF_ERROR(SetScope(schedule, ref, i, Scope::kRegister));
    return consumers[0];
  }
  const int epilogue = context.fusion.Epilogue(block);
  if (epilogue < 0) return CacheWrite(schedule, ref, 0, Scope::kRegister);
  HONE_RETURN_IF_ERROR(SetScope(schedule, ref, 0, Scope::kRegister));
  return GetBlock(schedule, context.block(epilogue).name);
}

}  // namespace hone
