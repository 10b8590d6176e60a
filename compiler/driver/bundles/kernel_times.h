// What the kernels of a model take inside it: there a kernel finds other things in the caches than when it is timed
// alone, and what is a little faster alone may be slower.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/driver/bundles/compare_bundles.h"

namespace hone {

// Of two bundles of the same model, by symbol of the kernels that both have: the time before over the time after, all
// steps of a kernel together, the median over the rounds. Rounds as those of CompareBundles: loaded anew, run in turn.
absl::StatusOr<std::map<std::string, double>> KernelSpeedUps(const std::string& before, const std::string& after,
                                                             const CompareOptions& options);

}  // namespace hone
