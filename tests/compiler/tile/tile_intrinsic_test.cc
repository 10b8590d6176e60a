#include "compiler/tile/tile_intrinsic.h"

#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_split.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visit.h"
#include "compiler/text/text.h"
#include "compiler/verify/verify.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/text/reads_back.h"

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
    EXPECT_EQ(row.loops.size(), row.threads == 1 ? row.axes.size() : 0) << "no loops of one thread do what several do";
    for (const TileLoop& loop : row.loops) EXPECT_NE(row.FindAxis(loop.axis), nullptr) << loop.axis;
    EXPECT_TRUE(row.threads == 1 || row.instructions.size() == 1) << "nothing else does what a warp does together";
    for (const TileInstruction& instruction : row.instructions) {
      EXPECT_EQ(instruction.operands.size(), instruction.in_tiles ? 0 : row.operands.size());
      EXPECT_FALSE(instruction.feature.empty());
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
        UnfitCase{"Overwrites",
                  R"(T.tile_op("fma_tile_f32", C[0:6, 0:16], A[0, 0:6, 0:64], B[0:64, 0:16], accumulates=False))",
                  "fma_tile_f32 adds to its output; leave accumulates=False out"},
        UnfitCase{"Accumulates", R"(T.tile_op("zero_tile_f32", C[0:6, 0:16]))",
                  "zero_tile_f32 does not read its output; write accumulates=False"},
        UnfitCase{"Asynchronous", R"(T.tile_op("copy_async_4", C[0, 0:4], A[0, 0, 0:4], accumulates=False))",
                  "copy_async_4 goes on beside what follows it, which no tile operation does; write T.async_copy"},
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

TEST(TileIntrinsicTest, AsynchronousCopiesTakeEachByteFromGlobalToSharedMemory) {
  const std::map<int64_t, const TileIntrinsic*> copies = FindAsyncCopies({kAsyncCopyFeature});
  std::map<int64_t, std::string> functions;
  for (const auto& [bytes, row] : copies) {
    SCOPED_TRACE(row->name);
    functions[bytes] = row->instructions[0].function;
    EXPECT_EQ(row->token, AsyncToken::kGroup);
    EXPECT_EQ(row->threads, 1);
    EXPECT_EQ(row->operands[0].scope(), Scope::kShared);
    EXPECT_EQ(row->operands[1].scope(), Scope::kGlobal);
    EXPECT_FALSE(row->accumulates);
    ASSERT_EQ(row->axes.size(), 1u);
    EXPECT_TRUE(IsConst(row->axes[0].domain.extent, bytes));
    EXPECT_EQ(ToText(row->update), "D[n] = S[n]\n");
    for (const TileInstruction::Operand& operand : row->instructions[0].operands)
      EXPECT_EQ(operand.lanes * operand.type.bytes(), bytes);
  }
  // Past the first-level cache go 16 bytes, and no fewer.
  EXPECT_EQ(functions, (std::map<int64_t, std::string>{{4, "cp.async.ca.shared.global"},
                                                       {8, "cp.async.ca.shared.global"},
                                                       {16, "cp.async.cg.shared.global"}}));
  EXPECT_TRUE(FindAsyncCopies({kWarpProductFeature, kMatrixLoadFeature}).empty());
}

PrimFunc OnTiles(const std::string& op) {
  absl::StatusOr<PrimFunc> f = ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((3, 40, 128), "uint8"), B: T.Buffer((32, 40, 4), "int8"), D: T.Buffer((40, 40), "int32")):
    with T.block("root"):
        C = T.alloc_buffer((40, 40), "int32", scope="local")
        )" + op + "\n");
  EXPECT_TRUE(f.ok()) << f.status().ToString();
  return f.ok() ? *std::move(f) : PrimFunc{};
}

TEST(TileIntrinsicTest, AnOutputIsReadWhereItIsAccumulatedInto) {
  const auto reads = [](const std::string& op) {
    std::vector<std::string> names;
    const PrimFunc f = OnTiles("with T.block(\"tile\"):\n            " + op);
    ForEachStmt(f.body, [&](const Stmt& s) {
      const BlockRealize* realize = s.As<BlockRealize>();
      if (realize == nullptr || realize->block.name != "tile") return true;
      for (const BufferRegion& read : realize->block.reads) names.push_back(read.buffer.name());
      return false;
    });
    EXPECT_EQ(ReadBackError(f), "");
    EXPECT_TRUE(Verify(f).ok()) << Verify(f).ToString();
    return names;
  };
  EXPECT_THAT(reads(R"(T.tile_op("mma4_u8s8_s32", C[0:16, 0:16], A[0, 0:16, 0:64], B[0:16, 0:16, 0:4]))"),
              testing::ElementsAre("C", "A", "B"));
  EXPECT_THAT(reads(R"(T.tile_op("zero_tile_s32", C[0:16, 0:16], accumulates=False))"), testing::IsEmpty());
  EXPECT_THAT(reads(R"(T.tile_op("store_tile_s32", D[0:16, 0:16], C[0:16, 0:16], accumulates=False))"),
              testing::ElementsAre("C"));
}

// An element lies in the row of its first index, at the byte of the others: that is one to one where a whole operand
// fills the register.
TEST(TileIntrinsicTest, OperandsInTileRegistersFillOne) {
  int rows_seen = 0;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (!row.in_tiles()) continue;
    SCOPED_TRACE(row.name);
    ++rows_seen;
    for (const Buffer& operand : row.operands) {
      const std::map<std::string, int64_t>& most = row.instructions[0].extents;
      const auto size = [&](const Expr& extent) {
        return *ConstantValue(Substitute(extent, [&](const Var& var) -> std::optional<Expr> {
          const int64_t group = row.operands.size() < 3 ? 1 : *ConstantValue(row.operands[2].shape().back());
          return IntConst(var.name() == "groups" ? most.at("k") / group : most.at(var.name()));
        }));
      };
      int64_t in_row = operand.type().bytes();
      for (size_t d = 1; d < operand.shape().size(); ++d) in_row *= size(operand.shape()[d]);
      EXPECT_EQ(size(operand.shape()[0]), kTileRows) << operand.name();
      EXPECT_EQ(in_row, kTileRowBytes) << operand.name();
    }
  }
  EXPECT_GE(rows_seen, 9);
}

// The same of matrices in vector registers: lane `row * columns + column` holds each element once.
TEST(TileIntrinsicTest, MatricesFillAVectorRegister) {
  int matrices_seen = 0;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    if (!row.in_rows() || row.in_tiles()) continue;
    SCOPED_TRACE(row.name);
    for (const TileInstruction& instruction : row.instructions) {
      for (size_t i = 0; i < row.operands.size(); ++i) {
        const Buffer& operand = row.operands[i];
        const auto size = [&](const Expr& extent) {
          return *ConstantValue(Substitute(extent, [&](const Var& var) -> std::optional<Expr> {
            const int64_t group = *ConstantValue(row.operands[2].shape().back());
            return IntConst(var.name() == "groups" ? instruction.extents.at("k") / group
                                                   : instruction.extents.at(var.name()));
          }));
        };
        int64_t elements = 1;
        for (const Expr& extent : operand.shape()) elements *= size(extent);
        EXPECT_EQ(elements, instruction.operands[i].lanes) << operand.name();
        EXPECT_EQ(elements * operand.type().bytes(), 16) << operand.name();
        EXPECT_EQ(size(operand.shape()[0]), instruction.operands[i].rows) << operand.name();
        ++matrices_seen;
      }
    }
  }
  EXPECT_GE(matrices_seen, 4 * 3);
}

TEST(TileIntrinsicTest, MatricesInVectorRegistersMayHaveRowsApart) {
  const auto find = [](const std::string& regions, const std::vector<std::string>& features) {
    absl::StatusOr<PrimFunc> f = ParsePrimFunc(
        "@T.prim_func\ndef main(A: T.Buffer((5, 24), \"int8\"), B: T.Buffer((3, 6, 8), \"int8\"), "
        "C: T.Buffer((5, 6), \"int32\")):\n    T.tile_op(\"mma8_s8s8_s32\", " +
        regions + ")\n");
    EXPECT_TRUE(f.ok()) << f.status().ToString();
    EXPECT_TRUE(Verify(*f).ok()) << Verify(*f).ToString();
    return FindInstruction(OpOf(*f), features);
  };
  const char* fits = "C[1:3, 4:6], A[3:5, 8:16], B[2:3, 1:3, 0:8]";
  ASSERT_NE(find(fits, {"i8mm"}), nullptr);
  EXPECT_EQ(find(fits, {"i8mm"})->function, "llvm.aarch64.neon.smmla.v4i32.v16i8");
  EXPECT_EQ(find(fits, {"dotprod"}), nullptr);
  EXPECT_EQ(find("C[1:2, 4:6], A[3:4, 8:16], B[2:3, 1:3, 0:8]", {"i8mm"}), nullptr) << "one row";
  EXPECT_EQ(find("C[1:3, 0:4], A[3:5, 8:16], B[2:3, 1:5, 0:8]", {"i8mm"}), nullptr) << "four columns";
  EXPECT_EQ(find("C[1:3, 4:6], A[3:5, 0:16], B[1:3, 1:3, 0:8]", {"i8mm"}), nullptr) << "two groups";
}

TEST(TileIntrinsicTest, TileRegistersWantSumsInRegistersAndRowsInOnePiece) {
  const std::vector<std::string> features = {"amx-tile", "amx-int8"};
  const auto find = [&](const std::string& regions) {
    const PrimFunc f = OnTiles("T.tile_op(\"mma4_u8s8_s32\", " + regions + ")");
    EXPECT_TRUE(Verify(f).ok()) << Verify(f).ToString();
    return FindInstruction(OpOf(f), features);
  };
  const char* fits = "C[16:32, 0:16], A[1, 3:19, 64:128], B[16:32, 8:24, 0:4]";
  ASSERT_NE(find(fits), nullptr);
  EXPECT_EQ(find(fits)->function, "llvm.x86.tdpbusd");
  EXPECT_NE(find("C[16:23, 0:8], A[1, 3:10, 0:32], B[0:8, 8:16, 0:4]"), nullptr);  // smaller ones
  EXPECT_EQ(find("D[16:32, 0:16], A[1, 3:19, 64:128], B[16:32, 8:24, 0:4]"), nullptr);
  EXPECT_EQ(find("C[0:17, 0:16], A[1, 3:20, 64:128], B[16:32, 8:24, 0:4]"), nullptr);
  EXPECT_EQ(find("C[0:16, 0:17], A[1, 3:19, 64:128], B[16:32, 8:25, 0:4]"), nullptr);
  EXPECT_EQ(find("C[0:16, 0:16], A[1, 3:19, 0:128], B[0:32, 8:24, 0:4]"), nullptr);
  const PrimFunc f = OnTiles(std::string("T.tile_op(\"mma4_u8s8_s32\", ") + fits + ")");
  EXPECT_EQ(FindInstruction(OpOf(f), {"amx-tile", "avx512vnni"}), nullptr);
}

struct DotCase {
  const char* name;
  ProductShape shape;
  const char* features;
  const char* intrinsic;  // "": none
  int64_t rows, depth;
};
class FindDotTest : public testing::TestWithParam<DotCase> {};
TEST_P(FindDotTest, TakesTheOneThatAddsMost) {
  const DotCase& c = GetParam();
  const std::optional<DotProduct> found = FindDotProduct(c.shape, absl::StrSplit(c.features, ','));
  if (*c.intrinsic == '\0') {
    EXPECT_FALSE(found.has_value()) << found->intrinsic->name;
    return;
  }
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->intrinsic->name, c.intrinsic);
  EXPECT_EQ(found->rows, c.rows);
  EXPECT_EQ(found->depth, c.depth);
}
constexpr DType kBFloat16 = DType::BFloat16();
constexpr DType kUInt8 = DType::UInt(8), kInt8 = DType::Int(8);
constexpr char kAmx[] = "avx512vnni,amx-int8,amx-bf16", kArmMatrices[] = "dotprod,i8mm,bf16";
ProductShape Bytes(int64_t rows, int64_t columns, int64_t depth) {
  return {kInt32, kUInt8, kInt8, rows, columns, depth};
}
INSTANTIATE_TEST_SUITE_P(
    Cases, FindDotTest,
    testing::Values(
        DotCase{"Whole", Bytes(512, 64, 256), kAmx, "mma4_u8s8_s32", 16, 64},
        DotCase{"OfDivisors", Bytes(28, 64, 96), kAmx, "mma4_u8s8_s32", 14, 48},
        DotCase{"RowsThatDivideNothing", Bytes(197, 64, 256), kAmx, "dot4_u8s8_s32", 1, 4},
        DotCase{"OneRow", Bytes(1, 64, 256), kAmx, "dot4_u8s8_s32", 1, 4},
        DotCase{"OddColumns", Bytes(64, 24, 256), kAmx, "dot4_u8s8_s32", 1, 4},
        DotCase{"WithoutTheFeature", Bytes(64, 64, 256), "avx512vnni", "dot4_u8s8_s32", 1, 4},
        DotCase{"Shallow", Bytes(64, 64, 8), kAmx, "dot4_u8s8_s32", 1, 4},
        DotCase{"OddDepth", Bytes(64, 64, 63), kAmx, "", 0, 0},
        DotCase{"Matrices", Bytes(64, 64, 64), kArmMatrices, "mma8_u8s8_s32", 2, 8},
        DotCase{"MatricesOfOddRows", Bytes(7, 64, 64), kArmMatrices, "dot4_u8s8_s32", 1, 4},
        DotCase{"MatricesOfFewTerms", Bytes(64, 64, 12), kArmMatrices, "dot4_u8s8_s32", 1, 4},
        DotCase{"MatricesOfSigned", {kInt32, kInt8, kInt8, 64, 64, 64}, kArmMatrices, "mma8_s8s8_s32", 2, 8},
        DotCase{"MatricesOfBFloat", {kFloat32, kBFloat16, kBFloat16, 64, 64, 64}, kArmMatrices, "mma4_bf16_f32", 2, 4},
        DotCase{"BFloat", {kFloat32, kBFloat16, kBFloat16, 64, 64, 64}, kAmx, "mma2_bf16_f32", 16, 32}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone
