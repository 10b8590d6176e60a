// What a kernel is built from when nothing was measured: the analytic model's choice, in milliseconds.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace.h"
#include "compiler/target/target.h"

namespace hone {

// Vectorised, tiled and parallel. Fails only where AnalyzeWorkload does.
absl::StatusOr<Trace> DefaultTrace(const PrimFunc& workload, const Target& target, int threads);

}  // namespace hone
