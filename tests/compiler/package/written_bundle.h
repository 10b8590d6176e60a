// The bytes of a bundle as WriteBundle writes them.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "compiler/package/bundle_writer.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "gtest/gtest.h"

namespace hone {

inline absl::StatusOr<std::string> Written(const Plan& plan, std::span<const PackagedKernel> kernels,
                                           const BundleOptions& options) {
  const std::string path = testing::TempDir() + "/bundle_" + std::to_string(getpid());
  HONE_RETURN_IF_ERROR(WriteBundle(plan, kernels, options, path));
  absl::StatusOr<std::string> bytes = ReadFile(path);
  std::filesystem::remove(path);
  return bytes;
}

}  // namespace hone
