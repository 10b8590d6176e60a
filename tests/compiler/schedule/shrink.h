// The least trace that still fails: what to read when a random one did.
#pragma once

#include <functional>

#include "compiler/schedule/schedule.h"

namespace hone::testing {

// Whether a schedule shows the failure. It must not crash: RunsInChild (campaign.h) turns a crash into an answer.
using Fails = std::function<bool(const Schedule&)>;

// Takes steps away, alone and in runs, and makes numbers smaller, as long as what is left replays and fails; what
// comes back can lose no further step and replays as it is. The trace given must fail.
Trace Shrink(const Trace& trace, const PrimFunc& workload, const Fails& fails);

}  // namespace hone::testing
