// sample_*: random choices. The choice made is stored in the step as its decision, so a trace replays without
// randomness, and editing a decision is a mutation (trace.h).
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/schedule/ref.h"
#include "compiler/schedule/step_field.h"
#include "compiler/support/random.h"

namespace hone {

class Schedule;

struct SamplePerfectTileStep {
  LoopRef loop;
  int64_t n = 2;
  int64_t max_innermost_factor = 64;
  std::vector<int64_t> decision;
  static constexpr StepInfo kInfo{
      .name = "sample_perfect_tile", .output = OutputKind::kValue, .changes_program = false, .gives_list = true};
  static constexpr auto Fields() {
    return std::tuple(Field("loop", &SamplePerfectTileStep::loop), Field("n", &SamplePerfectTileStep::n),
                      Field("max_innermost_factor", &SamplePerfectTileStep::max_innermost_factor),
                      Field("decision", &SamplePerfectTileStep::decision));
  }
};
absl::Status Apply(Schedule& schedule, const SamplePerfectTileStep& step);
struct SampleCategoricalStep {
  std::vector<int64_t> candidates;
  std::vector<double> probs;
  int64_t decision = 0;  // an index into `candidates`
  static constexpr StepInfo kInfo{.name = "sample_categorical", .output = OutputKind::kValue, .changes_program = false};
  static constexpr auto Fields() {
    return std::tuple(Field("candidates", &SampleCategoricalStep::candidates),
                      Field("probs", &SampleCategoricalStep::probs),
                      Field("decision", &SampleCategoricalStep::decision));
  }
};
absl::Status Apply(Schedule& schedule, const SampleCategoricalStep& step);
struct SampleComputeLocationStep {
  BlockRef block;
  int64_t decision = -1;  // see SampleComputeLocation
  static constexpr StepInfo kInfo{
      .name = "sample_compute_location", .output = OutputKind::kLoop, .changes_program = false};
  static constexpr auto Fields() {
    return std::tuple(Field("block", &SampleComputeLocationStep::block),
                      Field("decision", &SampleComputeLocationStep::decision));
  }
};
absl::Status Apply(Schedule& schedule, const SampleComputeLocationStep& step);

// The extent of the loop as a product of `n` factors, outermost first, the last at most `max_innermost_factor` (0: no
// bound). A decision must have n factors whose product is the extent.
absl::StatusOr<std::vector<ValueRef>> SamplePerfectTile(Schedule& schedule, LoopRef loop, int n,
                                                        int64_t max_innermost_factor, std::vector<int64_t> decision);
absl::StatusOr<std::vector<ValueRef>> SamplePerfectTile(Schedule& schedule, LoopRef loop, int n,
                                                        int64_t max_innermost_factor, Random& random);

// One of `candidates`; `probs` has one weight for each, or is empty for equal ones.
absl::StatusOr<ValueRef> SampleCategorical(Schedule& schedule, std::vector<int64_t> candidates,
                                           std::vector<double> probs, int decision);
absl::StatusOr<ValueRef> SampleCategorical(Schedule& schedule, std::vector<int64_t> candidates,
                                           std::vector<double> probs, Random& random);

// A loop under which the block could be computed: decision k is the k-th loop (outermost first) around its first
// consumer, -1 leaves the block where it is. The loop given may be used with compute_at; with decision -1 compute_at
// does nothing.
absl::StatusOr<LoopRef> SampleComputeLocation(Schedule& schedule, BlockRef block, int decision);
absl::StatusOr<LoopRef> SampleComputeLocation(Schedule& schedule, BlockRef block, Random& random);
// The decisions that the last one draws from: -1, and the loops under which compute_at moves the block.
absl::StatusOr<std::vector<int64_t>> LegalComputeLocations(const Schedule& schedule, BlockRef block);

}  // namespace hone
