// reorder: the loops of a nest change places.
//   for i: for j: for k: S   => reorder(k, i) =>   for k: for j: for i: S
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct ReorderStep {
  std::vector<LoopRef> loops;
  static constexpr StepInfo kInfo{.name = "reorder", .output = OutputKind::kNone, .spreads_list = true};
  static constexpr auto Fields() { return std::tuple(Field("loops", &ReorderStep::loops)); }
};
absl::Status Apply(Schedule& schedule, const ReorderStep& step);

// Puts `loops` in this order, from outside to inside, into the places they hold together; loops between them that are
// not named stay where they are. Refused: loops that are not in one nest without branches, a loop whose bounds depend
// on one that would move inside it, and a nest whose innermost block carries something across iterations other than its
// reduction.
absl::Status Reorder(Schedule& schedule, std::vector<LoopRef> loops);

}  // namespace hone
