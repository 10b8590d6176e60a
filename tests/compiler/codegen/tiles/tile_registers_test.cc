// Products of matrices as machine code, whose sums stay in registers: tile registers, and vectors of small matrices.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/compile.h"
#include "compiler/schedule/schedule.h"
#include "tests/compiler/codegen/tiles/tile_checks.h"
#include "tests/compiler/codegen/tiles/tile_programs.h"

namespace hone::testing {
namespace {

class TileRegisterTest : public ::testing::TestWithParam<InstructionCase> {};
// Two by two tiles: four products a step along k share four loads; the sums never leave their registers inside it.
TEST_P(TileRegisterTest, SumsStayInRegistersAcrossTheLoop) {
  const int64_t depth = GetParam().depth();
  const PrimFunc workload = GroupedProduct(GetParam().intrinsic(), 64, 64, 4 * depth);
  const Schedule s = InTileRegisters(workload, GetParam().intrinsic(), {.depth = depth});
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), TargetNamed(GetParam().target()));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CountOf(*text, "\t" + Mnemonic(GetParam().instruction->function)), 4) << *text;
  EXPECT_EQ(CountOf(*text, "\ttileloadd"), 4) << *text;
  EXPECT_EQ(CountOf(*text, "\ttilezero"), 4);
  EXPECT_EQ(CountOf(*text, "\ttilestored"), 4);
  EXPECT_EQ(CountOf(*text, "\tldtilecfg"), 1);
  EXPECT_EQ(CountOf(*text, "\ttilerelease"), 1);
}
TEST_P(TileRegisterTest, EveryPassKeepsTheResult) {
  const int64_t depth = GetParam().depth();
  const PrimFunc workload = GroupedProduct(GetParam().intrinsic(), 64, 64, 2 * depth);
  ExpectPassesKeep(InTileRegisters(workload, GetParam().intrinsic(), {.depth = depth}),
                   TargetNamed(GetParam().target()), GetParam().intrinsic());
}
TEST_P(TileRegisterTest, DoesWhatTheIntrinsicMeans) {
  const Target target = TargetNamed(GetParam().target());
  if (const std::string missing = MissingFeatures(target, HostTarget()); !missing.empty())
    GTEST_SKIP() << "this machine lacks " << missing << ": emulated alone, see emulated_tile_op_test.cc";
  const int64_t depth = GetParam().depth();
  for (const TileSizes& sizes :
       {TileSizes{2, 2, 16, depth}, TileSizes{1, 3, 7, depth / 2}, TileSizes{3, 2, 14, depth}}) {
    const PrimFunc workload =
        GroupedProduct(GetParam().intrinsic(), 2 * sizes.down * sizes.rows, 2 * sizes.across * 16, 3 * sizes.depth);
    for (const bool parallel : {false, true})
      ExpectComputes(InTileRegisters(workload, GetParam().intrinsic(), sizes, parallel), workload, target);
  }
}
// More sums than registers, and a target without them: loops that compute the same.
TEST_P(TileRegisterTest, OtherwiseItIsLoops) {
  const PrimFunc workload = GroupedProduct(GetParam().intrinsic(), 64, 64, 32);
  const Schedule s = InTileRegisters(workload, GetParam().intrinsic(), {4, 2, 16, 16});
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), TargetNamed(GetParam().target()));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CountOf(*text, "tmm"), 0);
  ExpectComputes(s, workload, TargetNamed("cpu:x86-64-v3"));
}
INSTANTIATE_TEST_SUITE_P(Rows, TileRegisterTest, ::testing::ValuesIn(ProductsInTiles()),
                         [](const auto& info) { return info.param.row->name; });

class MatrixRegisterTest : public ::testing::TestWithParam<InstructionCase> {};
// The body of the loop along k: 16 products and loads of their factors, of which four pairs of rows come by halves.
// Sums are not moved about.
TEST_P(MatrixRegisterTest, SumsStayInRegistersAcrossTheLoop) {
  const InstructionCase& c = GetParam();
  const std::string name = Mnemonic(c.instruction->function);
  const Schedule s = InMatrixRegisters(GroupedProduct(c.intrinsic(), 16, 24, 80), c.intrinsic());
  const absl::StatusOr<std::string> text = CompileToAssembly(s.Program(), TargetNamed(GetParam().target()));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(CountOf(*text, absl::StrCat("\t", name, "\t")), 16) << *text;
  const size_t product = text->find(name), begin = text->rfind("\n.L", product);
  const std::string body = text->substr(begin, text->find("\tb.", product) - begin);
  EXPECT_EQ(CountOf(body, "\tmov\tv") + CountOf(body, "\tld1"), 4) << body;
  for (const char* moves : {"\tzip", "\tuzp", "\ttrn", "\text", "\tst", "[sp"})
    EXPECT_EQ(CountOf(body, moves), 0) << body;
}
TEST_P(MatrixRegisterTest, EveryPassKeepsTheResult) {
  const PrimFunc workload = GroupedProduct(GetParam().intrinsic(), 16, 8, 80);
  ExpectPassesKeep(InMatrixRegisters(workload, GetParam().intrinsic()), TargetNamed(GetParam().target()),
                   GetParam().intrinsic());
}
TEST_P(MatrixRegisterTest, DoesWhatTheIntrinsicMeans) {
  const PrimFunc workload = GroupedProduct(GetParam().intrinsic(), 16, 24, 80);
  const Target target = TargetNamed(GetParam().target());
  ExpectComputes(InMatrixRegisters(workload, GetParam().intrinsic()), workload, target, target.cpu);
}
TEST_P(MatrixRegisterTest, OtherwiseItIsLoops) {
  const PrimFunc workload = GroupedProduct(GetParam().intrinsic(), 16, 24, 80);
  ExpectComputes(InMatrixRegisters(workload, GetParam().intrinsic()), workload, HostTarget());
}
INSTANTIATE_TEST_SUITE_P(Rows, MatrixRegisterTest, ::testing::ValuesIn(InstructionsOnVectors(/*matrices=*/true)),
                         [](const auto& info) { return Mnemonic(info.param.instruction->function); });

}  // namespace
}  // namespace hone::testing
