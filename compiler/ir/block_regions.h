// What a block reads and writes, found in its body.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace hone {

struct AccessedRegions {
  std::vector<BufferRegion> reads, writes;  // in order of first access, one region a buffer
};

// The regions the block's init and body touch, in terms of its iteration variables and of what is in scope outside.
// Accesses that differ by constants are joined to their hull; loops inside are taken over their whole range where the
// index is linear in them; what cannot be joined is the whole dimension. Buffers allocated inside are left out, and so
// are reads of what a block with an init accumulates into (as TVM has it). Nested blocks count by their own regions.
AccessedRegions DeriveRegions(const Block& block);

}  // namespace hone
