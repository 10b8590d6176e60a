// Which tile registers (tile/tile_intrinsic.h) hold the sums of a product.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "compiler/ir/stmt.h"

namespace hone {

// The shapes of all registers while a product runs: one configuration, which takes the time of several products to
// load.
struct TileShapes {
  int64_t sums = 0;                                        // registers from 0 on; half of the others hold A, the rest B
  int64_t rows = 0, columns = 0, groups = 0;               // of C[rows, columns], A[rows, ..], B[groups, ..]
  int64_t left_bytes = 0, right_bytes = 0, sum_bytes = 0;  // of a row of A, of B, of C
  friend auto operator<=>(const TileShapes&, const TileShapes&) = default;
};

struct TileRegisters {
  TileShapes shapes;
  std::map<int64_t, int> number;  // of the tile that starts at this element of the buffer
};

// The registers for a buffer in register scope, flat as lowering makes it; nullopt when it cannot be there: something
// else than operations in tile registers touches it, at no constant place, in tiles of several shapes or that overlap;
// there are too many; nothing is multiplied; or other such sums or threads come in between.
std::optional<TileRegisters> AssignTileRegisters(const Alloc& sums);

}  // namespace hone
