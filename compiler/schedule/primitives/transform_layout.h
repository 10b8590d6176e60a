// transform_layout: a buffer is stored in another layout, by everybody who uses it.
//   B: (N, M) .. B[i, j] ..    =>   B: (N/16, M, 16) .. B[i // 16, j, i % 16] ..
// With a pad value the places that are the place of no element hold it, once the nests that write B have run:
//   B: (10,), by lambda i: (i // 4, i % 4), pad_value 7
//   for i: B[i] = f(i)          =>   for a, b: B[a, b] = if_then_else(a*4 + b < 10, f(a*4 + b), 7)
//   for i, k: B[i] += g(i, k)   =>   for a, b: if 10 <= a*4 + b: B[a, b] = 7
//                                    for i, k: B[i // 4, i % 4] += g(i, k)
// A param stays as the caller has it; a copy of it has the layout:
//   for i: C[i] = A[i] + 1      =>   for i: A_global[i // 4, i % 4] = A[i]
//                                    for i: C[i] = A_global[i // 4, i % 4] + 1
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/schedule/analysis/index_map.h"
#include "compiler/schedule/analysis/pad_value.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct TransformLayoutStep {
  BlockRef block;
  BlockBuffer buffer;
  IndexMap index_map;
  PadValue pad_value;
  static constexpr StepInfo kInfo{"transform_layout", OutputKind::kNone};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &TransformLayoutStep::block), Field("buffer", &TransformLayoutStep::buffer),
                      Field("index_map", &TransformLayoutStep::index_map),
                      Field("pad_value", &TransformLayoutStep::pad_value));
  }
};
absl::Status Apply(Schedule& schedule, const TransformLayoutStep& step);

// Places that are padding in the new layout are never read. Without a pad value nothing is written there. With one,
// - a block that alone writes the buffer, each element once, in a plain nest (plain_nest.h), is given new loops over
//   all places, and refs to its old loops are no longer good;
// - in front of anything else (a reduction, several writers, loops that are split) there is a filling block,
//   BUFFER_padding, which writes the padding alone.
//
// What later primitives copy or compute anew of the buffer is what is read of it, so they may leave the padding out.
//
// Of a param that the block reads, cache_read makes the copy, in front of the nest and for this block alone; of one
// that it writes, cache_write makes it, behind the nest. A constant is better laid out once for all, by
// layout_constant.
//
// Refused: what these refuse for a param, a map that cannot be inverted, one that makes no box of a region (not an
// element) that a block writes, a pad value that is none of the buffer's type (pad_value.h), a filling block that the
// threads which use the buffer would not see.
absl::Status TransformLayout(Schedule& schedule, BlockRef block, int buffer_index, BufferKind kind, IndexMap map,
                             PadValue pad_value = {});

}  // namespace hone
