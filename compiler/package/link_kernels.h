// All kernels of a bundle in as few images as their names allow: one, unless two share a symbol.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/package/bundle_writer.h"

namespace hone {

struct LinkedKernels {
  std::vector<std::string> images;  // of a device: sources
  std::vector<int> image_of;        // of each kernel
  std::string features;             // CPU features of all images, "avx2,fma"
};
absl::StatusOr<LinkedKernels> LinkKernels(std::span<const PackagedKernel> kernels);
// A device compiles each kernel's source by itself.
LinkedKernels SourcesOf(std::span<const PackagedKernel> kernels);

}  // namespace hone
