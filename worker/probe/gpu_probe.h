// What a device of this machine has, as a target, and what it reaches.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/target/gpu_target.h"
#include "deploy/runtime/devices/device.h"

namespace hone {

// The facts that a driver tells, in place of the usual ones of `kind`.
GpuTarget WithFacts(GpuTarget kind, const DeviceFacts& facts);

// The device that bundles of this kind run on here (OpenDevice), by what its driver tells; nothing is measured.
// FailedPrecondition where there is none, with what to install, or none of the kind's architecture.
absl::StatusOr<GpuTarget> DeviceHere(const GpuTarget& kind);

struct GpuProbe {
  GpuTarget target;  // bandwidth as it was measured
  std::string version, vendor;
  // 10^9 operations of float32 in a second, by its processors and clock: more than any program reaches.
  double most_gflops = 0;
  int64_t cache_bytes = 0;
};
// Takes a second. Errors as of DeviceHere; Internal where the device fails.
absl::StatusOr<GpuProbe> ProbeGpu(const GpuTarget& kind);

}  // namespace hone
