#include "compiler/driver/machine_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "compiler/support/file.h"

namespace hone {
namespace {

using testing::HasSubstr;

class MachineFactsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/machine_facts_" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    ::setenv("HONE_DATA", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("HONE_DATA");
    std::filesystem::remove_all(folder_);
  }
  std::string folder_;
};

TEST_F(MachineFactsTest, AreMeasuredOnceAndRemembered) {
  const absl::StatusOr<MachineFacts> first = FindMachineFacts(HostTarget(), "measured");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->source, "measured now, kept in " + MachineFactsPath());
  const absl::StatusOr<MachineFacts> second = FindMachineFacts(HostTarget(), "measured");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->source, "measured before, kept in " + MachineFactsPath());
  EXPECT_EQ(second->machine, first->machine);
}

TEST_F(MachineFactsTest, OfAnotherMachineAreUsual) {
  const Target foreign = *ParseTarget(HostTarget().cpu == "znver1" ? "cpu:znver2" : "cpu:znver1");
  const absl::StatusOr<MachineFacts> facts = FindMachineFacts(foreign, "measured");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->machine, UsualMachine(foreign));
  EXPECT_THAT(facts->source, HasSubstr("is not this machine"));
  EXPECT_FALSE(std::filesystem::exists(MachineFactsPath()));
}

TEST_F(MachineFactsTest, AreKeptForEachDeviceClass) {
  ASSERT_TRUE(FindMachineFacts(HostTarget(), "measured").ok());
  const Target one_core = *ParseTarget("cpu:native,cores=1");
  const absl::StatusOr<MachineFacts> other = FindMachineFacts(one_core, "measured");
  ASSERT_TRUE(other.ok());
  if (HostTarget().cores > 1) { EXPECT_THAT(other->source, HasSubstr("measured now")); }
  EXPECT_THAT(FindMachineFacts(HostTarget(), "measured")->source, HasSubstr("measured before"));
}

TEST_F(MachineFactsTest, AFileOfAnotherMakingIsMeasuredAnew) {
  std::filesystem::create_directories(folder_);
  std::ofstream(MachineFactsPath()) << "something else\n";
  EXPECT_THAT(FindMachineFacts(HostTarget(), "measured")->source, HasSubstr("measured now"));
  EXPECT_THAT(FindMachineFacts(HostTarget(), "measured")->source, HasSubstr("measured before"));
}

TEST_F(MachineFactsTest, WhatCannotBeKeptIsStillMeasured) {
  std::ofstream(folder_) << "a file where the folder would be";
  const absl::StatusOr<MachineFacts> facts = FindMachineFacts(HostTarget(), "measured");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(facts->source, HasSubstr("not kept"));
}

TEST_F(MachineFactsTest, MayBeGiven) {
  const absl::StatusOr<MachineFacts> facts = FindMachineFacts(HostTarget(), "ghz=1.5");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->machine.ghz, 1.5);
  EXPECT_EQ(FindMachineFacts(HostTarget(), "usual")->machine, UsualMachine(HostTarget()));
  EXPECT_FALSE(FindMachineFacts(HostTarget(), "ghz=fast").ok());
}

}  // namespace
}  // namespace hone
