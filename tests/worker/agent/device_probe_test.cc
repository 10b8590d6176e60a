#include "worker/agent/device_probe.h"

#include "compiler/target/machine.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

TEST(DeviceProbe, ProfileNamesTheDeviceClassAndItsFacts) {
  const Target target = HostTarget();
  const v1::DeviceProfile profile = ProbeDevice(target, 1);
  EXPECT_EQ(profile.device_class(), DeviceClass(target));
  EXPECT_EQ(profile.target(), target.text);
  EXPECT_TRUE(ParseMachine(profile.machine(), target).ok()) << profile.machine();
  ASSERT_EQ(profile.moved_gbps_1_size(), 4);
  ASSERT_EQ(profile.moved_gbps_all_size(), 4);
  EXPECT_GT(profile.memory_gbps(), 0);
  EXPECT_EQ(profile.memory_gbps(), profile.moved_gbps_all(3));
  EXPECT_EQ(profile.peak_gflops_1(), profile.peak_gflops_all());
}

// 2.4 GHz, two multiply-adds of four lanes a cycle, two operations each.
TEST(DeviceProbe, ADeviceThatIsNotHereHasTheUsualFactsOfItsCore) {
  const absl::StatusOr<Target> target = ParseTarget("cpu:cortex-a76,cores=2");
  ASSERT_TRUE(target.ok()) << target.status();
  const v1::DeviceProfile profile = UsualDevice(*target, 2);
  EXPECT_EQ(profile.device_class(), DeviceClass(*target));
  EXPECT_EQ(profile.machine(), ToText(UsualMachine(*target)));
  EXPECT_DOUBLE_EQ(profile.peak_gflops_1(), 38.4);
  EXPECT_DOUBLE_EQ(profile.peak_gflops_all(), 76.8);
  EXPECT_EQ(profile.memory_gbps(), profile.moved_gbps_all(3));
  EXPECT_TRUE(profile.facts().empty());
}

}  // namespace
}  // namespace hone
