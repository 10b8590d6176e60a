// compute_inline: a block disappears into its consumers, which compute its values where they read them.
//   B[i] = A[i] + 1;  C[j] = B[j] * 2    =>    C[j] = (A[j] + 1) * 2
// reverse_compute_inline: a block disappears into its only producer, which stores the consumer's value in place of its
//   own value.
//   B[i] = f(i);  C[j] = B[j] * 2        =>    C[i] = f(i) * 2
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct ComputeInlineStep {
  BlockRef block;
  static constexpr StepInfo kInfo{"compute_inline", OutputKind::kNone};
  static constexpr auto Fields() { return std::tuple(Field("block", &ComputeInlineStep::block)); }
};
absl::Status Apply(Schedule& schedule, const ComputeInlineStep& step);
struct ReverseComputeInlineStep {
  BlockRef block;
  static constexpr StepInfo kInfo{"reverse_compute_inline", OutputKind::kNone};
  static constexpr auto Fields() { return std::tuple(Field("block", &ReverseComputeInlineStep::block)); }
};
absl::Status Apply(Schedule& schedule, const ReverseComputeInlineStep& step);

// Refused: a block that reduces, writes a param of the function, writes more than one element an instance, or writes at
// indices that are not its own iteration variables.
absl::Status ComputeInline(Schedule& schedule, BlockRef block);
// Refused: a producer that reduces (its value is complete only at the end: fuse_reduction_epilogue or
// reverse_compute_at instead), more than one producer or consumer, a block that does not read the producer's element
// once for each of its own, one that reads it under a condition where the producer leaves out elements.
absl::Status ReverseComputeInline(Schedule& schedule, BlockRef block);

}  // namespace hone
