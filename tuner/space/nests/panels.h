// Operands of a tile stored in panels as wide as the tile, so that it reads them in one stream:
//   B[k, n]   =>   B[n // nr, k, n % nr]
// or, where an instruction takes groups of g products, as it takes them:
//   B[k, n]   =>   B[n // nr, k // g, n % nr, k % g]
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"
#include "tuner/space/workload/workload_info.h"

namespace hone {

// The dimension of an operand that an iteration variable of the block indexes by itself; -1: none, or several.
int DimensionAlong(const BlockInfo& block, const BlockInfo::Access& operand, int iter);

// The dimension along which an operand of the block is worth storing in panels, given vectors of `lanes` along the
// block's last iteration variable; -1: none. A constant is where it fills more than one vector, another operand where
// its elements are apart, or where several rows of the tile read it.
int DimensionToPack(const BlockInfo& block, const BlockInfo::Access& operand, int64_t lanes);

// Which of the reads that `block` declares by now the operand is; -1: none, as what wrote it was inlined. Operands go
// by their names: a layout makes another buffer of a constant, and a rewrite one in every schedule that it is applied
// to. Internal for a constant that is not read.
absl::StatusOr<int> ReadOf(const Schedule& schedule, BlockRef block, const BlockInfo::Access& operand);

// Where and how wide: `width` elements along dimension `along`, each with its `group` elements along `group_along`.
struct Panels {
  int along = 0;
  int64_t width = 1;
  int group_along = -1;
  int64_t group = 1;
};

// Both do nothing where the block no longer reads the operand, as what wrote it was inlined.
// Before the nest: a constant when the kernel is deployed, another by a copy in front, on all threads.
absl::Status PackBefore(Schedule& schedule, BlockRef block, const BlockInfo::Access& operand, const Panels& panels,
                        int threads);
// At `loop`, the one at depth `depth` - 1 around the block: what one iteration of it reads, in memory of the thread,
// `lanes` elements at a time.
absl::Status PackAt(Schedule& schedule, BlockRef block, const BlockInfo::Access& operand, const Panels& panels,
                    LoopRef loop, size_t depth, int lanes);

}  // namespace hone
