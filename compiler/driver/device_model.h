// A model for a device: every task by its default schedule, printed as source that the device compiles.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/driver/model.h"
#include "compiler/package/bundle_writer.h"
#include "compiler/target/gpu_target.h"

namespace hone {

// The kernel of a task with the launches that run it. FailedPrecondition where no schedule fits into the target.
absl::StatusOr<PackagedKernel> MakeDeviceKernel(const CanonicalWorkload& workload, const GpuTarget& target);

// Compiles and writes the bundle. Exit code 4 where a task has no schedule. InvalidArgument for a target in a language
// that the runtime does not open.
absl::Status CompileForDevice(const Model& model, const GpuTarget& target, const std::string& output);

}  // namespace hone
