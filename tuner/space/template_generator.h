// The templates, put together: a nest for every block that is left, each with its knobs.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "tuner/space/generator.h"

namespace hone {

absl::StatusOr<std::unique_ptr<Generator>> MakeTemplateGenerator(const PrimFunc& workload, const Target& target, int threads);

}  // namespace hone
