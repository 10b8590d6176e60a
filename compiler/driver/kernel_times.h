// What the kernels of a model take inside it: there a kernel finds other things in the caches than when it is timed
// alone, and what is a little faster alone may be slower.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/driver/compare_bundles.h"

namespace hone {

// One kernel, by two bundles of the same model; all of its steps together.
struct KernelTimes {
  double before_us = 0, after_us = 0;  // medians of the rounds
  double ratio = 1;                    // before over after: the median of the rounds' ratios
};

// By symbol, of the kernels that both bundles have. Rounds as those of CompareBundles: loaded anew, run in turn.
absl::StatusOr<std::map<std::string, KernelTimes>> TimeKernels(const std::string& before, const std::string& after,
                                                               const CompareOptions& options);

}  // namespace hone
