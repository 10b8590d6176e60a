// A last look at a candidate that may become the best of its task. It must be right on every input set of the task; and
// once more under the clock, over many calls, it must have done its work (its outputs agree with the reference) and
// have taken the time it claims. What a runner says about time is a hint; the processor time its process was charged by
// the kernel is not in its hands.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "compiler/ir/numeric.h"
#include "hone/v1/common.pb.h"
#include "worker/agent/task_context.h"
#include "worker/runner/runner_client.h"

namespace hone {

struct WinnerCheck {
  double call_us = 0;  // what its samples say one call takes
  int threads = 1;
  NumericLevel level = NumericLevel::kDefault;
  absl::Duration run_limit;  // of the request, beside `duration`
  absl::Duration duration = absl::Milliseconds(100);
};

// OUTCOME_OK, or why it cannot be published: OUTCOME_WRONG_RESULT, OUTCOME_INVALID_TIMING, or how its runner failed,
// with `detail` filled in.
v1::OutcomeKind CheckWinner(const TaskContext& task, RunnerClient& runner, const WinnerCheck& check,
                            std::string* detail);

}  // namespace hone
