// Whether what one tile of a block does is what an intrinsic means.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/analysis/divide_block.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {

// In terms of the variables of the tile block.
struct MatchedTile {
  TileOp op;  // without params
  // Registers of the tile's own, and what puts values into them, in front of the operation: operands that are no
  // regions of buffers, but what the block computes of any (0 in the padding of an image, another type, every other
  // element of a row).
  std::vector<Buffer> fragments;
  std::vector<Stmt> fills;
  std::map<std::string, size_t> axes;  // of the intrinsic, those that a variable of the block runs along
};

// The tile operation that computes what the block does. The update of the block must be that of the intrinsic,
// operation for operation, where the operands of + and * may be the other way round; its variables with more than one
// value in a tile must be the intrinsic's axes, kind for kind. Operands of one dimension or none come by fragments
// where the intrinsic sums up nothing, so that each of their elements is used once. An error says, after `where`, what
// differs.
absl::StatusOr<MatchedTile> MatchIntrinsic(const ProgramIndex& index, const DividedBlock& divided,
                                           const TileIntrinsic& intrinsic, const std::string& where);

}  // namespace hone
