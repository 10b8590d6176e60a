// NumPy's .npy files (format versions 1 to 3, little-endian, C order), as `hone run` reads and writes tensors.
// Format: numpy.org, "NPY format" (numpy.lib.format).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/array/ndarray.h"

namespace hone {

// InvalidArgument with the path, what was found and what is accepted.
absl::StatusOr<NdArray> ReadNpy(const std::string& path);
absl::Status WriteNpy(const std::string& path, const NdArray& array);

}  // namespace hone
