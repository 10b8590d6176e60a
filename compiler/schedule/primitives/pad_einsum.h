// pad_einsum: a sum of products over a larger domain, every extent rounded up to a multiple. Operands are copied into
// buffers with zeros behind, the result is copied back.
//   for i in [0, 5), k: C[i] += A[i, k] * B[k]     padding [4, 1]
//   =>  A_pad[i, k] = if_then_else(i < 5, A[i, k], 0) over [0, 8)
//       C_pad[i] += A_pad[i, k] * B[k];   C[i] = C_pad[i]
// Then tiles of the register tile's or the intrinsic's size divide the loops, and no tail is left.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct PadEinsumStep {
  BlockRef block;
  std::vector<int64_t> padding;
  static constexpr StepInfo kInfo{.name = "pad_einsum"};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &PadEinsumStep::block), Field("padding", &PadEinsumStep::padding));
  }
};
absl::Status Apply(Schedule& schedule, const PadEinsumStep& step);

// `padding`: for each iteration variable, of what its extent becomes a multiple; 1 leaves it. The copying blocks are
// NAME_pad, NAME the buffer's. Refused: a block that is not x = x + (product of operands), each indexed by iteration
// variables alone; a padded spatial variable that does not index the result; a nest that is not the block's own and
// plain (plain_nest.h); a padded reduction over which an operand does not run (its infinities times zero would come
// in).
absl::Status PadEinsum(Schedule& schedule, BlockRef block, std::vector<int64_t> padding);

}  // namespace hone
