// One step of a trace done again.
#pragma once

#include "absl/status/status.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/trace.h"

namespace hone {

// Step `i` on a schedule that has the steps before it. The refusal says which step it was and what it says (Replay,
// trace.h).
absl::Status ReplayStep(const Trace& trace, size_t i, Schedule& schedule);

}  // namespace hone
