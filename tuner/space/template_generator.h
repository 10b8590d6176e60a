// The templates, put together: a nest for every block that is left, each with its knobs. One generator for the program
// as it is, and one for each algorithm that its heaviest block may take instead.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tuner/space/generator.h"

namespace hone {

absl::StatusOr<std::vector<std::unique_ptr<Generator>>> MakeTemplateGenerators(const PrimFunc& workload,
                                                                               const SpaceOptions& options);

}  // namespace hone
