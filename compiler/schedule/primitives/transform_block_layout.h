// transform_block_layout: what a block iterates over, numbered anew, and its loops with it.
//   for n, h, w, c: S(n, h, w, c)   by lambda n, h, w, c: (n * 12 + h * 4 + w, c)
//   =>  for ax0 in [0, N*12), ax1 in [0, C): S(ax0 // 12, ax0 % 12 // 4, ax0 % 4, ax1)
// Together with reindex a convolution becomes the matrix product that an intrinsic is stated for.
#pragma once

#include "absl/status/status.h"
#include "compiler/schedule/analysis/index_map.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct TransformBlockLayoutStep {
  BlockRef block;
  IndexMap index_map;
  static constexpr StepInfo kInfo{.name = "transform_block_layout"};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &TransformBlockLayoutStep::block),
                      Field("index_map", &TransformBlockLayoutStep::index_map));
  }
};
absl::Status Apply(Schedule& schedule, const TransformBlockLayoutStep& step);

// The map takes the block's iteration variables; every output becomes a variable with a loop of its own, outermost
// first. A map fills its new domain, so there is no padding and no pad value. Refused: a block whose nest is not its
// own and plain (plain_nest.h); a map that is not one to one; an output made of both spatial and reduce variables; a
// block whose order of instances counts.
absl::Status TransformBlockLayout(Schedule& schedule, BlockRef block, IndexMap map);

}  // namespace hone
