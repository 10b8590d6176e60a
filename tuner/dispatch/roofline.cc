#include "tuner/dispatch/roofline.h"

#include <algorithm>
#include <cmath>

namespace hone {

double LowerBoundUs(double flop, double bytes, const v1::DeviceProfile& device, int threads) {
  double gflops = device.peak_gflops_all();
  if (device.peak_gflops_1() > 0 && threads < std::max(1, device.cores())) {
    const double some = device.peak_gflops_1() * threads;
    gflops = gflops > 0 ? std::min(gflops, some) : some;
  }
  const double arithmetic = gflops > 0 ? flop / (gflops * 1e3) : 0;
  const bool streams = bytes > static_cast<double>(device.l3_bytes());
  const double traffic = streams && device.memory_gbps() > 0 ? bytes / (device.memory_gbps() * 1e3) : 0;
  const double bound = std::max(arithmetic, traffic);
  return std::isfinite(bound) && bound > 0 ? bound : 0;
}

double ImplausibleBelowUs(double lower_bound_us) { return lower_bound_us * 0.25; }

}  // namespace hone
