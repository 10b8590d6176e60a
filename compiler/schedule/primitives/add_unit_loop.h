// add_unit_loop: a loop of one iteration around a block or a loop, for templates that want the same nest everywhere.
//   S   =>   for u in [0, 1): S
#pragma once

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct AddUnitLoopStep {
  BlockOrLoop inner;
  static constexpr StepInfo kInfo{"add_unit_loop", OutputKind::kLoop};
  static constexpr auto Fields() { return std::tuple(Field("block_or_loop", &AddUnitLoopStep::inner)); }
};
absl::Status Apply(Schedule& schedule, const AddUnitLoopStep& step);

absl::StatusOr<LoopRef> AddUnitLoop(Schedule& schedule, BlockOrLoop inner);

}  // namespace hone
