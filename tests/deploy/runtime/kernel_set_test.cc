// The stored form of kernel sets for devices; that of others is what runners and bundles are tested with.
#include "deploy/runtime/image/kernel_set.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

KernelSet DeviceSet() {
  KernelSet set;
  set.symbol = "k";
  set.params = {{"float32", {2, 3}, 24}, {"float32", {6}, 24}};
  set.scratch_bytes = 2048;
  set.areas = {{1024, 24}};
  set.launches = {{"k_0", {4, 1, 1}, {2, 3, 1}, {0, 2}}, {"k_1", {1, 2, 3}, {8, 1, 1}, {2, 1}}};
  return set;
}

TEST(KernelSet, OfADeviceKeepsItsLaunches) {
  const KernelSet set = DeviceSet();
  KernelSet read;
  std::string error;
  ASSERT_TRUE(Parse(Serialize(set), &read, &error)) << error;
  ASSERT_EQ(read.areas.size(), 1u);
  EXPECT_EQ(read.areas[0].offset, 1024);
  EXPECT_EQ(read.areas[0].bytes, 24);
  ASSERT_EQ(read.launches.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read.launches[i].kernel, set.launches[i].kernel);
    EXPECT_EQ(read.launches[i].grid, set.launches[i].grid);
    EXPECT_EQ(read.launches[i].block, set.launches[i].block);
    EXPECT_EQ(read.launches[i].arguments, set.launches[i].arguments);
  }
  EXPECT_EQ(Serialize(read), Serialize(set));
}

// Shared memory that launches give is kept, and costs the sets without any nothing: theirs is the form as before.
TEST(KernelSet, LaunchesKeepTheirSharedMemory) {
  KernelSet set = DeviceSet(), read;
  EXPECT_EQ(Serialize(set).substr(0, 4), "HKS\x02");
  set.launches[1].shared_bytes = 60000;
  const std::string bytes = Serialize(set);
  EXPECT_EQ(bytes.substr(0, 4), "HKS\x04");
  std::string error;
  ASSERT_TRUE(Parse(bytes, &read, &error)) << error;
  EXPECT_EQ(read.launches[0].shared_bytes, 0);
  EXPECT_EQ(read.launches[1].shared_bytes, 60000);
}

// A set without launches is written as ever, so that stored ones are equal to new ones.
TEST(KernelSet, WithoutLaunchesIsOfTheFirstVersion) {
  KernelSet set = DeviceSet();
  set.areas.clear();
  set.launches.clear();
  const std::string bytes = Serialize(set);
  EXPECT_EQ(bytes.substr(0, 4), "HKS\x01");
  KernelSet read;
  std::string error;
  ASSERT_TRUE(Parse(bytes, &read, &error)) << error;
  EXPECT_TRUE(read.launches.empty());
}

TEST(KernelSet, DamagedOnesAreRefusedWithTheReason) {
  const auto error_of = [](KernelSet set) {
    KernelSet read;
    std::string error;
    EXPECT_FALSE(Parse(Serialize(set), &read, &error));
    return error;
  };
  KernelSet set = DeviceSet();
  set.launches[0].arguments[1] = 3;
  EXPECT_EQ(error_of(set), "kernel set: an argument is 3");
  set = DeviceSet();
  set.areas[0].bytes = 1025;
  EXPECT_EQ(error_of(set), "kernel set: an area's size is 1025");
  set = DeviceSet();
  set.launches[1].grid[2] = 0;
  EXPECT_EQ(error_of(set), "kernel set: a grid is 0");
  const std::string whole = Serialize(DeviceSet());
  for (size_t length = 4; length < whole.size(); length += 7) {
    KernelSet read;
    std::string error;
    EXPECT_FALSE(Parse(whole.substr(0, length), &read, &error)) << length;
  }
}

}  // namespace
}  // namespace hone
