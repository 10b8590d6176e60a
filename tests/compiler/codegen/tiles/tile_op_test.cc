// Tile operations as machine code: as loops around registers, and as the instruction their intrinsic names.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/codegen/compile.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/register_tile.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/schedule.h"
#include "tests/compiler/codegen/tiles/tile_checks.h"
#include "tests/compiler/codegen/tiles/tile_programs.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

Schedule Tiled(const PrimFunc& workload, int64_t rows, int64_t columns, int64_t lanes, int64_t unroll) {
  Schedule s(workload);
  const BlockRef block = Get(GetBlock(s, "C"));
  const std::vector<LoopRef> loops = Get(GetLoops(s, block));
  const std::vector<LoopRef> i = Get(Split(s, loops[0], {-1, rows})), j = Get(Split(s, loops[1], {-1, columns}));
  Do(Reorder(s, {i[0], j[0], loops[2], i[1], j[1]}));
  Do(Parallel(s, i[0]));
  Do(RegisterTile(s, loops[2], lanes, unroll));
  return s;
}

TEST(TileOp, RegisterTilesOfAnyShape) {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{5, 3, 2}, {7, 33, 5}, {13, 64, 8}, {30, 31, 12}}) {
    const PrimFunc workload = Matmul(m, n, k);
    ExpectComputes(Tiled(workload, 6, 32, 16, 4), workload, HostTarget());
    ExpectComputes(Tiled(workload, 4, 8, 0, 1), workload, HostTarget());
  }
}

class InstructionTest : public ::testing::TestWithParam<InstructionCase> {
 protected:
  void SetUp() override {
    ASSERT_NE(GetParam().target(), "") << "no core of compiler/target/cpu_table.cc has "
                                       << GetParam().instruction->feature;
    ASSERT_NE(Mnemonic(GetParam().instruction->function), "") << "a name for " << GetParam().instruction->function;
  }
};
TEST_P(InstructionTest, IsInTheCode) {
  const InstructionCase& c = GetParam();
  const Target target = TargetNamed(c.target());
  const Schedule s = Tensorized(DotOf(c.intrinsic(), 48, 5), c.lanes(), c.intrinsic());
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), target);
  ASSERT_TRUE(text.ok()) << text.status();
  const std::string name = Mnemonic(c.instruction->function);
  const char* registers = target.arch != "x86_64" ? "" : c.lanes() == 16 ? "%zmm" : c.lanes() == 8 ? "%ymm" : "%xmm";
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  EXPECT_TRUE(std::ranges::any_of(
      lines,
      [&](const std::string& line) { return absl::StrContains(line, name) && absl::StrContains(line, registers); }))
      << name << " of " << registers << "\n"
      << *text;
}
TEST_P(InstructionTest, EveryPassKeepsTheResult) {
  const InstructionCase& c = GetParam();
  ExpectPassesKeep(Tensorized(DotOf(c.intrinsic(), 48, 5), c.lanes(), c.intrinsic()), TargetNamed(c.target()),
                   c.intrinsic());
}
TEST_P(InstructionTest, DoesWhatTheIntrinsicMeans) {
  const InstructionCase& c = GetParam();
  const Target target = TargetNamed(c.target());
  const bool emulated = target.arch != "x86_64";
  if (const std::string missing = MissingFeatures(target, HostTarget()); !emulated && !missing.empty())
    GTEST_SKIP() << "this machine lacks " << missing << ": emulated alone, see emulated_tile_op_test.cc";
  const PrimFunc workload = DotOf(c.intrinsic(), 48, 32);  // A ends at the end of a line
  const std::string board = emulated ? c.target().substr(std::string_view("cpu:").size()) : "";
  ExpectComputes(Tensorized(workload, c.lanes(), c.intrinsic()), workload, target, board);
}
INSTANTIATE_TEST_SUITE_P(Rows, InstructionTest, ::testing::ValuesIn(InstructionsOnVectors(/*matrices=*/false)),
                         [](const auto& info) {
                           return absl::StrCat(info.param.row->name, "_", info.param.instruction->feature, "_",
                                               info.param.lanes());
                         });

// Where sums are additions of their own, which LLVM could put in another order, they are added in that of the schedule.
class PairsInRegisters : public ::testing::TestWithParam<const char*> {};
TEST_P(PairsInRegisters, AreNotSpilled) {
  const Target target = TargetNamed(GetParam());
  const Schedule s =
      InVectorRegisters(GroupedProduct("dot2_s16s16_s32", 12, 32, 64), "dot2_s16s16_s32", target.lanes());
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), target);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CountOf(*text, "\tvpmaddwd"), 4 * 6 * 16 / target.lanes()) << *text;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    EXPECT_FALSE(absl::StrContains(line, "(%rsp") && absl::StrContains(line, "mm")) << std::string(line);
  }
}
INSTANTIATE_TEST_SUITE_P(Targets, PairsInRegisters, ::testing::Values("cpu:x86-64-v3", "cpu:x86-64-v4"),
                         [](const auto& info) {
                           return absl::StrReplaceAll(info.param, {{"cpu:", ""}, {"-", ""}});
                         });

struct HalfCase {
  const char* name;
  const char* target;
  int64_t lanes;
  const char* instruction;
};
class HalfSumsTest : public ::testing::TestWithParam<HalfCase> {};
TEST_P(HalfSumsTest, AreOneInstructionAVector) {
  const Schedule s = InHalfVectors(HalfProduct(12, 64, 40), GetParam().lanes);
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), TargetNamed(GetParam().target));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CountOf(*text, GetParam().instruction), 6) << *text;
  EXPECT_EQ(CountOf(*text, "cvt"), 0) << "float32 in between: " << *text;
}
TEST_P(HalfSumsTest, DoWhatTheProgramSays) {
  const Target target = TargetNamed(GetParam().target);
  const bool emulated = target.arch == "aarch64";
  if (const std::string missing = MissingFeatures(target, HostTarget()); !emulated && !missing.empty())
    GTEST_SKIP() << "this machine lacks " << missing << ": emulated alone, see emulated_tile_op_test.cc";
  const PrimFunc workload = HalfProduct(12, 64, 40);
  ExpectComputes(InHalfVectors(workload, GetParam().lanes), workload, target, emulated ? target.cpu : "");
}
INSTANTIATE_TEST_SUITE_P(Cases, HalfSumsTest,
                         ::testing::Values(HalfCase{"Avx512", "cpu:x86-64-v4+avx512fp16", 32, "\tvfmadd231ph"},
                                           HalfCase{"Avx512Narrow", "cpu:x86-64-v4+avx512fp16", 16, "\tvfmadd231ph"},
                                           HalfCase{"Neon", "cpu:cortex-a76", 8, "\tfmla\tv"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(TileOp, WithoutTheInstructionItIsLoops) {
  const PrimFunc workload = DotOf("dot4_s8s8_s32", 19, 3);
  ExpectComputes(Tensorized(workload, 8, "dot4_s8s8_s32"), workload, HostTarget());
}

}  // namespace
}  // namespace hone::testing
