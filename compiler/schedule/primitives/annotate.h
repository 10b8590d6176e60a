// annotate, unannotate: a remark on a block or loop, for lowering or for the search.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct AnnotateStep {
  BlockOrLoop target;
  std::string key;
  Attr value;
  static constexpr StepInfo kInfo{"annotate", OutputKind::kNone};
  static constexpr auto Fields() {
    return std::tuple(Field("block_or_loop", &AnnotateStep::target), Field("ann_key", &AnnotateStep::key),
                      Field("ann_val", &AnnotateStep::value));
  }
};
absl::Status Apply(Schedule& schedule, const AnnotateStep& step);
struct UnannotateStep {
  BlockOrLoop target;
  std::string key;
  static constexpr StepInfo kInfo{"unannotate", OutputKind::kNone};
  static constexpr auto Fields() {
    return std::tuple(Field("block_or_loop", &UnannotateStep::target), Field("ann_key", &UnannotateStep::key));
  }
};
absl::Status Apply(Schedule& schedule, const UnannotateStep& step);

absl::Status Annotate(Schedule& schedule, BlockOrLoop target, std::string key,
                      Attr value);                                                 // replaces an earlier value
absl::Status Unannotate(Schedule& schedule, BlockOrLoop target, std::string key);  // NotFound when there is none

}  // namespace hone
