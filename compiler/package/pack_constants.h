// Constant operands in the form their kernels want, made by the kernels' own prepare functions. What runs those
// functions is the caller's: code that was generated from an untrusted trace belongs in a sandbox.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "compiler/package/bundle_writer.h"

namespace hone {

struct ConstantToPack {
  int kernel = 0, prepared = 0;  // kernels[kernel].kernel.set.prepared[prepared]
  std::span<const char> original;
};

// Hands `take` the packed form of constants[index], for each in order, one call at a time; after a failure no more.
// `options.pack_threads` constants are packed at once, and of as many the packed form is in memory. A packer is used
// again as long as there are constants for its kernel. Where this machine cannot run a kernel's code, its prepare
// functions are compiled anew for this machine.
using TakePacked = std::function<absl::Status(size_t index, std::string_view packed)>;
absl::Status PackConstants(std::span<const PackagedKernel> kernels, std::span<const ConstantToPack> constants,
                           const BundleOptions& options, const TakePacked& take);

}  // namespace hone
