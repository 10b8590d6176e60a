#include "worker/agent/device_probe.h"

#include "gtest/gtest.h"

namespace hone {
namespace {

// A core starts at most a few vector operations a cycle and clocks below 7 GHz: a probe whose chains the compiler
// folded together would report several times that.
TEST(DeviceProbe, PeakIsWhatACoreCanDo) {
  const Target target = HostTarget();
  const double peak = MeasurePeakGflops(target, 1);
  const double per_cycle = 2.0 * target.lanes() * UsualMachine(target).fma_per_cycle(target.vector_bits);
  EXPECT_GT(peak, per_cycle * 0.5);  // above 0.5 GHz
  EXPECT_LT(peak, per_cycle * 7.0);
}

TEST(DeviceProbe, ProfileNamesTheDeviceClassOfTheTarget) {
  const Target target = HostTarget();
  const v1::DeviceProfile profile = ProbeDevice(target, 1);
  EXPECT_EQ(profile.device_class(), DeviceClass(target));
  EXPECT_EQ(profile.target(), target.text);
  EXPECT_GT(profile.memory_gbps(), 0);
  EXPECT_EQ(profile.peak_gflops_1(), profile.peak_gflops_all());
}

}  // namespace
}  // namespace hone
