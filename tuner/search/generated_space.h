// The points of a workload's generators.
#pragma once

#include <memory>

#include "tuner/search/candidate_space.h"

namespace hone {

// FailedPrecondition where no generator applies.
absl::StatusOr<std::unique_ptr<CandidateSpace>> MakeGeneratedSpace(const PrimFunc& workload,
                                                                   const SpaceOptions& options);

}  // namespace hone
