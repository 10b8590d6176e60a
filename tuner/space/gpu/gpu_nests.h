// The rules of gpu_generators.h, each in a file of its own. A rule makes of a block of the workload, in which
// everything that can be inlined is, a step: knobs, the draft of a choice of them, and the primitives that it comes to.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/gpu_target.h"
#include "tuner/space/gpu/gpu_model.h"
#include "tuner/space/rewrites/rewrite.h"
#include "tuner/space/sketches/sketch.h"
#include "tuner/space/workload/block_fusion.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {

// What rules decide by. Steps share it.
struct GpuContext {
  GpuContext(WorkloadInfo blocks, GpuTarget device)
      : info(std::move(blocks)), fusion(info), target(std::move(device)) {}
  GpuContext(const GpuContext&) = delete;
  const BlockInfo& block(int i) const { return info.blocks[static_cast<size_t>(i)]; }

  const WorkloadInfo info;
  const BlockFusion fusion;
  const GpuTarget target;
};
using GpuContextRef = std::shared_ptr<const GpuContext>;

// A step of a GPU's sketch: of one block, with what moves into its loops.
class GpuNest : public SketchStep {
 public:
  // The label is "RULE(BLOCK)".
  GpuNest(const std::string& rule, GpuContextRef context, int block);

 protected:
  const BlockInfo& info() const { return context_->block(block_); }
  const GpuTarget& target() const { return context_->target; }
  // A knob of this block, of the candidates that are at most `most`; one of 1 alone where none is.
  void AddKnob(const std::string& name, std::vector<int64_t> candidates, int64_t most);

  const GpuContextRef context_;
  const int block_;
};
// Null where a rule is not for the block.
using GpuNestRef = std::shared_ptr<const GpuNest>;

GpuNestRef MakeMapNest(GpuContextRef context, int block);
GpuNestRef MakeOneThreadNest(GpuContextRef context, int block);

// Tiles by way of shared memory, of a block without reduction that reads something whose neighbours are not those of
// its output (transpose_nest.cc).
GpuNestRef MakeTransposeNest(GpuContextRef context, int block);

// Terms are shared out where the elements of the output alone would not keep a processor busy.
GpuNestRef MakeReductionNest(GpuContextRef context, int block);

// All blocks of the function in one launch, the last of them the one that the rows are of. Null where a row has no room
// in shared memory.
GpuNestRef MakeRowsNest(GpuContextRef context);

// A reduction in which one operand is read again for other rows of the output, and another for other columns.
bool IsGpuProduct(const WorkloadInfo& info, int block);
enum class ProductOperands { kShared, kDirect };
GpuNestRef MakeProductNest(GpuContextRef context, int block, ProductOperands operands);
// Products of types that the target's warps multiply together (compiler/tile/warp_products.cc).
GpuNestRef MakeWarpProductNest(GpuContextRef context, int block);

// The workload as it is, then what its heaviest block, a product, is in parts of its reduction where that gives more
// processors a tile (split_k.cc).
std::vector<Rewrite> GpuRewrites(const WorkloadInfo& info, const GpuTarget& target);
// What a reduction that is no product is in parts of its terms, where it has too few elements (reduction_parts.cc).
std::vector<Rewrite> ReductionParts(const WorkloadInfo& info, const GpuTarget& target);

// ---- Shared pieces
// The least power of 2 that is not below n.
int64_t PowerOfTwoFrom(int64_t n);
// Of one element, all its terms: the product of the extents that are reduced.
int64_t TermsOf(const BlockInfo& block);
// Terms of a sum lie beside one another in memory, in the operand that is the largest.
bool AddsAlongMemory(const BlockInfo& block);
// Bytes that a block's buffers have, each counted once.
double BytesOfBuffers(const BlockInfo& block);
// The loops around a block where nothing is scheduled yet: those over elements of its output and those over the terms
// of each, outermost first, and both by the block's variables.
struct LoopsOfBlock {
  std::vector<LoopRef> spatial, terms;
  std::vector<std::optional<LoopRef>> by_iter;  // nullopt: the variable takes one value
};
absl::StatusOr<LoopsOfBlock> FindLoops(Schedule& schedule, BlockRef ref, const BlockInfo& block);
// The most parts, at most `most`, that divide the extent; 1: there are none.
int64_t PartsUpTo(int64_t extent, int64_t most);
// One loop of several, outermost first.
absl::StatusOr<LoopRef> FuseAll(Schedule& schedule, std::vector<LoopRef> loops);
// The loops around a block from depth `outer` on.
absl::StatusOr<std::vector<LoopRef>> InnerLoops(Schedule& schedule, BlockRef block, size_t outer);
// Threads of these extents (threadIdx.x last) share out the elements of a block, whose loops from depth `outer` on are
// over them: neighbours to neighbours, each `together` at once.
absl::Status ShareOutElements(Schedule& schedule, BlockRef block, size_t outer, std::span<const int64_t> extents,
                              int64_t together);
// The block that makes operand `read` of a block and nothing else, by moving elements or a little more; -1 where there
// is none.
int OwnProducer(const GpuContext& context, int block, size_t read);
// A copy of what a block reads of a buffer, in shared memory or elsewhere.
absl::StatusOr<BlockRef> CopyTo(Schedule& schedule, BlockRef ref, const Buffer& buffer, Scope scope);
absl::StatusOr<BlockRef> CopyToShared(Schedule& schedule, BlockRef ref, const Buffer& buffer);
// Gives a block that accumulates into registers somebody who takes its results out of them: its epilogue, or a copy.
absl::StatusOr<BlockRef> TakeFromRegisters(Schedule& schedule, const GpuContext& context, int block, BlockRef ref);

}  // namespace hone
