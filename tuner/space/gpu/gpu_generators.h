// Where schedules for GPUs come from: as Generators (generator.h) gives those of CPUs, sketches with knobs, drafts and
// builders. One rule for each family of blocks (gpu_nests.h):
//
//   warp product  warps compute tiles of the output by instructions that all their threads do together
//   product       a block of threads computes a tile of the output, each thread a part of it in registers: of
//                 operands in shared memory, or of operands that it reads itself
//   rows          a block of threads computes a row, or several blocks of one: softmax, norms, sums along memory
//   reduction     threads share the elements of the output and the terms of each
//   map           a thread computes an element, or neighbours
//   one thread    what has iterations that depend on one another
//
// The heaviest block that reduces takes every rule that is for it, one in each sketch; of the others each takes the
// rule with the least draft. A product with few results and a long reduction is also taken in parts of it (split_k.cc).
// Sizes are those that the device likes, whatever the extents: the last tile is masked.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/gpu_target.h"
#include "tuner/space/generator.h"

namespace hone {

// Never empty for a function that AnalyzeWorkload takes. The knobs' choices that a generator drafts have as many
// threads and as much shared memory as the target has, at most.
absl::StatusOr<std::vector<std::unique_ptr<Generator>>> GpuGenerators(const PrimFunc& workload,
                                                                      const GpuTarget& target);

}  // namespace hone
