// What a worker says of its device: what the target states, and what a probe of up to two seconds measured.
#pragma once

#include "compiler/target/target.h"
#include "hone/v1/common.pb.h"

namespace hone {

// `threads` is how many the worker measures with: what all of them do together is theirs.
v1::DeviceProfile ProbeDevice(const Target& target, int threads);
// The same of a device that cannot be probed from here, by usual values of its core.
v1::DeviceProfile UsualDevice(const Target& target, int threads);

}  // namespace hone
