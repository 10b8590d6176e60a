#include "compiler/target/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/target/cpu_table.h"

namespace hone {
namespace {

using testing::HasSubstr;

TEST(Machine, UsualValuesOfEveryCoreAreThoseOfAMachineAndReadBackFromTheirText) {
  for (const CpuInfo& cpu : CpuTable()) {
    SCOPED_TRACE(cpu.name);
    const Target target = *ParseTarget(absl::StrCat("cpu:", std::string(cpu.name), ",cores=2"));
    const Machine usual = UsualMachine(target);
    EXPECT_TRUE(CheckMachine(usual, target).ok()) << CheckMachine(usual, target);
    const absl::StatusOr<Machine> again = ParseMachine(ToText(usual), target);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, usual);
    EXPECT_EQ(usual.fma_per_cycle(target.vector_bits), cpu.fma_per_cycle);
    EXPECT_GE(usual.l1, usual.l2);
    EXPECT_GE(usual.l2, usual.l3);
    EXPECT_GE(usual.l3, usual.memory);
    EXPECT_GE(usual.memory_all, usual.memory);
  }
}

TEST(Machine, WidthsThatATargetTurnsOffOrOnHaveUsualRates) {
  const Machine narrow = UsualMachine(*ParseTarget("cpu:znver4-avx512f"));
  EXPECT_EQ(narrow.fma512, 0);
  EXPECT_EQ(narrow.fma256, 2);
  const Machine wide = UsualMachine(*ParseTarget("cpu:znver4"));
  EXPECT_EQ(wide.fma512, 1);
  EXPECT_EQ(wide.fma256, 2);
  EXPECT_EQ(UsualMachine(*ParseTarget("cpu:znver1")).fma256, 1);
}

TEST(Machine, NumbersThatWereMeasuredReadBackExactly) {
  const Target target = *ParseTarget("cpu:x86-64-v4");
  Machine machine = UsualMachine(target);
  machine.ghz = 3.1 + 1e-15;
  machine.l3_all = 1.0 / 3;
  machine.fork_us = 0;
  EXPECT_EQ(*ParseMachine(ToText(machine), target), machine);
}

TEST(Machine, WhatATextLeavesOutHasTheUsualValue) {
  const Target target = *ParseTarget("cpu:x86-64-v4,cores=2");
  const absl::StatusOr<Machine> machine = ParseMachine("ghz=2.5,fork=7", target);
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->ghz, 2.5);
  EXPECT_EQ(machine->cycles_per_us(), 2500);
  EXPECT_EQ(machine->fork_us, 7);
  EXPECT_EQ(machine->l2, UsualMachine(target).l2);
  EXPECT_EQ(*ParseMachine("", target), UsualMachine(target));
}

struct RefusedCase {
  const char* name;
  const char* text;
  const char* says;
};
constexpr RefusedCase kRefused[] = {
    {"UnknownFact", "ghz=3,colour=2", "\"colour\" is no fact; known are ghz, fma128"},
    {"NamedTwice", "ghz=3,ghz=3", "ghz is stated twice"},
    {"NoNumber", "ghz=fast", "\"ghz=fast\" is not a name, = and a number"},
    {"NoValue", "ghz", "\"ghz\" is not a name, = and a number"},
    {"Zero", "ghz=0", "ghz is 0, outside 0.05 to 20"},
    {"Negative", "memory=-1", "memory is -1, outside"},
    {"NotFinite", "l1=inf", "l1 is inf, outside"},
    {"NotANumber", "l1=nan", "l1 is nan, outside"},
    {"NoVectors", "fma512=0", "fma512 is 0, but cpu:x86-64-v4"},
};
class MachineRefused : public testing::TestWithParam<RefusedCase> {};
TEST_P(MachineRefused, SaysWhatAndWhy) {
  const absl::StatusOr<Machine> machine = ParseMachine(GetParam().text, *ParseTarget("cpu:x86-64-v4"));
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(machine.status().message()), HasSubstr(GetParam().says));
}
INSTANTIATE_TEST_SUITE_P(Texts, MachineRefused, testing::ValuesIn(kRefused),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
