// The points of a workload's generators.
#pragma once

#include <memory>

#include "compiler/target/gpu_target.h"
#include "tuner/search/candidates/candidate_space.h"

namespace hone {

// FailedPrecondition where no generator applies.
absl::StatusOr<std::unique_ptr<CandidateSpace>> MakeGeneratedSpace(const PrimFunc& workload,
                                                                   const SpaceOptions& options);

// The same of generators for a GPU.
absl::StatusOr<std::unique_ptr<CandidateSpace>> MakeGpuSpace(const PrimFunc& workload, const GpuTarget& target);

}  // namespace hone
