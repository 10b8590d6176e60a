// How fast a kernel can be on a device at most, by the peaks that the worker measured (Williams et al., "Roofline",
// 2009).
#pragma once

#include "hone/v1/common.pb.h"

namespace hone {

// Microseconds for `flop` operations, those of the cheapest algorithm that is allowed; 0 when the peaks are not known.
// `bytes` come from the nearest caches that hold them, since kernels are measured with their operands warm: of every
// level the traffic counts that the levels before it cannot hold.
double LowerBoundUs(double flop, double bytes, const v1::DeviceProfile& device, int threads);

// A time that no honest measurement gives. The peaks of a busy machine are measured at half of what it can do when it
// is quiet, and those who agree on them may be busy together, as on one host: half of the bound where the peaks are
// `agreed`. One worker's word alone may be wrong by as much again.
double ImplausibleBelowUs(double lower_bound_us, bool agreed);

}  // namespace hone
