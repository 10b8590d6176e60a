// Targets of GPUs as text.
#include "compiler/target/gpu_target.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hone {
namespace {

TEST(GpuTarget, TheTextSaysEverything) {
  for (const GpuTarget& row : GpuTable()) {
    const absl::StatusOr<GpuTarget> usual = ParseGpuTarget(row.language + ":" + row.arch);
    ASSERT_TRUE(usual.ok()) << usual.status();
    const absl::StatusOr<GpuTarget> again = ParseGpuTarget(usual->text);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*usual, *again);
    EXPECT_LE(usual->shared, usual->resident_shared);
    EXPECT_LE(usual->threads, usual->resident_threads);
  }
}

TEST(GpuTarget, FactsReplaceUsualOnes) {
  const absl::StatusOr<GpuTarget> target = ParseGpuTarget("cuda:sm_90a,bandwidth=4800,l2=51200K");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->bandwidth, 4800);
  EXPECT_EQ(target->processors, 132);
  EXPECT_EQ(target->text,
            "cuda:sm_90a,lanes=32,processors=132,threads=1024,resident_threads=2048,registers=65536,shared=227K,"
            "resident_shared=228K,l2=50M,mhz=1755,bandwidth=4800");
}

TEST(GpuTarget, ADeviceHasAName) {
  const absl::StatusOr<GpuTarget> target = ParseGpuTarget("opencl:generic,device=gfx1100,processors=96,threads=1024");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->device, "gfx1100");
  EXPECT_EQ(*ParseGpuTarget(target->text), *target);
  EXPECT_EQ(DeviceClass(*target), "opencl-generic-gfx1100-p96-t1024-s32K");
  EXPECT_EQ(ToDeviceName("pthread-AMD EPYC 9R45 (znver5)"), "pthread-amd-epyc-9r45-znver5");
  EXPECT_EQ(ToDeviceName(std::string(100, 'x')).size(), 40u);
  EXPECT_EQ(ToDeviceName("--"), "");
}

// Devices that differ in what schedules depend on have records of their own.
TEST(GpuTarget, TheClassTellsDevicesApart) {
  std::set<std::string> classes;
  for (const char* facts : {"", ",device=a", ",device=b", ",processors=2", ",threads=64", ",shared=64K"})
    EXPECT_TRUE(classes.insert(DeviceClass(*ParseGpuTarget(std::string("opencl:generic") + facts))).second) << facts;
  EXPECT_EQ(DeviceClass(*ParseGpuTarget("opencl:generic,bandwidth=7")), DeviceClass(*ParseGpuTarget("opencl:generic")));
}

TEST(GpuTarget, FeaturesAreThoseOfTheArchitecture) {
  using Features = std::set<std::string>;
  const auto of = [](const char* arch) { return FeaturesOf({.language = "cuda", .arch = arch, .lanes = 32}); };
  const Features all = {"mma.sync", "ldmatrix", "cp.async"};
  EXPECT_EQ(of("sm_70"), Features());
  EXPECT_EQ(of("sm_75"), Features({"ldmatrix"}));
  EXPECT_EQ(of("sm_80"), all);
  EXPECT_EQ(of("sm_90a"), all);
  EXPECT_EQ(of("sm_100a"), all);
  EXPECT_EQ(FeaturesOf(*ParseGpuTarget("cuda:sm_80,lanes=16")), Features({"cp.async"})) << "which no warp makes";
  EXPECT_EQ(FeaturesOf(*ParseGpuTarget("opencl:generic,lanes=32")), Features());
}

TEST(GpuTarget, BlocksThatDoNotFitAreRefused) {
  const GpuTarget target = *ParseGpuTarget("opencl:generic,threads=64,shared=1K");
  EXPECT_TRUE(CheckBlock(target, "k", 64, 1024).ok());
  EXPECT_EQ(CheckBlock(target, "k", 65, 0).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CheckBlock(target, "k", 1, 1025).code(), absl::StatusCode::kFailedPrecondition);
}

struct Refusal {
  const char* name;
  const char* text;
  const char* says;
};
constexpr Refusal kRefusals[] = {
    {"Architecture", "cuda:sm_10",
     "\"cuda:sm_10\" names no known architecture of a GPU; known are cuda:sm_80, cuda:sm_90a"},
    {"Language", "cpu:native", "\"cpu:native\" names no known architecture"},
    {"Empty", "", "\"\" names no known architecture"},
    {"FactName", "cuda:sm_80,cores=3", "\"cores=3\" is not a fact; write NAME=NUMBER"},
    {"NoNumber", "cuda:sm_80,l2=big", "\"l2=big\" is not a fact"},
    {"Zero", "cuda:sm_80,processors=0", "\"processors=0\" is not a fact"},
    {"TooLarge", "cuda:sm_80,shared=99999999999M", "is not a fact"},
    {"DeviceName", "opencl:generic,device=GFX 1100", "\"device=GFX 1100\" is not a fact"},
    {"UnitOfNoBytes", "cuda:sm_80,mhz=1K", "\"mhz=1K\" is not a fact"},
};
class GpuTargetRefusals : public testing::TestWithParam<Refusal> {};
TEST_P(GpuTargetRefusals, SayWhatIsKnown) {
  const absl::StatusOr<GpuTarget> target = ParseGpuTarget(GetParam().text);
  ASSERT_FALSE(target.ok());
  EXPECT_NE(target.status().message().find(GetParam().says), std::string::npos) << target.status();
}
INSTANTIATE_TEST_SUITE_P(All, GpuTargetRefusals, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
