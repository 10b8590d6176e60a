// register_tile: a block of multiply-and-add becomes operations on tiles that stay in registers while they are summed.
//   for i0: for k: for i1 in [0, 6): for j in [0, 16): C[i0*6 + i1, j] += A[i0*6 + i1, k] * B[k, j]
//   =>  for i0: with block C (vi_o = i0, ..):
//         T.tile_op("fma_tile_f32", C[vi_o*6:+6, 0:16], A[vi_o*6:+6, 0:k], B[0:k, 0:16], params={"m": 6, "n": 16})
#pragma once

#include "absl/status/status.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct RegisterTileStep {
  LoopRef loop;
  int64_t lanes = 0;
  int64_t unroll = 1;
  static constexpr StepInfo kInfo{"register_tile", OutputKind::kNone};
  static constexpr auto Fields() {
    return std::tuple(Field("loop", &RegisterTileStep::loop), Field("lanes", &RegisterTileStep::lanes),
                      Field("unroll", &RegisterTileStep::unroll));
  }
};
absl::Status Apply(Schedule& schedule, const RegisterTileStep& step);

// `loop` is the outermost of the tile's loops, whose order does not matter. `lanes`: elements of a vector, 0 for a
// whole row; `unroll`: steps of the sum that are written out, where they divide it. The intrinsic is the register tile
// of the block's type. Where the tiles do not divide the block, those at the edge are smaller, their rows and lanes
// beyond it masked. Refused: what DivideBlock refuses, a block that is no C += A * B of rows and columns, a tile of
// more than 1024 elements.
absl::Status RegisterTile(Schedule& schedule, LoopRef loop, int64_t lanes, int64_t unroll);

}  // namespace hone
