// Runs a scheduled function on a device as a runner would: printed, compiled, launched.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/array/ndarray.h"
#include "compiler/codegen/gpu/dialect.h"
#include "compiler/lower/threads/device_program.h"
#include "deploy/runtime/devices/device.h"

namespace hone::testing {

// Runs the kernels of `code`, which is as the device's driver takes it and may differ from what the program prints in
// the dialect, on `args` in place. Behind every buffer lie bytes that nobody may write, and what no launch has written
// holds kUnwrittenByte.
absl::Status RunCode(Device& device, const DeviceProgram& program, const Dialect& dialect, const std::string& code,
                     std::vector<NdArray>& args);

// The OpenCL device of the number HONE_OPENCL_DEVICE, as `hone doctor` counts, 0 by default. Opened once in a process
// and never before a fork: drivers have threads. Null where there is none, and then `why` says why not.
hone::Device* OpenClDeviceOfTests(std::string* why = nullptr);

// What an NVIDIA GPU of sm_80 has for tile intrinsics.
const std::set<std::string>& CudaFeatures();

// Lowered, printed and run; as CUDA C++, compiled by NVRTC for the device's architecture in between.
absl::Status RunOnOpenCl(Device& device, const PrimFunc& scheduled, std::vector<NdArray>& args);
absl::Status RunOnCuda(Device& device, const PrimFunc& scheduled, std::vector<NdArray>& args);
absl::Status RunOnCuda(Device& device, const PrimFunc& scheduled, std::vector<NdArray>& args,
                       const std::set<std::string>& features);

}  // namespace hone::testing
