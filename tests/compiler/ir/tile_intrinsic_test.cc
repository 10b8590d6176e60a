#include "compiler/ir/tile_intrinsic.h"

#include <optional>
#include <set>

#include "compiler/ir/structural.h"
#include "compiler/ir/text.h"
#include "compiler/ir/visit.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/ir/reads_back.h"

namespace hone {
namespace {

std::string Product(const std::string& op) {
  return R"(
@T.prim_func
def main(A: T.Buffer((2, 12, 64), "float32"), B: T.Buffer((64, 32), "float32"), D: T.Buffer((64, 32), "float64"),
         C: T.Buffer((12, 32), "float32")):
    for i in range(2):
        )" +
         op + "\n";
}
constexpr char kWhole[] =
    R"(T.tile_op("fma_tile_f32", C[i * 6:i * 6 + 6, 0:16], A[1, i * 6:i * 6 + 6, 0:64], B[0:64, 0:16], params={"lanes": 8}))";

PrimFunc Parsed(const std::string& op) {
  absl::StatusOr<PrimFunc> f = ParsePrimFunc(Product(op));
  EXPECT_TRUE(f.ok()) << f.status().ToString();
  return f.ok() ? *std::move(f) : PrimFunc{};
}
TileOp OpOf(const PrimFunc& f) {
  std::optional<TileOp> found;
  ForEachStmt(f.body, [&](const Stmt& s) {
    if (const TileOp* op = s.As<TileOp>()) found = *op;
    return true;
  });
  EXPECT_TRUE(found.has_value()) << ToText(f);
  return found.value_or(TileOp{});
}

TEST(TileIntrinsicTest, TableIsSound) {
  std::set<std::string> names;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_TRUE(Verify(row.meaning).ok()) << Verify(row.meaning).ToString();
    EXPECT_EQ(row.operands.size(), row.meaning.params.size());
    EXPECT_EQ(row.loops.size(), row.axes.size());
    for (const TileLoop& loop : row.loops) EXPECT_NE(row.FindAxis(loop.axis), nullptr) << loop.axis;
    for (const TileInstruction& instruction : row.instructions) {
      EXPECT_EQ(instruction.operands.size(), row.operands.size());
      for (const auto& [axis, extent] : instruction.extents) EXPECT_NE(row.FindAxis(axis), nullptr) << axis;
    }
  }
  EXPECT_EQ(FindTileIntrinsic("frob"), nullptr);
}

TEST(TileIntrinsicTest, PrintsParsesAndIsCompared) {
  const PrimFunc f = Parsed(kWhole);
  EXPECT_TRUE(Verify(f).ok()) << Verify(f).ToString();
  EXPECT_EQ(ReadBackError(f), "");
  const char* other_lanes =
      R"(T.tile_op("fma_tile_f32", C[i * 6:i * 6 + 6, 0:16], A[1, i * 6:i * 6 + 6, 0:64], B[0:64, 0:16], params={"lanes": 16}))";
  const char* other_region =
      R"(T.tile_op("fma_tile_f32", C[i * 6:i * 6 + 6, 0:16], A[0, i * 6:i * 6 + 6, 0:64], B[0:64, 0:16], params={"lanes": 8}))";
  EXPECT_FALSE(StructuralEqual(Parsed(other_lanes), f));
  EXPECT_FALSE(StructuralEqual(Parsed(other_region), f));
}

TEST(TileIntrinsicTest, MeaningIsTheLoopsOverItsRegions) {
  EXPECT_EQ(ToText(TileMeaning(OpOf(Parsed(kWhole)))),
            "for m, n, k in T.grid(6, 16, 64):\n"
            "    C[i * 6 + m, n] = C[i * 6 + m, n] + A[1, i * 6 + m, k] * B[k, n]\n");
}

struct UnfitCase {
  const char* name;
  const char* op;
  const char* message;
};
class UnfitTest : public testing::TestWithParam<UnfitCase> {};
TEST_P(UnfitTest, IsRefused) {
  EXPECT_THAT(std::string(Verify(Parsed(GetParam().op)).message()),
              testing::StartsWith(std::string("tile-op: function main: ") + GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(
    Cases, UnfitTest,
    testing::Values(
        UnfitCase{"Unknown", R"(T.tile_op("frob", C[0:6, 0:16]))",
                  "no intrinsic is called frob; there are fma_tile_f32, "},
        UnfitCase{"Count", R"(T.tile_op("fma_tile_f32", C[0:6, 0:16], A[0, 0:6, 0:64]))",
                  "fma_tile_f32 takes 3 operands, not 2"},
        UnfitCase{"Type", R"(T.tile_op("fma_tile_f32", C[0:6, 0:16], A[0, 0:6, 0:64], D[0:64, 0:16]))",
                  "fma_tile_f32: operand 2 (B) is float32, but D is float64"},
        UnfitCase{"Extent", R"(T.tile_op("fma_tile_f32", C[0:6, 0:16], A[0, 0:6, 0:64], B[0:63, 0:16]))",
                  "fma_tile_f32: operand 2 (B) takes 64 elements along dimension 0 of B, not 63"},
        UnfitCase{"Leading", R"(T.tile_op("fma_tile_f32", C[0:6, 0:16], A[0:2, 0:6, 0:64], B[0:64, 0:16]))",
                  "fma_tile_f32: operand 1 (A) takes 1 elements along dimension 0 of A, not 2"},
        UnfitCase{"Alias", R"(T.tile_op("fma_tile_f32", C[0:6, 0:16], C[0:6, 0:12], B[0:12, 0:16]))",
                  "fma_tile_f32: operand 1 is the buffer that operand 0 writes, C"},
        UnfitCase{"Param",
                  R"(T.tile_op("fma_tile_f32", C[0:6, 0:16], A[0, 0:6, 0:64], B[0:64, 0:16], params={"frob": 1}))",
                  "fma_tile_f32 has no param \"frob\""}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TileIntrinsicTest, AnInputIsNotWritten) {
  EXPECT_EQ(std::string(
                Verify(Parsed(R"(T.tile_op("fma_tile_f32", B[0:6, 0:16], A[0, 0:6, 0:12], C[0:12, 0:16]))")).message()),
            "input-written: function main: parameter B is an input");
}

TEST(TileIntrinsicTest, AnInstructionWantsItsFeatureItsExtentsAndWholePieces) {
  const auto dot = [](const std::string& regions) {
    absl::StatusOr<PrimFunc> f = ParsePrimFunc(
        "@T.prim_func\ndef main(A: T.Buffer((3, 4), \"uint8\"), B: T.Buffer((3, 32, 4), \"int8\"), "
        "C: T.Buffer((32,), \"int32\")):\n    T.tile_op(\"dot4_u8s8_s32\", " +
        regions + ")\n");
    EXPECT_TRUE(f.ok()) << f.status().ToString();
    EXPECT_TRUE(Verify(*f).ok()) << Verify(*f).ToString();
    return OpOf(*f);
  };
  const TileOp fits = dot("C[16:32], A[1, 0:4], B[1, 16:32, 0:4]");
  const TileInstruction* found = FindInstruction(fits, {"avx2", "avx512vnni"});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->function, "llvm.x86.avx512.vpdpbusd.512");
  EXPECT_EQ(FindInstruction(fits, {"avx2"}), nullptr);
  EXPECT_EQ(FindInstruction(dot("C[0:15], A[1, 0:4], B[1, 0:15, 0:4]"), {"avx512vnni"}), nullptr);
  EXPECT_EQ(FindInstruction(dot("C[0:8], A[1, 0:4], B[1, 0:8, 0:4]"), {"avx512vnni"})->function,
            "llvm.x86.avx512.vpdpbusd.256");
}

}  // namespace
}  // namespace hone
