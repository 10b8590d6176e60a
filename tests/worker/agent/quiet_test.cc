#include "worker/agent/quiet.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(Hours, MayGoOverMidnight) {
  const Hours night = *ParseHours("22:00-06:30");
  EXPECT_TRUE(night.Contains(22 * 60));
  EXPECT_TRUE(night.Contains(0));
  EXPECT_TRUE(night.Contains(6 * 60 + 29));
  EXPECT_FALSE(night.Contains(6 * 60 + 30));
  EXPECT_FALSE(night.Contains(12 * 60));
  const Hours day = *ParseHours("09:00-17:00");
  EXPECT_TRUE(day.Contains(12 * 60));
  EXPECT_FALSE(day.Contains(17 * 60));
  EXPECT_TRUE(ParseHours("00:00-24:00")->Contains(777));
  for (const char* wrong : {"", "22-06", "25:00-01:00", "22:60-23:00", "22:00-06:00 ", "a:b-c:d"}) {
    EXPECT_THAT(std::string(ParseHours(wrong).status().message()), HasSubstr("22:00-06:00")) << wrong;
  }
}

class CpuQuotaTest : public ::testing::Test {
 protected:
  CpuQuotaTest() {
    char name[] = "/tmp/hone_quota_XXXXXX";
    root_ = mkdtemp(name);
  }
  ~CpuQuotaTest() override { fs::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  std::string root_;
};

TEST_F(CpuQuotaTest, IsTheLeastOfTheGroupsAbove) {
  EXPECT_EQ(CpuQuota(root_), std::nullopt) << "no control groups";
  Write("/proc/self/cgroup", "0::/kubepods/pod7/worker");
  Write("/sys/fs/cgroup/kubepods/pod7/worker/cpu.max", "max 100000");
  EXPECT_EQ(CpuQuota(root_), std::nullopt);
  Write("/sys/fs/cgroup/kubepods/pod7/cpu.max", "350000 100000");
  EXPECT_EQ(CpuQuota(root_), 3.5);
  Write("/sys/fs/cgroup/kubepods/pod7/worker/cpu.max", "150000 100000");
  EXPECT_EQ(CpuQuota(root_), 1.5);
}

TEST_F(CpuQuotaTest, IsReadInTheFirstVersionToo) {
  Write("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/docker/7");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/7/cpu.cfs_period_us", "100000");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/7/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(CpuQuota(root_), std::nullopt);
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/7/cpu.cfs_quota_us", "50000");
  EXPECT_EQ(CpuQuota(root_), 0.5);
}

TEST(Quiet, SaysWhatItLacks) {
  const absl::Time noon = absl::FromCivil(absl::CivilMinute(2026, 1, 5, 12, 0), absl::LocalTimeZone());
  EXPECT_EQ(Quiet({}, 2, std::nullopt).Lacks(noon), "");
  EXPECT_EQ(Quiet({}, 2, 2.0).Lacks(noon), "") << "as much as it measures with";
  EXPECT_THAT(Quiet({}, 2, 1.5).Lacks(noon), HasSubstr("whole cores: a CPU limit leaves it the time of 1.5"));
  QuietRules night;
  night.hours = *ParseHours("22:00-06:00");
  EXPECT_EQ(Quiet(night, 2, std::nullopt).Lacks(noon), "its hours, 22:00-06:00");
  EXPECT_EQ(Quiet(night, 2, std::nullopt).Lacks(noon + absl::Hours(11)), "");
}

// user nice system idle iowait irq softirq steal guest guest_nice
TEST(Quiet, WhatAHypervisorTakesAwayIsANeighbours) {
  const std::string before = "cpu  1000 50 200 8000 300 10 20 500 40 0";
  EXPECT_EQ(BusyShare(before, "cpu  1000 50 200 8060 300 10 20 540 40 0"), 0.4) << "40 of 100 were stolen";
  EXPECT_EQ(BusyShare(before, "cpu  1010 55 205 8030 345 12 23 500 45 0"), 0.25) << "a disk is no neighbour";
  EXPECT_EQ(BusyShare(before, "cpu  1000 50 200 8100 300 10 20 500 40 0"), 0);
  EXPECT_EQ(BusyShare(before, before), std::nullopt);
  EXPECT_EQ(BusyShare("", ""), std::nullopt) << "a system that does not tell";
}

// With a busy core no machine is below the least share; any is below all of it.
TEST(Quiet, HearsNeighbours) {
  std::atomic<bool> over{false};
  std::thread busy([&] {
    while (!over) {}
  });
  QuietRules none, all;
  none.most_foreign = 0;
  all.most_foreign = 1;
  EXPECT_THAT(Quiet(none, 1, std::nullopt).LacksSilence(), HasSubstr("a quiet machine: other programs take"));
  EXPECT_EQ(Quiet(all, 1, std::nullopt).LacksSilence(), "");
  over = true;
  busy.join();
}

}  // namespace
}  // namespace hone
