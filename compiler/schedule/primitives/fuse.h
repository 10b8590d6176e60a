// fuse: a nest of loops becomes one.
//   for i in [0, n): for j in [0, m): S(i, j)   =>   for f in [0, n*m): S(f // m, f % m)
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct FuseStep {
  std::vector<LoopRef> loops;
  static constexpr StepInfo kInfo{.name = "fuse", .output = OutputKind::kLoop, .spreads_list = true};
  static constexpr auto Fields() { return std::tuple(Field("loops", &FuseStep::loops)); }
};
absl::Status Apply(Schedule& schedule, const FuseStep& step);

// `loops` are outermost first, each the only statement in the one before it, serial, and start at 0. One loop is
// allowed.
absl::StatusOr<LoopRef> Fuse(Schedule& schedule, std::vector<LoopRef> loops);

}  // namespace hone
