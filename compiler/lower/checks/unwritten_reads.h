// Elements that a program certainly reads and no store of it writes.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/stmt.h"

namespace hone {

struct UnwrittenRead {
  Buffer buffer;
  int dimension = 0;
  int64_t index = 0;  // along the dimension
};

// One, of a buffer that the program allocates or of an output; nullopt when none is found. What it finds is certain, in
// whatever order the program runs. It looks at each dimension by itself: of an element whose index is written along
// every dimension, though never at once, it says nothing.
//
// Nor does it where it cannot enumerate: where an index, a loop or a condition depends on data or on a symbolic size,
// or takes too many iterations together. A store then counts as one of the whole dimension and a load as none, and so
// do the operands of tile operations: those of vectors are expanded before (ExpandVectorOps). A store that needs the
// element it writes, C[i] = C[i] + x, is never the first to it and does not count. A load whose value is not used (the
// other side of a Select, a definition, a prefetch) does not either.
std::optional<UnwrittenRead> FindUnwrittenRead(const PrimFunc& func);

}  // namespace hone
