// reorder_block_iter_var: the iteration variables of a block in another order. Loops and results stay as they are; what
// matches blocks by the order of their variables (tensorize, transform_block_layout) sees the difference.
//   v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])   =>   v_j, v_k, v_i =
//   T.axis.remap("SRS", [j, k, i])
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct ReorderBlockIterVarStep {
  BlockRef block;
  std::vector<int64_t> new_order;
  static constexpr StepInfo kInfo{.name = "reorder_block_iter_var"};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &ReorderBlockIterVarStep::block),
                      Field("new_order", &ReorderBlockIterVarStep::new_order));
  }
};
absl::Status Apply(Schedule& schedule, const ReorderBlockIterVarStep& step);

// Variable k of the block becomes the one that was number new_order[k]. Refused: a list that is not a permutation.
absl::Status ReorderBlockIterVar(Schedule& schedule, BlockRef block, std::vector<int64_t> new_order);

}  // namespace hone
