// All kernels of a bundle in as few images as their names allow: one, unless stored objects share a symbol.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/package/bundle_writer.h"
#include "deploy/runtime/image.h"
#include "deploy/runtime/thread_pool.h"

namespace hone {

struct LinkedKernels {
  std::vector<std::string> images;
  std::vector<int> image_of;  // of each kernel
  std::string features;       // CPU features of all images, "avx2,fma"
};
absl::StatusOr<LinkedKernels> LinkKernels(std::span<const PackagedKernel> kernels);

// Packs constant operands with the kernels' own prepare functions, run in this process.
class ConstantPacker {
 public:
  // Loads the images; where this machine cannot run them, builds the prepare functions anew for this machine.
  static absl::StatusOr<ConstantPacker> Create(std::span<const PackagedKernel> kernels, const LinkedKernels& linked,
                                               const BundleOptions& options);

  // The packed form of `original` for kernels[kernel].kernel.set.prepared[prepared].
  absl::StatusOr<std::string> Pack(int kernel, int prepared, std::span<const char> original);

 private:
  struct Source {  // where a kernel's prepare functions are found
    int image = 0;
    std::vector<PreparedConstant> prepared;
  };
  std::vector<Image> images_;
  std::vector<Source> sources_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace hone
