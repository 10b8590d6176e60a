// Whether what the threads of a warp do, each a tile of a block, is what an intrinsic of a warp means.
//
// The block is in the layout of the intrinsic's result: its variables inside the tile number the registers of a thread,
// others the lanes. For mma.m16n8k16 and C += A * B with i // 16, j // 8 outside:
//   for t in threadIdx.x(32): for x in 2: for y in 2: for l in 16:
//     C[t // 4, t % 4, x, y] += A[x * 8 + t // 4, l] * B[l, t % 4 * 2 + y]
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/analysis/divide_block.h"
#include "compiler/tile/tile_intrinsic.h"

namespace hone {

// One thread's part of the operation, in terms of the variables of the tile block: it loads its registers of every
// operand, which are others than its results are made of, and comes to the operation with the other threads.
struct WarpOperation {
  std::vector<Buffer> fragments;    // of the operands, each thread's own
  std::vector<BufferRegion> reads;  // what all threads together read
  Stmt body;
};

// The update must be a sum of products of casts, as the intrinsic's; sums are in register scope, and the loops of a
// tile take as many of each thread as it has registers of the result, in their order. `loads`: for each operand the
// intrinsic that loads its registers (ldmatrix), of which the rows must be neighbours in memory; null, and beyond the
// last: each element by itself. Refused, in the words after `where`, says what differs.
absl::StatusOr<WarpOperation> MatchWarpOperation(const ProgramIndex& index, const DividedBlock& divided,
                                                 const TileIntrinsic& intrinsic,
                                                 const std::vector<const TileIntrinsic*>& loads,
                                                 const std::string& where);

}  // namespace hone
