// parallel, vectorize, unroll, bind: how a loop runs. The loop stays where it is.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct ParallelStep {
  LoopRef loop;
  static constexpr StepInfo kInfo{"parallel", OutputKind::kNone};
  static constexpr auto Fields() { return std::tuple(Field("loop", &ParallelStep::loop)); }
};
absl::Status Apply(Schedule& schedule, const ParallelStep& step);
struct VectorizeStep {
  LoopRef loop;
  static constexpr StepInfo kInfo{"vectorize", OutputKind::kNone};
  static constexpr auto Fields() { return std::tuple(Field("loop", &VectorizeStep::loop)); }
};
absl::Status Apply(Schedule& schedule, const VectorizeStep& step);
struct UnrollStep {
  LoopRef loop;
  static constexpr StepInfo kInfo{"unroll", OutputKind::kNone};
  static constexpr auto Fields() { return std::tuple(Field("loop", &UnrollStep::loop)); }
};
absl::Status Apply(Schedule& schedule, const UnrollStep& step);
struct BindStep {
  LoopRef loop;
  std::string thread_axis;
  static constexpr StepInfo kInfo{"bind", OutputKind::kNone};
  static constexpr auto Fields() {
    return std::tuple(Field("loop", &BindStep::loop), Field("thread_axis", &BindStep::thread_axis));
  }
};
absl::Status Apply(Schedule& schedule, const BindStep& step);

// Refused for parallel, vectorize and bind: a loop whose variable reaches a reduce or opaque iteration variable of a
// block below it (its iterations accumulate into one element), or a block below whose bindings cannot tell its
// iterations apart. vectorize also needs a constant extent, no other vectorized loop around or below it and no while
// loop below it.
absl::Status Parallel(Schedule& schedule, LoopRef loop);
absl::Status Vectorize(Schedule& schedule, LoopRef loop);
absl::Status Unroll(Schedule& schedule, LoopRef loop);
// `thread_axis`: "blockIdx.x", "threadIdx.y", "vthread.x". Threads may reduce together: a loop over a reduction of the
// form x = x OP v can be bound to threadIdx. Inside a loop over the same axis of threads and of the same extent, blocks
// that do not depend on that and copy to shared memory can be bound again: all threads do together what all of them
// need.
absl::Status Bind(Schedule& schedule, LoopRef loop, std::string thread_axis);

}  // namespace hone
