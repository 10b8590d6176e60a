#include "compiler/target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/target/cpu_table.h"

namespace hone {
namespace {

using testing::HasSubstr;

TEST(Target, EveryCoreOfTheTableReadsBackFromItsText) {
  for (const CpuInfo& cpu : CpuTable()) {
    const absl::StatusOr<Target> target = ParseTarget("cpu:" + std::string(cpu.name));
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_EQ(target->cpu, cpu.name);
    EXPECT_EQ(target->vector_bits, cpu.vector_bits) << cpu.name;
    const absl::StatusOr<Target> again = ParseTarget(target->text);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->text, target->text);
    EXPECT_EQ(again->features, target->features);
  }
}

TEST(Target, TheHostReadsBackFromItsText) {
  const Target host = HostTarget();
  const absl::StatusOr<Target> again = ParseTarget(host.text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->text, host.text);
  EXPECT_EQ(again->features, host.features);
  EXPECT_EQ(again->vector_bits, host.vector_bits);
  EXPECT_EQ(DeviceClass(*again), DeviceClass(host));
  EXPECT_EQ(ParseTarget("cpu:native")->text, host.text);
  EXPECT_GE(host.cores, 1);
  EXPECT_GT(host.l1d, 0);
}

TEST(Target, FeaturesAndFactsAreAddedAndTakenAway) {
  const absl::StatusOr<Target> target = ParseTarget("cpu:x86-64-v4+avx512vnni-avx512dq,l1d=48K,l2=2M,l3=0,cores=3");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_TRUE(target->has("avx512vnni"));
  EXPECT_FALSE(target->has("avx512dq"));
  EXPECT_EQ(target->vector_bits, 256);  // without dq the wide registers are not worth having
  EXPECT_EQ(target->l1d, 48 << 10);
  EXPECT_EQ(target->l2, 2 << 20);
  EXPECT_EQ(target->l3, 0);
  EXPECT_EQ(target->cores, 3);
  EXPECT_EQ(ParseTarget(target->text)->text, target->text);
}

TEST(Target, LanesFollowTheVectorWidth) {
  EXPECT_EQ(ParseTarget("cpu:znver5")->lanes(), 16);
  EXPECT_EQ(ParseTarget("cpu:znver3")->lanes(), 8);
  EXPECT_EQ(ParseTarget("cpu:cortex-a76")->lanes(), 4);
  EXPECT_EQ(ParseTarget("cpu:generic-rv64")->lanes(), 4);
  EXPECT_EQ(ParseTarget("cpu:generic-rv64+zvl256b")->lanes(), 8);
  EXPECT_EQ(ParseTarget("cpu:znver5")->lanes(64), 8);
}

TEST(Target, DeviceClassNamesWhatMatters) {
  EXPECT_EQ(DeviceClass(*ParseTarget("cpu:znver5,cores=2")), "x86_64-znver5-avx512bf16-c2-l1d48K-l2.1M-l3.32M");
  EXPECT_EQ(DeviceClass(*ParseTarget("cpu:sapphirerapids")), "x86_64-sapphirerapids-amx-c1-l1d48K-l2.2M-l3.64M");
  EXPECT_EQ(DeviceClass(*ParseTarget("cpu:sapphirerapids-amx-int8")),
            "x86_64-sapphirerapids-avx512bf16-c1-l1d48K-l2.2M-l3.64M");
  EXPECT_EQ(DeviceClass(*ParseTarget("cpu:cortex-a76")), "aarch64-cortex-a76-neon-c1-l1d64K-l2.512K-l3.2M");
  EXPECT_EQ(DeviceClass(*ParseTarget("cpu:generic-rv64")), "riscv64-generic-rv64-rvv128-c1-l1d32K-l2.512K");
  EXPECT_EQ(DeviceClass(*ParseTarget("cpu:spacemit-x60,cores=8")), "riscv64-spacemit-x60-rvv256-c8-l1d32K-l2.512K");
  EXPECT_EQ(DeviceClass(*ParseTarget("cpu:neoverse-v2")), "aarch64-neoverse-v2-sve2-c1-l1d64K-l2.2M-l3.32M");
  EXPECT_NE(DeviceClass(*ParseTarget("cpu:znver5,cores=2")), DeviceClass(*ParseTarget("cpu:znver5,cores=4")));
}

// A measurement is kept under the class and states the text: two machines whose kernels may differ in code or speed
// differ in one of them.
TEST(Target, EveryFactIsInTheDeviceClassOrStatedWithTheRecord) {
  const Target base = *ParseTarget("cpu:znver4,l1d=32K,l2=1M,l3=32M,cores=4");
  for (const char* changed : {"cpu:znver5,l1d=32K,l2=1M,l3=32M,cores=4", "cpu:znver4,l1d=48K,l2=1M,l3=32M,cores=4",
                              "cpu:znver4,l1d=32K,l2=2M,l3=32M,cores=4", "cpu:znver4,l1d=32K,l2=1M,l3=16M,cores=4",
                              "cpu:znver4,l1d=32K,l2=1M,l3=32M,cores=8"}) {
    EXPECT_NE(DeviceClass(*ParseTarget(changed)), DeviceClass(base)) << changed;
  }
  for (const std::string& feature : base.features) {
    if (feature == "avx2" || feature == "fma" || feature == "f16c") continue;  // every target has them
    const Target without = *ParseTarget("cpu:znver4-" + feature + ",l1d=32K,l2=1M,l3=32M,cores=4");
    EXPECT_NE(without.text, base.text) << feature;
    EXPECT_FALSE(without.has(feature));
  }
}

TEST(Target, NamesOfFeaturesMayHaveHyphens) {
  const absl::StatusOr<Target> target = ParseTarget("cpu:sapphirerapids-amx-int8-avxvnni+amx-bf16-amx-tile");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_FALSE(target->has("amx-int8"));
  EXPECT_FALSE(target->has("avxvnni"));
  EXPECT_TRUE(target->has("amx-bf16"));
  EXPECT_FALSE(target->has("amx-tile"));
}

TEST(Target, MissingFeaturesAreNamed) {
  EXPECT_EQ(MissingFeatures(*ParseTarget("cpu:x86-64-v3"), *ParseTarget("cpu:x86-64-v4")), "");
  EXPECT_THAT(MissingFeatures(*ParseTarget("cpu:x86-64-v4"), *ParseTarget("cpu:x86-64-v3")), HasSubstr("avx512f"));
  EXPECT_EQ(MissingFeatures(*ParseTarget("cpu:cortex-a76"), *ParseTarget("cpu:x86-64-v3")), "aarch64");
}

struct Refusal {
  const char* name;
  const char* text;
  const char* says;
};
class TargetRefusals : public testing::TestWithParam<Refusal> {};
TEST_P(TargetRefusals, SaysWhatAndWhatIsKnown) {
  const absl::StatusOr<Target> target = ParseTarget(GetParam().text);
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(target.status().message()), HasSubstr(GetParam().says));
}
INSTANTIATE_TEST_SUITE_P(
    Rows, TargetRefusals,
    testing::Values(Refusal{"NoPrefix", "znver5", "does not start with \"cpu:\""},
                    Refusal{"Empty", "", "does not start with \"cpu:\""},
                    Refusal{"UnknownCore", "cpu:zen9", "\"zen9\" names no known core; known are native, "},
                    Refusal{"NoCore", "cpu:", "names no known core"},
                    Refusal{"UnknownFeature", "cpu:znver5+sse9", "\"sse9\" is not a feature of x86_64"},
                    Refusal{"PartOfAFeature", "cpu:sapphirerapids-amx", "\"amx\" is not a feature of x86_64"},
                    Refusal{"FeatureOfAnother", "cpu:cortex-a76+avx2", "\"avx2\" is not a feature of aarch64"},
                    Refusal{"TooOld", "cpu:x86-64-v3-fma", "the oldest x86-64 supported is cpu:x86-64-v3"},
                    Refusal{"TooOldArm", "cpu:cortex-a76-neon", "the oldest AArch64 supported is cpu:generic"},
                    Refusal{"TooOldRiscV", "cpu:generic-rv64-v", "the oldest RISC-V supported is cpu:generic-rv64"},
                    Refusal{"BadFact", "cpu:znver5,l4=3", "\"l4=3\" is not a fact"},
                    Refusal{"BadCores", "cpu:znver5,cores=0", "\"cores=0\" is not a fact"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
