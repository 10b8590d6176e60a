// A GPU's program as the cost model's features see it (tuner/model/features.h): loops of a CPU with as many cores as
// the device has processors, the loops over blocks in parallel.
#pragma once

#include <utility>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/lower/lower.h"
#include "compiler/target/gpu_target.h"
#include "compiler/target/machine.h"
#include "compiler/target/target.h"

namespace hone {

// Every launch as a nest of loops, one after the other: blocks, threads, what a thread does. FailedPrecondition where
// the program cannot be lowered, or a block of a launch has more threads or shared memory than the target.
absl::StatusOr<LoweredFunc> LowerToLoops(const PrimFunc& scheduled, const GpuTarget& target);

// The CPU that stands for it: scalars, shared memory as the first cache.
std::pair<Target, Machine> AsCpu(const GpuTarget& target);

}  // namespace hone
