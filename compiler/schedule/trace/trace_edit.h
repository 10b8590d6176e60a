// Traces made from traces: without some steps, simplified, with another decision.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/random.h"

namespace hone {

// Without the steps marked in `drop` (one entry a step), nor those that use what a dropped one gave. Whether the rest
// still replays is for Replay to say: a get_loops may give another number of loops, say.
Trace WithoutSteps(const Trace& trace, const std::vector<bool>& drop);

// The steps that make a difference to the program. Samples and look-ups whose outputs no step uses are gone, and what
// is looked up again while nothing changed in between is looked up once. Replays to the same program; the decisions
// that are dropped were not read by any step, so a trace that keeps its choices in samples (a template's) loses them.
Trace Simplified(const Trace& trace);

// The trace with one of its decisions, chosen at random, made differently: a prime factor of a tile moved to another
// place, another candidate, another location. Absent when no decision could be another. Factors multiply to what they
// did and keep the bound on the last; locations are those that sample_compute_location would draw where the trace
// stands, so the steps before it are replayed on the workload. Whether the rest of the trace takes it is for Replay to
// say.
std::optional<Trace> MutateDecision(const Trace& trace, const PrimFunc& workload, Random& random);

// A trace that was made for the workload at one of its sizes (ir/symbolic_sizes.h), for the workload at all of them:
// where a split meets a symbolic loop, its outermost factor is left to be found, so that the tiles stay as they are and
// their number follows the size; where a fusion meets symbolic loops inside, they are brought outside first, and of
// several one is fused. FailedPrecondition names the step that the symbolic program does not take.
absl::StatusOr<Trace> ForAllSizes(const Trace& trace, const PrimFunc& workload);

}  // namespace hone
