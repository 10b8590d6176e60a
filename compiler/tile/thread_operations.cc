// What one thread does by itself: the register tile, vectors that a tile adds to its sums, products of narrow types
// that an instruction adds several of at once, and those on the tile registers of matrix instructions.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/tile/tile_intrinsic_rows.h"

namespace hone {
namespace {

constexpr int kMatrixBits = 128;  // of a register that holds a matrix of NEON's

// C[m, n] += A[m, k] * B[k, n]: the register tile, a block of rows times vectors that stays in registers along k.
constexpr char kFmaTile[] = R"(
@T.prim_func
def fma_tile(m: T.int32, n: T.int32, k: T.int32, A: T.Buffer((m, k), "TYPE"), B: T.Buffer((k, n), "TYPE"),
             C: T.Buffer((m, n), "TYPE")):
    for i, j, l in T.grid(m, n, k):
        with T.block("fma_tile"):
            vm, vn, vk = T.axis.remap("SSR", [i, j, l])
            C[vm, vn] = C[vm, vn] + A[vm, vk] * B[vk, vn]
)";

// C[n] += A * B[n]: a vector of a tile that the loops around it make, whose rows may be any places of A: those of a
// convolution, which has two variables of rows, steps between them and borders.
//
// This row and the next name no instruction, llvm.fma: it would round once where CompileOptions::fuse forbids that, be
// a call of fmaf on targets without the instruction, and leave the masks of a tile's edge to the code generator. What
// lowering makes of them, multiplications and additions that may be contracted, is the same code already: each is one
// instruction and sums stay in registers (tests/tuner/space/hot_loops_test.cc).
constexpr char kAxpy[] = R"(
@T.prim_func
def axpy(n: T.int32, A: T.Buffer((), "TYPE"), B: T.Buffer((n,), "TYPE"), C: T.Buffer((n,), "TYPE")):
    for j in range(n):
        with T.block("axpy"):
            vn = T.axis.spatial(n, j)
            C[vn] = C[vn] + A[()] * B[vn]
)";

// C[n] += A[n] * B[n]: where both factors move along the vector, as those of a depthwise convolution.
constexpr char kFma[] = R"(
@T.prim_func
def fma(n: T.int32, A: T.Buffer((n,), "TYPE"), B: T.Buffer((n,), "TYPE"), C: T.Buffer((n,), "TYPE")):
    for j in range(n):
        with T.block("fma"):
            vn = T.axis.spatial(n, j)
            C[vn] = C[vn] + A[vn] * B[vn]
)";

// C[n] += sum of GROUP products A[GROUP] * B[n, GROUP], in 32 bits.
constexpr char kDot[] = R"(
@T.prim_func
def dot(n: T.int32, A: T.Buffer((GROUP,), "LEFT"), B: T.Buffer((n, GROUP), "RIGHT"), C: T.Buffer((n,), "SUM")):
    for j, l in T.grid(n, GROUP):
        with T.block("dot"):
            vn, vl = T.axis.remap("SR", [j, l])
            C[vn] = C[vn] + T.Cast("SUM", A[vl]) * T.Cast("SUM", B[vn, vl])
)";

// Rows of sums in registers. C[m, n] += A[m, k] * B[k, n], where B has GROUP elements of k side by side.
constexpr char kMma[] = R"(
@T.prim_func
def mma(m: T.int32, n: T.int32, groups: T.int32, A: T.Buffer((m, groups * GROUP), "LEFT"),
        B: T.Buffer((groups, n, GROUP), "RIGHT"), C: T.Buffer((m, n), "SUM")):
    for i, j, l in T.grid(m, n, groups * GROUP):
        with T.block("mma"):
            vm, vn, vk = T.axis.remap("SSR", [i, j, l])
            C[vm, vn] = C[vm, vn] + T.Cast("SUM", A[vm, vk]) * T.Cast("SUM", B[vk // GROUP, vn, vk % GROUP])
)";
constexpr char kZeroTile[] = R"(
@T.prim_func
def zero_tile(m: T.int32, n: T.int32, C: T.Buffer((m, n), "SUM")):
    for i, j in T.grid(m, n):
        with T.block("zero_tile"):
            vm, vn = T.axis.remap("SS", [i, j])
            C[vm, vn] = T.SUM(0)
)";
constexpr char kStoreTile[] = R"(
@T.prim_func
def store_tile(m: T.int32, n: T.int32, C: T.Buffer((m, n), "SUM"), D: T.Buffer((m, n), "SUM")):
    for i, j in T.grid(m, n):
        with T.block("store_tile"):
            vm, vn = T.axis.remap("SS", [i, j])
            D[vm, vn] = C[vm, vn]
)";

// Instructions that multiply the four bytes of a lane, or its two int16, by those of A and add the products to 32 bits.
// `as_bytes`: how LLVM has them passed.
TileInstruction DotOfLane(const char* feature, const char* function, int lanes, bool as_bytes) {
  const DType type = DType::Int(as_bytes ? 8 : 32);
  const int width = as_bytes ? 4 * lanes : lanes;
  return {feature, function, {{"n", lanes}}, {{kInt32, lanes}, {type, width, 32}, {type, width}}};
}

// The same of pairs of bfloat16 and sums in float32. Denormal numbers count as 0 (Intel SDM, VDPBF16PS; Arm ARM, BFDOT,
// which also rounds to odd).
TileInstruction Dot2Bfloat16(const char* feature, const char* function, int lanes) {
  const DType type = DType::BFloat16();
  return {feature, function, {{"n", lanes}}, {{kFloat32, lanes}, {type, 2 * lanes, 32}, {type, 2 * lanes}}};
}

// The product of pairs of 16 bits, exact in 32, of bytes that are extended first.
TileInstruction WidenedDot2(const char* feature, const char* function, int lanes) {
  const DType type = DType::Int(16);
  return {feature,
          function,
          {{"n", lanes}},
          {{kInt32, lanes}, {type, 2 * lanes, 16, true}, {type, 2 * lanes, 0, true}},
          true};
}

// .. of elements that are 16 bits in memory.
TileInstruction Dot2Int16(const char* feature, const char* function, int lanes) {
  const DType type = DType::Int(16);
  return {feature, function, {{"n", lanes}}, {{kInt32, lanes}, {type, 2 * lanes, 32}, {type, 2 * lanes}}, true};
}

// One product of int16 a lane, which the instruction widens itself: twice as fast as one of 32 bits on cores that
// multiply 64 bits of a vector at a time (Arm Cortex-A72 Software Optimization Guide, ASIMD multiply accumulate).
TileInstruction LongProduct(const char* feature, const char* mnemonic, int lanes) {
  const DType type = DType::Int(16);
  TileInstruction product{feature, mnemonic, {{"n", lanes}}, {{kInt32, lanes}, {type, lanes, 16}, {type, lanes}}, true};
  product.multiplies = true;
  return product;
}

// An instruction on matrices in vector registers (Arm ARM, SMMLA and BFMMLA): of A two rows of GROUP elements, of B two
// columns one behind the other, of the sums two rows of two.
TileInstruction MmlaOf(const char* feature, const char* function, DType type, DType sum) {
  const int lanes = kMatrixBits / type.bits, group = lanes / 2;
  return {feature,
          function,
          {{"m", 2}, {"n", 2}, {"k", group}},
          {{.type = sum, .lanes = 4, .rows = 2},
           {.type = type, .lanes = lanes, .rows = 2},
           {.type = type, .lanes = lanes}}};
}

// An instruction on tile registers, of as many sums as one holds. A product takes a cycle for each row and a latency of
// 52 (Intel's optimisation manual, chapter 20).
TileInstruction InTiles(const char* feature, const char* function, std::map<std::string, int64_t> extents = {}) {
  extents.insert({{"m", kTileRows}, {"n", kTileRowBytes / 4}});
  return {feature, function, std::move(extents), {}, false, true, kTileRows, 52};
}

TileIntrinsic FmaTile(const char* name, const char* type) {
  return MakeTileIntrinsic(name, absl::StrReplaceAll(kFmaTile, {{"TYPE", type}}),
                           {{"k", ForKind::kSerial}, {"m", ForKind::kUnrolled}, {"n", ForKind::kVectorized}});
}

TileIntrinsic OfVectors(std::string name, const char* text, const char* type) {
  return MakeTileIntrinsic(std::move(name), absl::StrReplaceAll(text, {{"TYPE", type}}), {{"n", ForKind::kVectorized}});
}

TileIntrinsic Dot(const char* name, const char* group, const char* left, const char* right, const char* sum,
                  std::vector<TileInstruction> instructions) {
  return MakeTileIntrinsic(
      name, absl::StrReplaceAll(kDot, {{"GROUP", group}, {"LEFT", left}, {"RIGHT", right}, {"SUM", sum}}),
      {{"l", ForKind::kUnrolled}, {"n", ForKind::kVectorized}}, std::move(instructions));
}

TileIntrinsic Mma(const char* name, const char* group, const char* left, const char* right, const char* sum,
                  TileInstruction instruction) {
  return MakeTileIntrinsic(
      name, absl::StrReplaceAll(kMma, {{"GROUP", group}, {"LEFT", left}, {"RIGHT", right}, {"SUM", sum}}),
      {{"k", ForKind::kSerial}, {"m", ForKind::kUnrolled}, {"n", ForKind::kVectorized}}, {std::move(instruction)});
}

TileIntrinsic OnSums(const char* name, const char* text, const char* sum, const char* function) {
  return MakeTileIntrinsic(name, absl::StrReplaceAll(text, {{"SUM", sum}}),
                           {{"m", ForKind::kUnrolled}, {"n", ForKind::kVectorized}}, {InTiles("amx-tile", function)});
}

}  // namespace

std::vector<TileIntrinsic> ThreadOperations() {
  const std::vector<TileInstruction> widened = {WidenedDot2("avx512bw", "llvm.x86.avx512.pmaddw.d.512", 16),
                                                WidenedDot2("avx2", "llvm.x86.avx2.pmadd.wd", 8)};
  std::vector<TileIntrinsic> table;
  table.push_back(FmaTile("fma_tile_f32", "float32"));
  table.push_back(FmaTile("fma_tile_f64", "float64"));
  table.push_back(FmaTile("fma_tile_s32", "int32"));
  for (const auto& [type, suffix] :
       {std::pair("float32", "f32"), {"float64", "f64"}, {"float16", "f16"}, {"int32", "s32"}}) {
    table.push_back(OfVectors(absl::StrCat("axpy_", suffix), kAxpy, type));
    table.push_back(OfVectors(absl::StrCat("fma_", suffix), kFma, type));
  }
  // The names with avx512 are those of AVX-VNNI's as well.
  table.push_back(Dot("dot4_u8s8_s32", "4", "uint8", "int8", "int32",
                      {DotOfLane("avx512vnni", "llvm.x86.avx512.vpdpbusd.512", 16, false),
                       DotOfLane("avx512vnni", "llvm.x86.avx512.vpdpbusd.256", 8, false),
                       DotOfLane("avx512vnni", "llvm.x86.avx512.vpdpbusd.128", 4, false),
                       DotOfLane("avxvnni", "llvm.x86.avx512.vpdpbusd.256", 8, false),
                       DotOfLane("avxvnni", "llvm.x86.avx512.vpdpbusd.128", 4, false),
                       DotOfLane("i8mm", "llvm.aarch64.neon.usdot.v4i32.v16i8", 4, true)}));
  table.push_back(Dot("dot4_s8s8_s32", "4", "int8", "int8", "int32",
                      {DotOfLane("dotprod", "llvm.aarch64.neon.sdot.v4i32.v16i8", 4, true)}));
  table.push_back(Dot("dot4_u8u8_s32", "4", "uint8", "uint8", "int32",
                      {DotOfLane("dotprod", "llvm.aarch64.neon.udot.v4i32.v16i8", 4, true)}));
  table.push_back(Dot("dot2_u8s8_s32", "2", "uint8", "int8", "int32", widened));
  table.push_back(Dot("dot2_s8s8_s32", "2", "int8", "int8", "int32", widened));
  table.push_back(Dot("dot2_u8u8_s32", "2", "uint8", "uint8", "int32", widened));
  table.push_back(Dot("dot2_s8u8_s32", "2", "int8", "uint8", "int32", widened));
  table.push_back(
      Dot("dot2_s16s16_s32", "2", "int16", "int16", "int32",
          {DotOfLane("avx512vnni", "llvm.x86.avx512.vpdpwssd.512", 16, false),
           DotOfLane("avx512vnni", "llvm.x86.avx512.vpdpwssd.256", 8, false),
           DotOfLane("avxvnni", "llvm.x86.avx512.vpdpwssd.256", 8, false),
           Dot2Int16("avx512bw", "llvm.x86.avx512.pmaddw.d.512", 16), Dot2Int16("avx2", "llvm.x86.avx2.pmadd.wd", 8)}));
  table.push_back(
      Dot("dot1_s16s16_s32", "1", "int16", "int16", "int32",
          {LongProduct("zvl256b", "vwmacc", 8), LongProduct("v", "vwmacc", 4), LongProduct("neon", "smlal", 4)}));
  table.push_back(Dot("dot2_bf16_f32", "2", "bfloat16", "bfloat16", "float32",
                      {Dot2Bfloat16("avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.512", 16),
                       Dot2Bfloat16("avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.256", 8),
                       Dot2Bfloat16("avx512bf16", "llvm.x86.avx512bf16.dpbf16ps.128", 4),
                       Dot2Bfloat16("bf16", "llvm.aarch64.neon.bfdot.v4f32.v8bf16", 4)}));
  const auto mma8 = [&](const char* name, const char* left, const char* right, const char* function) {
    table.push_back(Mma(name, "8", left, right, "int32", MmlaOf("i8mm", function, DType::Int(8), kInt32)));
  };
  mma8("mma8_s8s8_s32", "int8", "int8", "llvm.aarch64.neon.smmla.v4i32.v16i8");
  mma8("mma8_u8u8_s32", "uint8", "uint8", "llvm.aarch64.neon.ummla.v4i32.v16i8");
  mma8("mma8_u8s8_s32", "uint8", "int8", "llvm.aarch64.neon.usmmla.v4i32.v16i8");
  table.push_back(Mma("mma4_bf16_f32", "4", "bfloat16", "bfloat16", "float32",
                      MmlaOf("bf16", "llvm.aarch64.neon.bfmmla", DType::BFloat16(), kFloat32)));
  const auto mma4 = [&](const char* name, const char* left, const char* right, const char* function) {
    table.push_back(Mma(name, "4", left, right, "int32", InTiles("amx-int8", function, {{"k", kTileRowBytes}})));
  };
  mma4("mma4_u8s8_s32", "uint8", "int8", "llvm.x86.tdpbusd");
  mma4("mma4_s8s8_s32", "int8", "int8", "llvm.x86.tdpbssd");
  mma4("mma4_u8u8_s32", "uint8", "uint8", "llvm.x86.tdpbuud");
  mma4("mma4_s8u8_s32", "int8", "uint8", "llvm.x86.tdpbsud");
  table.push_back(Mma("mma2_bf16_f32", "2", "bfloat16", "bfloat16", "float32",
                      InTiles("amx-bf16", "llvm.x86.tdpbf16ps", {{"k", kTileRowBytes / 2}})));
  table.push_back(OnSums("zero_tile_s32", kZeroTile, "int32", "llvm.x86.tilezero"));
  table.push_back(OnSums("zero_tile_f32", kZeroTile, "float32", "llvm.x86.tilezero"));
  table.push_back(OnSums("store_tile_s32", kStoreTile, "int32", "llvm.x86.tilestored64"));
  table.push_back(OnSums("store_tile_f32", kStoreTile, "float32", "llvm.x86.tilestored64"));
  return table;
}

}  // namespace hone
