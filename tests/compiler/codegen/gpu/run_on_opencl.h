// Runs a scheduled function on an OpenCL device as a runner would: printed, built by the driver, launched.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "compiler/array/ndarray.h"
#include "compiler/lower/device_program.h"
#include "deploy/runtime/opencl_device.h"

namespace hone::testing {

// Runs the kernels of `source`, which may differ from what the program prints, on `args` in place. Behind every buffer
// lie bytes that nobody may write, and what no launch has written holds kUnwrittenByte.
absl::Status RunSource(OpenClDevice& device, const DeviceProgram& program, const std::string& source,
                       std::vector<NdArray>& args);

// Lowered, printed and run.
absl::Status RunOnOpenCl(OpenClDevice& device, const PrimFunc& scheduled, std::vector<NdArray>& args);

}  // namespace hone::testing
