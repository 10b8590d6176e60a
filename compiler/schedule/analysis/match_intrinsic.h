// Whether what one tile of a block does is what an intrinsic means.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/analysis/divide_block.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {

// The tile operation that does it, in terms of the variables of the tile block. The update of the block must be that of
// the intrinsic, its variables with more than one value in a tile the intrinsic's axes, kind for kind; factors of + and
// * may be the other way round. Refused, in the words after `where`, says what differs. No params are set.
absl::StatusOr<TileOp> MatchIntrinsic(const ProgramIndex& index, const DividedBlock& divided,
                                      const TileIntrinsic& intrinsic, const std::string& where);

}  // namespace hone
