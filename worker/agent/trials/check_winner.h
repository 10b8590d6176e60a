// A last look at a candidate that may become the best of its task, in a process that has seen none of the task's
// inputs. What a runner says about time is a hint; what counts is not in its hands:
//
//   the worker's clock   many calls must take as much longer than one as the runner says
//   processor time       of all threads of its process, as the system charged it, must fit in the time it says; of a
//                        device nobody charges any
//   outputs              a call chosen by chance out of many that follow each other finds a part of the outputs
//                        destroyed, and must leave them right: who returns early, since it ran before or since the
//                        outputs look right, does not
//   unseen inputs        a call on values that were never there must take as long as one on those of the call before:
//                        who keeps results, by address or by value, does not
//
// It must be right under the clock on sets of inputs that are new to it, and in the end on every set of the task.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "compiler/ir/numeric.h"
#include "hone/v1/common.pb.h"
#include "worker/agent/trials/task_context.h"
#include "worker/agent/trials/verify_candidate.h"

namespace hone {

struct WinnerCheck {
  double call_us = 0;  // what its samples say one call takes
  NumericLevel level = NumericLevel::kDefault;
  VerifyLimits limits;
  absl::Duration duration = absl::Milliseconds(100);  // of the calls that follow each other
};

// OUTCOME_OK, or why it cannot be published: OUTCOME_WRONG_RESULT, OUTCOME_INVALID_TIMING, or how its runner failed,
// with `detail` filled in.
v1::OutcomeKind CheckWinner(const TaskContext& task, std::string_view image, const std::string& kernel_set,
                            const WinnerCheck& check, std::string* detail);

}  // namespace hone
