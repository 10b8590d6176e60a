// Constant operands in the form their kernels want, made by the kernels' own prepare functions. What runs those
// functions is the caller's: code that was generated from somebody's trace belongs in a sandbox.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/package/bundle_writer.h"

namespace hone {

struct ConstantToPack {
  int kernel = 0, prepared = 0;  // kernels[kernel].kernel.set.prepared[prepared]
  std::span<const char> original;
};

// The packed form of each constant, in order; `options.run_prepare` is called from `options.pack_threads` threads at
// once. Where this machine cannot run a kernel's code, its prepare functions are compiled anew for this machine.
absl::StatusOr<std::vector<std::string>> PackConstants(std::span<const PackagedKernel> kernels,
                                                       std::span<const ConstantToPack> constants,
                                                       const BundleOptions& options);

}  // namespace hone
