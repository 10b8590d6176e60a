// How fast a kernel can be on a device at most, by the peaks that the worker measured (Williams et al., "Roofline", 2009).
#pragma once

#include "hone/v1/common.pb.h"

namespace hone {

// Microseconds; 0 when the peaks are not known. Memory traffic counts only where it cannot stay in the last-level cache:
// kernels are measured, and run, with their operands warm.
double LowerBoundUs(double flop, double bytes, const v1::DeviceProfile& device, int threads);

// A time that no honest measurement gives. Far below the roofline, since peaks are measured with noise and since an
// algorithm that the level allows (Winograd) may need a fraction of the stated operations.
double ImplausibleBelowUs(double lower_bound_us, v1::NumericLevel numeric);

}  // namespace hone
