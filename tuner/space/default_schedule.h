// What a kernel is built from when nothing was measured: the analytic model's choice, in milliseconds.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/trace/trace.h"
#include "tuner/space/generator.h"

namespace hone {

// Vectorised, tiled and parallel. Fails only where AnalyzeWorkload does.
absl::StatusOr<Trace> DefaultTrace(const PrimFunc& workload, const SpaceOptions& options);

// The same of generators that are there already: the least draft of any whose schedule is not refused.
absl::StatusOr<Trace> DefaultTrace(std::span<const std::unique_ptr<Generator>> generators);

// The schedules that DefaultTrace chooses from, the fastest by the analytic model first: the best of each generator.
// DefaultTrace's is the first of them. Where a caller cannot use one, the next may do.
struct DraftedTrace {
  Trace trace;
  double us = 0;  // by the analytic model
};
absl::StatusOr<std::vector<DraftedTrace>> DefaultTraces(const PrimFunc& workload, const SpaceOptions& options);

// Every block by itself: its innermost loop in vectors where it can be, its outermost in parallel. Right at all sizes,
// for workloads of which the fast schedules of one size are not.
absl::StatusOr<Trace> PlainTrace(const PrimFunc& workload);

// Operations of the heaviest block by the cheapest algorithm that the numeric level allows: no schedule needs fewer. As
// many of float32 as take the time, where the target has faster ones for the types at hand.
absl::StatusOr<double> LeastFlop(const PrimFunc& workload, const SpaceOptions& options);

}  // namespace hone
