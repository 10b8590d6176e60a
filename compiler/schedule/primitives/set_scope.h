// set_scope: where an intermediate buffer lives. Lowering makes it as small as the part that is alive at once.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"

namespace hone {

class Schedule;

struct SetScopeStep {
  BlockRef block;
  int64_t buffer_index = 0;
  std::string storage_scope = "global";
  static constexpr StepInfo kInfo{"set_scope", OutputKind::kNone};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &SetScopeStep::block), Field("buffer_index", &SetScopeStep::buffer_index),
                      Field("storage_scope", &SetScopeStep::storage_scope));
  }
};
absl::Status Apply(Schedule& schedule, const SetScopeStep& step);

// `write_index`: which of the block's writes names the buffer. Refused for a param of the function.
absl::Status SetScope(Schedule& schedule, BlockRef block, int write_index, Scope scope);

}  // namespace hone
