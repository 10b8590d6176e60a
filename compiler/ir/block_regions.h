// What a block reads and writes, inferred from its init and body. This is the one place that does it: the parser asks
// it for regions that a text leaves out, te and the schedule primitives for those of the blocks they make.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace hone {

struct AccessedRegions {
  std::vector<BufferRegion> reads, writes;  // in order of first access, one region a buffer
};

// The regions that the block's init and body touch (block_accesses.h), in terms of its iteration variables and of what
// is in scope outside. Dimension by dimension: accesses that differ by constants are joined to their hull; loops of the
// body are taken over their whole range where the index is affine in them; the whole dimension is touched where an
// index depends on data, on a loop in another way, or cannot be joined with the others. Where a block with an init
// reads the region that it writes, that is the accumulation, and is left out of the reads (as in TVM).
AccessedRegions InferRegions(const Block& block);

// Sets the block's reads and writes to what InferRegions finds. Buffers that it declared before keep their order, new
// ones come behind.
void DeclareRegions(Block& block);

// The same elements of the same buffer, by the same expressions.
bool SameRegion(const BufferRegion& a, const BufferRegion& b);

}  // namespace hone
