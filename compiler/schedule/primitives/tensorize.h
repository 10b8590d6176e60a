// tensorize: a loop and the block in it, or a block and all loops that are its own, become one tile operation an
// iteration of the loops outside.
//   for i0: for i1 in [0, 16): for k in [0, 4): C[i0*16 + i1] += A[k] * B[i0*16 + i1, k]
//   =>  for i0: with block C (vi_o = i0): T.tile_op("dot4_u8s8_s32", C[vi_o*16:+16], A[0:4], B[vi_o*16:+16, 0:4])
//   for j0: for j1 in [0, 8): C[j0*8 + j1] += if_then_else(0 < i, A[i - 1], 0) * B[j0*8 + j1]
//   =>  for j0: with block C (vj_o = j0):
//         A_fragment[0] = if_then_else(0 < i, A[i - 1], 0)
//         T.tile_op("axpy_f32", C[vj_o*8:+8], A_fragment[0], B[vj_o*8:+8])
#pragma once

#include <string>

#include "absl/status/status.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct TensorizeStep {
  BlockOrLoop target;
  std::string intrinsic;
  static constexpr StepInfo kInfo{"tensorize", OutputKind::kNone};
  static constexpr auto Fields() {
    return std::tuple(Field("block_or_loop", &TensorizeStep::target),
                      Field("tensor_intrin", &TensorizeStep::intrinsic));
  }
};
absl::Status Apply(Schedule& schedule, const TensorizeStep& step);

// A block stands for the outermost loop that is around it and nothing else.
//
// The block keeps its name; its instances are tiles from then on, and an init is that of a whole tile. The intrinsic is
// one of compiler/tile/tile_intrinsic.h; axes whose size it leaves open may be cut off at the edge: where it sums up
// nothing (axpy, fma), a param says how far they run elsewhere, and operands that are values come by registers of the
// tile's own (match_intrinsic.h). Refused: a block under no loop of its own, an unknown intrinsic, what DivideBlock
// refuses, a block that does something else. Of an intrinsic that the threads of a warp do together, a tile is one
// thread's part, and the block is in the layout of its results (match_warp_operation.h); the block's annotation
// kFragmentLoads says how operands come to registers.
absl::Status Tensorize(Schedule& schedule, BlockOrLoop target, const std::string& intrinsic);

}  // namespace hone
