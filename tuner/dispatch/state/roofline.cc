#include "tuner/dispatch/state/roofline.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

// What `threads` reach together, of the rates of one core and of all; 0 when neither is known.
double RateOf(double one, double all, int threads, int cores) {
  if (one <= 0 || threads >= std::max(1, cores)) return std::max(all, 0.0);
  return all > 0 ? std::min(all, one * threads) : one * threads;
}

template <class Repeated>
double At(const Repeated& rates, int level) {
  return level < rates.size() ? rates[level] : 0;
}

}  // namespace

double LowerBoundUs(double flop, double bytes, const v1::DeviceProfile& device, int threads) {
  const double gflops = RateOf(device.peak_gflops_1(), device.peak_gflops_all(), threads, device.cores());
  double bound = gflops > 0 ? flop / (gflops * 1e3) : 0;
  // Through each level goes at least what the levels before it cannot hold.
  double held = 0;
  const double capacities[] = {static_cast<double>(device.l1d_bytes()) * threads,
                               static_cast<double>(device.l2_bytes()) * threads, static_cast<double>(device.l3_bytes()),
                               0};
  for (int level = 0; level < 4; ++level) {
    const double gbps =
        RateOf(At(device.moved_gbps_1(), level), At(device.moved_gbps_all(), level), threads, device.cores());
    if (gbps > 0) bound = std::max(bound, (bytes - held) / (gbps * 1e3));
    held += capacities[level];
  }
  return std::isfinite(bound) && bound > 0 ? bound : 0;
}

double ImplausibleBelowUs(double lower_bound_us, bool agreed) { return lower_bound_us * (agreed ? 0.5 : 0.25); }

}  // namespace hone
