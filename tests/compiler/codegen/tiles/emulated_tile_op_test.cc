// Every x86 instruction of the registry, run on this machine whether it has the instruction or not: the code that is
// made for it calls functions of the tests' own in its place.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/compiler/codegen/run_kernel.h"
#include "tests/compiler/codegen/tiles/compile_emulated.h"
#include "tests/compiler/codegen/tiles/tile_checks.h"
#include "tests/compiler/codegen/tiles/tile_programs.h"
#include "tests/compiler/schedule/expect.h"

namespace hone::testing {
namespace {

bool IsOfX86(const TileInstruction& instruction) { return absl::StartsWith(instruction.function, "llvm.x86."); }

std::vector<InstructionCase> OfX86(std::vector<InstructionCase> cases) {
  std::erase_if(cases, [](const InstructionCase& c) { return !IsOfX86(*c.instruction); });
  return cases;
}

class EmulatedInstructions : public ::testing::TestWithParam<InstructionCase> {
 protected:
  void SetUp() override {
    if (HostTarget().arch != "x86_64") GTEST_SKIP() << "this machine is no x86";
  }
};
TEST_P(EmulatedInstructions, DoWhatTheIntrinsicMeans) {
  const InstructionCase& c = GetParam();
  const PrimFunc workload = DotOf(c.intrinsic(), 48, 32);  // A ends at the end of a line
  ExpectComputesEmulated(Tensorized(workload, c.lanes(), c.intrinsic()), workload, TargetNamed(c.target()),
                         c.instruction->function);
}
// The last vector is cut off at the edge: all of them are loops, vectorised for the target.
TEST_P(EmulatedInstructions, AreLoopsWhereTheLastVectorIsCutOff) {
  const InstructionCase& c = GetParam();
  const PrimFunc workload = DotOf(c.intrinsic(), 2 * c.lanes() + 3, 7);
  ExpectComputesEmulated(Tensorized(workload, c.lanes(), c.intrinsic()), workload, TargetNamed(c.target()), "");
}
INSTANTIATE_TEST_SUITE_P(Rows, EmulatedInstructions, ::testing::ValuesIn(OfX86(InstructionsOnVectors(false))),
                         [](const auto& info) {
                           return absl::StrCat(info.param.row->name, "_", info.param.instruction->feature, "_",
                                               info.param.lanes());
                         });

class EmulatedTileRegisters : public EmulatedInstructions {};
TEST_P(EmulatedTileRegisters, DoWhatTheIntrinsicMeans) {
  const InstructionCase& c = GetParam();
  const int64_t depth = c.depth();
  for (const auto& [sizes, parallel] : {std::pair(TileSizes{2, 2, 16, depth}, true),
                                        {TileSizes{1, 3, 7, depth / 2}, false},
                                        {TileSizes{3, 2, 14, depth}, false}}) {
    SCOPED_TRACE(absl::StrCat(sizes.down, " x ", sizes.across, " tiles of ", sizes.rows, " rows, ", sizes.depth,
                              " deep, parallel ", parallel));
    const PrimFunc workload =
        GroupedProduct(c.intrinsic(), 2 * sizes.down * sizes.rows, 2 * sizes.across * 16, 2 * sizes.depth);
    ExpectComputesEmulated(InTileRegisters(workload, c.intrinsic(), sizes, parallel), workload, TargetNamed(c.target()),
                           c.instruction->function);
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, EmulatedTileRegisters, ::testing::ValuesIn(OfX86(ProductsInTiles())),
                         [](const auto& info) { return info.param.row->name; });

class EmulatedHalfSums : public ::testing::TestWithParam<int64_t> {};
TEST_P(EmulatedHalfSums, DoWhatTheProgramSays) {
  if (HostTarget().arch != "x86_64") GTEST_SKIP() << "this machine is no x86";
  const PrimFunc workload = HalfProduct(12, 64, 40);
  ExpectComputesEmulated(InHalfVectors(workload, GetParam()), workload, TargetNamed(TargetWith("avx512fp16")), "");
}
INSTANTIATE_TEST_SUITE_P(Lanes, EmulatedHalfSums, ::testing::Values(16, 32));

// A new instruction is run by one of the tests above, or is named here.
TEST(EmulatedRegistry, EveryX86InstructionIsRun) {
  std::set<std::string> run;
  for (const InstructionCase& c : OfX86(InstructionsOnVectors(false))) run.insert(c.instruction->function);
  for (const InstructionCase& c : OfX86(ProductsInTiles())) {
    run.insert(c.instruction->function);
    for (const TileIntrinsic* moved : {&ZeroTile(*c.row), &StoreTile(*c.row)})
      for (const TileInstruction& instruction : moved->instructions) run.insert(instruction.function);
  }
  int seen = 0;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    for (const TileInstruction& instruction : row.instructions) {
      if (!IsOfX86(instruction)) continue;
      ++seen;
      EXPECT_TRUE(run.contains(instruction.function))
          << row.name << " names " << instruction.function << ", which no test of this file runs";
      EXPECT_NE(FindX86Body(instruction.function), nullptr)
          << row.name << " names " << instruction.function
          << ", which has no body in tests/compiler/codegen/machine_code/x86_functions.cc: add one";
      EXPECT_NE(TargetWith(instruction.feature), "")
          << row.name << " wants " << instruction.feature << ", which no core of compiler/target/cpu_table.cc has";
    }
  }
  EXPECT_GE(seen, 30);
}

TEST(EmulatedRegistry, AFunctionWithoutABodyIsNamed) {
  const Schedule s = Tensorized(DotOf("dot4_u8s8_s32", 48, 5), 16, "dot4_u8s8_s32");
  const auto none = [](std::string_view) -> X86Body { return nullptr; };
  EXPECT_TRUE(Says(CompileEmulated(s.Program(), TargetNamed(TargetWith("avx512vnni")), {}, none),
                   "the code calls llvm.x86.avx512.vpdpbusd.512, which has no body in "
                   "tests/compiler/codegen/machine_code/x86_functions.cc: add one"));
}

TEST(EmulatedRegistry, AnotherBodyGivesAnotherResult) {
  const PrimFunc workload = DotOf("dot4_u8s8_s32", 48, 5);
  const auto zeros = [](std::string_view) -> X86Body {
    return [](void* result, const void* const*) { std::memset(result, 0, 64); };
  };
  const absl::StatusOr<EmulatedKernel> emulated = CompileEmulated(Tensorized(workload, 16, "dot4_u8s8_s32").Program(),
                                                                  TargetNamed(TargetWith("avx512vnni")), {}, zeros);
  ASSERT_TRUE(emulated.ok()) << emulated.status();
  std::vector<NdArray> args = RandomArguments(workload, 5, InputKind::kInteger);
  ASSERT_TRUE(RunCompiled(emulated->kernel, args).ok());
  for (int64_t i = 0; i < args[2].NumElements(); ++i) EXPECT_EQ(args[2].Get(i), 0);
}

}  // namespace
}  // namespace hone::testing
