// fuse_reduction_epilogue: an epilogue that goes on with the reduction's own operation becomes its starting value.
//   C[i] (init 0) += A[i, k];   D[i] = C[i] + bias[i]   =>   D[i] (init bias[i]) += A[i, k]
// One pass over the result and one buffer less; the sum is taken in another order.
#pragma once

#include "absl/status/status.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct FuseReductionEpilogueStep {
  BlockRef reduction_block;
  BlockRef epilogue_block;
  static constexpr StepInfo kInfo{.name = "fuse_reduction_epilogue"};
  static constexpr auto Fields() {
    return std::tuple(Field("reduction_block", &FuseReductionEpilogueStep::reduction_block),
                      Field("epilogue_block", &FuseReductionEpilogueStep::epilogue_block));
  }
};
absl::Status Apply(Schedule& schedule, const FuseReductionEpilogueStep& step);

// The reduction is x = x OP v with OP one of + * min max, the epilogue y = x OP e, e OP x, or x - e after +. The
// epilogue block goes away, the reduction writes its result. Refused: another operation (relu of a sum must see the
// whole sum; reverse_compute_at keeps it near), a result that another block reads, an e that is not there before the
// reduction's nest, another element type.
absl::Status FuseReductionEpilogue(Schedule& schedule, BlockRef reduction, BlockRef epilogue);

}  // namespace hone
