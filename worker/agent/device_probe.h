// What a worker says of its device: what the target states, and what a probe of up to two seconds measured.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/target/target.h"
#include "hone/v1/common.pb.h"

namespace hone {

// `threads` is how many the worker measures with: what all of them do together is theirs.
v1::DeviceProfile ProbeDevice(const Target& target, int threads);
// The same of a device that cannot be probed from here, by usual values of its core.
v1::DeviceProfile UsualDevice(const Target& target, int threads);
// Of the device that a text names the kind of ("opencl:generic"), on this machine. FailedPrecondition where there is
// none.
absl::StatusOr<v1::DeviceProfile> ProbeGpuDevice(const std::string& target_text);

}  // namespace hone
