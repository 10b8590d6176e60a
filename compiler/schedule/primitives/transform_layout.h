// transform_layout: an intermediate buffer is stored in another layout, by everybody who uses it.
//   B: (N, M) .. B[i, j] ..    =>   B: (N/16, M, 16) .. B[i // 16, j, i % 16] ..
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/schedule/analysis/index_map.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct TransformLayoutStep {
  BlockRef block;
  BlockBuffer buffer;
  IndexMap index_map;
  static constexpr StepInfo kInfo{"transform_layout", OutputKind::kNone};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &TransformLayoutStep::block), Field("buffer", &TransformLayoutStep::buffer),
                      Field("index_map", &TransformLayoutStep::index_map));
  }
};
absl::Status Apply(Schedule& schedule, const TransformLayoutStep& step);

// Places that are padding in the new layout are never read. Refused for a param of the function (layout_constant does
// constants), a map that cannot be inverted, one that makes no box of a region (not an element) that a block writes.
absl::Status TransformLayout(Schedule& schedule, BlockRef block, int buffer_index, BufferKind kind, IndexMap map);

}  // namespace hone
