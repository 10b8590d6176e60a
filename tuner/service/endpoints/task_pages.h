// A job of many kernels in messages that are small enough to be sent.
#pragma once

#include <cstdint>

#include "hone/v1/tune.pb.h"

namespace hone {

// Keeps the tasks with a number above `after_task`, as many of them as a message holds beside the rest of the job, and
// says in `next_task` where the next page begins.
void KeepTaskPage(uint64_t after_task, v1::JobSnapshot& job);

}  // namespace hone
