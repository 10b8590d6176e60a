// Sketches as generators: the knobs of their steps, one behind the other.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tuner/space/generator.h"

namespace hone {

// One for each sketch of the workload, none where no rule has anything to say. FailedPrecondition where AnalyzeWorkload
// says so.
absl::StatusOr<std::vector<std::unique_ptr<Generator>>> MakeSketchGenerators(const PrimFunc& workload,
                                                                             const SpaceOptions& options);

}  // namespace hone
