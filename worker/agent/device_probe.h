// What a worker finds out about its device by trying: the figures of a roofline. About a tenth of a second.
#pragma once

#include "compiler/target/target.h"
#include "hone/v1/common.pb.h"

namespace hone {

// `threads` is how many the worker measures with: the peak over all is theirs.
v1::DeviceProfile ProbeDevice(const Target& target, int threads);

// float32 multiply-adds a second on `threads` cores at once, in units of 10^9 operations (a multiply-add is two), by
// loops of independent vector operations in registers.
double MeasurePeakGflops(const Target& target, int threads);
// Bytes read and written a second by one core that copies a block larger than the last cache, in units of 10^9.
double MeasureCopyGbps(const Target& target);

}  // namespace hone
