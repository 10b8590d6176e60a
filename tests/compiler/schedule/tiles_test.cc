// blockize, tensorize, register_tile.
#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/primitives/blockize.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/register_tile.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/tensorize.h"
#include "compiler/te/te.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

struct Nest {
  PrimFunc workload;
  Schedule s;
  BlockRef block;
  std::vector<LoopRef> loops;
  explicit Nest(PrimFunc f, const char* name = "C")
      : workload(f), s(std::move(f)), block(Get(GetBlock(s, name))), loops(Get(GetLoops(s, block))) {}
  // i and j in tiles, k whole inside them.
  explicit Nest(int64_t m, int64_t n, int64_t k, int64_t rows, int64_t columns) : Nest(Matmul(m, n, k)) {
    const std::vector<LoopRef> i = Get(Split(s, loops[0], {-1, rows})), j = Get(Split(s, loops[1], {-1, columns}));
    Do(Reorder(s, {i[0], j[0], loops[2], i[1], j[1]}));
    loops = {i[0], j[0], loops[2], i[1], j[1]};
  }
};

TEST(Blockize, MakesABlockOfTiles) {
  Nest n(8, 6, 5, 4, 3);
  EXPECT_EQ(Get(n.s.FindBlock(Get(Blockize(n.s, n.loops[3]))))->block.name, "C_o");
  ExpectBody(n.s, R"(
for i_0, j_0, k in T.grid(2, 2, 5):
    with T.block("C_o"):
        v_i_o, v_j_o, v_k_o = T.axis.remap("SSR", [i_0, j_0, k])
        T.reads(A[v_i_o * 4:v_i_o * 4 + 4, v_k_o], B[v_k_o, v_j_o * 3:v_j_o * 3 + 3])
        T.writes(C[v_i_o * 4:v_i_o * 4 + 4, v_j_o * 3:v_j_o * 3 + 3])
        with T.init():
            for i_1_init, j_1_init in T.grid(4, 3):
                C[v_i_o * 4 + i_1_init, v_j_o * 3 + j_1_init] = T.float32(0)
        for i_1, j_1 in T.grid(4, 3):
            with T.block("C"):
                v_i = T.axis.spatial(8, v_i_o * 4 + i_1)
                v_j = T.axis.spatial(6, v_j_o * 3 + j_1)
                v_k = T.axis.reduce(5, v_k_o)
                T.reads(A[v_i, v_k], B[v_k, v_j], C[v_i, v_j])
                T.writes(C[v_i, v_j])
                C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
)");
  ExpectSound(n.s, n.workload);
}

TEST(Blockize, KeepsTheTailInTheTile) {
  Nest n(7, 6, 5, 4, 4);
  Get(Blockize(n.s, n.loops[2]));
  ExpectBody(n.s, R"(
for i_0, j_0 in T.grid(2, 2):
    with T.block("C_o"):
        v_i_o, v_j_o = T.axis.remap("SS", [i_0, j_0])
        v_k_o = T.axis.reduce(1, 0)
        T.reads(A[v_i_o * 4:v_i_o * 4 + T.min(7 - v_i_o * 4, 4), 0:5], B[0:5, v_j_o * 4:v_j_o * 4 + T.min(6 - v_j_o * 4, 4)])
        T.writes(C[v_i_o * 4:v_i_o * 4 + T.min(7 - v_i_o * 4, 4), v_j_o * 4:v_j_o * 4 + T.min(6 - v_j_o * 4, 4)])
        with T.init():
            for i_1_init, j_1_init in T.grid(4, 4):
                if v_i_o * 4 + i_1_init < 7 and v_j_o * 4 + j_1_init < 6:
                    C[v_i_o * 4 + i_1_init, v_j_o * 4 + j_1_init] = T.float32(0)
        for k, i_1, j_1 in T.grid(5, 4, 4):
            with T.block("C"):
                v_i = T.axis.spatial(7, v_i_o * 4 + i_1)
                v_j = T.axis.spatial(6, v_j_o * 4 + j_1)
                v_k = T.axis.reduce(5, k)
                T.where(v_i_o * 4 + i_1 < 7 and v_j_o * 4 + j_1 < 6)
                T.reads(A[v_i, v_k], B[v_k, v_j], C[v_i, v_j])
                T.writes(C[v_i, v_j])
                C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
)");
  ExpectSound(n.s, n.workload);
}

TEST(Blockize, SaysWhyNot) {
  Nest n(8, 6, 5, 4, 3);
  const std::vector<LoopRef> again = Get(Split(n.s, n.loops[3], {2, 2}));
  Do(Reorder(n.s, {n.loops[4], again[0]}));
  Nest odd(TwoElementwise(4, 6), "B");
  Do(Vectorize(odd.s, odd.loops[1]));
  EXPECT_EQ(std::string(Blockize(odd.s, odd.loops[0]).status().message()),
            "blockize(i): loop j is vectorized; do this before it is made so");
  Nest fused(TwoElementwise(4, 6), "B");
  const LoopRef one = Get(Fuse(fused.s, fused.loops));
  EXPECT_EQ(std::string(Blockize(fused.s, one).status().message()),
            "blockize(i_j_fused): v_i of block B is bound to i_j_fused // 6, which is no sum of the loops inside");
  Nest gaps(Matmul(8, 6, 5));
  const std::vector<LoopRef> i = Get(Split(gaps.s, gaps.loops[0], {4, 2}));
  Do(Reorder(gaps.s, {i[1], i[0]}));
  EXPECT_EQ(std::string(Blockize(gaps.s, i[0]).status().message()),
            "blockize(i_0): v_i of block C is bound to i_0 * 2 + i_1, whose values in one tile are not neighbours");
}

TEST(RegisterTile, BecomesATileOperation) {
  Nest n(12, 32, 5, 6, 16);
  Do(RegisterTile(n.s, n.loops[2], 8, 1));
  ExpectBody(n.s, R"(
for i_0, j_0 in T.grid(2, 2):
    with T.block("C"):
        v_i_o, v_j_o = T.axis.remap("SS", [i_0, j_0])
        v_k_o = T.axis.reduce(1, 0)
        T.reads(A[v_i_o * 6:v_i_o * 6 + 6, 0:5], B[0:5, v_j_o * 16:v_j_o * 16 + 16])
        T.writes(C[v_i_o * 6:v_i_o * 6 + 6, v_j_o * 16:v_j_o * 16 + 16])
        with T.init():
            for i_1_init, j_1_init in T.grid(6, 16):
                C[v_i_o * 6 + i_1_init, v_j_o * 16 + j_1_init] = T.float32(0)
        T.tile_op("fma_tile_f32", C[v_i_o * 6:v_i_o * 6 + 6, v_j_o * 16:v_j_o * 16 + 16], A[v_i_o * 6:v_i_o * 6 + 6, 0:5], B[0:5, v_j_o * 16:v_j_o * 16 + 16], params={"lanes": 8})
)");
  ExpectSound(n.s, n.workload);
}

TEST(RegisterTile, MasksTheTails) {
  Nest n(7, 19, 5, 4, 8);
  Do(DecomposeReduction(n.s, n.block, n.loops[2]).status());
  Do(RegisterTile(n.s, n.loops[2], 0, 2));
  ExpectBody(n.s, R"(
for i_0, j_0 in T.grid(2, 3):
    for i_1_init, j_1_init in T.grid(4, 8):
        with T.block("C_init"):
            v_i = T.axis.spatial(7, i_0 * 4 + i_1_init)
            v_j = T.axis.spatial(19, j_0 * 8 + j_1_init)
            T.where(i_0 * 4 + i_1_init < 7 and j_0 * 8 + j_1_init < 19)
            T.reads()
            T.writes(C[v_i, v_j])
            C[v_i, v_j] = T.float32(0)
    with T.block("C"):
        v_i_o, v_j_o = T.axis.remap("SS", [i_0, j_0])
        v_k_o = T.axis.reduce(1, 0)
        T.reads(A[v_i_o * 4:v_i_o * 4 + T.min(7 - v_i_o * 4, 4), 0:5], B[0:5, v_j_o * 8:v_j_o * 8 + T.min(19 - v_j_o * 8, 8)], C[v_i_o * 4:v_i_o * 4 + T.min(7 - v_i_o * 4, 4), v_j_o * 8:v_j_o * 8 + T.min(19 - v_j_o * 8, 8)])
        T.writes(C[v_i_o * 4:v_i_o * 4 + T.min(7 - v_i_o * 4, 4), v_j_o * 8:v_j_o * 8 + T.min(19 - v_j_o * 8, 8)])
        T.tile_op("fma_tile_f32", C[v_i_o * 4:v_i_o * 4 + T.min(7 - v_i_o * 4, 4), v_j_o * 8:v_j_o * 8 + T.min(19 - v_j_o * 8, 8)], A[v_i_o * 4:v_i_o * 4 + T.min(7 - v_i_o * 4, 4), 0:5], B[0:5, v_j_o * 8:v_j_o * 8 + T.min(19 - v_j_o * 8, 8)], params={"m": 4, "n": 8, "unroll": 2})
)");
  ExpectSound(n.s, n.workload);
}

TEST(RegisterTile, TakesAnyShape) {
  for (const auto& [m, n, k, rows, columns] :
       std::vector<std::array<int64_t, 5>>{{1, 1, 1, 1, 1}, {1, 7, 3, 1, 16}, {5, 1, 13, 2, 1}, {13, 11, 7, 6, 32}}) {
    Nest nest(m, n, k, rows, columns);
    Do(RegisterTile(nest.s, nest.loops[2], 0, 1));
    ExpectSound(nest.s, nest.workload);
  }
}

TEST(RegisterTile, SaysWhyNot) {
  Nest n(64, 64, 5, 64, 64);
  EXPECT_EQ(std::string(RegisterTile(n.s, n.loops[2], 0, 1).message()),
            "register_tile(k): a tile has 4096 elements, registers hold no more than 1024; split the loops and tile an "
            "inner one");
  EXPECT_EQ(std::string(RegisterTile(n.s, n.loops[2], -1, 1).message()),
            "register_tile(k): lanes is -1, not from 0 to 64");
  Nest other(TwoElementwise(4, 6), "B");
  EXPECT_EQ(
      std::string(RegisterTile(other.s, other.loops[0], 0, 1).message()),
      "register_tile(i): block B does not do what fma_tile_f32 means: it computes A[v_i, v_j] * T.float32(2) where "
      "the intrinsic has another operation");
  Nest rows(8, 6, 5, 4, 3);
  Do(Parallel(rows.s, rows.loops[3]));
  EXPECT_EQ(std::string(RegisterTile(rows.s, rows.loops[2], 0, 1).message()),
            "register_tile(k): loop i_1 is parallel; do this before it is made so");
}

// C[j] += A[4 * k + l] * B[k, j, l] over bytes, l of four.
PrimFunc ByteDot(int64_t columns, int64_t groups) {
  const te::Tensor a = te::Placeholder({groups, 4}, DType::UInt(8), "A"),
                   b = te::Placeholder({groups, columns, 4}, DType::Int(8), "B");
  const te::ReduceAxis k(groups, "k"), l(4, "l");
  const te::Tensor c =
      te::Compute({columns},
                  [&](const te::Indices& i) {
                    return te::Sum(MakeCast(kInt32, a(k, l)) * MakeCast(kInt32, b(k, i[0], l)), {k, l});
                  },
                  "C", {.axes = {"j"}});
  return te::CreatePrimFunc({a, b}, {c}, "main");
}

TEST(Tensorize, ABlockThatIsTheIntrinsic) {
  Nest n(ByteDot(32, 3));
  const std::vector<LoopRef> j = Get(Split(n.s, n.loops[0], {-1, 16}));
  Do(Reorder(n.s, {j[0], n.loops[1], j[1], n.loops[2]}));
  Do(Tensorize(n.s, j[1], "dot4_u8s8_s32"));
  ExpectBody(n.s, R"(
for j_0, k in T.grid(2, 3):
    with T.block("C"):
        v_j_o, v_k_o = T.axis.remap("SR", [j_0, k])
        v_l_o = T.axis.reduce(1, 0)
        T.reads(B[v_k_o, v_j_o * 16:v_j_o * 16 + 16, 0:4], A[v_k_o, 0:4])
        T.writes(C[v_j_o * 16:v_j_o * 16 + 16])
        with T.init():
            for j_1_init in range(16):
                C[v_j_o * 16 + j_1_init] = 0
        T.tile_op("dot4_u8s8_s32", C[v_j_o * 16:v_j_o * 16 + 16], A[v_k_o, 0:4], B[v_k_o, v_j_o * 16:v_j_o * 16 + 16, 0:4])
)");
  ExpectSound(n.s, n.workload);
}

// C[i, j] += f(i, k) * B[k, j] or f(i, j, k) * B[k, j], f given by A.
PrimFunc SumOf(int64_t columns, const std::function<Expr(const te::Tensor&, const te::Indices&, const Expr&)>& factor) {
  const te::Tensor a = te::Placeholder({4, 2 * columns}, kFloat32, "A"),
                   b = te::Placeholder({3, columns}, kFloat32, "B");
  const te::ReduceAxis k(3, "k");
  const te::Tensor c =
      te::Compute({4, columns}, [&](const te::Indices& i) { return te::Sum(factor(a, i, k) * b(k, i[1]), {k}); }, "C",
                  {.axes = {"i", "j"}});
  return te::CreatePrimFunc({a, b}, {c}, "main");
}

// Tensorizes the vectors of 8 along j; what the primitive says.
std::string TensorizeVectors(Nest& n, const char* intrinsic) {
  const std::vector<LoopRef> j = Get(Split(n.s, n.loops[1], {-1, 8}));
  Do(Reorder(n.s, {n.loops[0], n.loops[2], j[0], j[1]}));
  Do(DecomposeReduction(n.s, n.block, n.loops[2]).status());
  return std::string(Tensorize(n.s, j[1], intrinsic).message());
}

// Axes of one value in a tile, by no variable of the block and by one with a factor of 1: a step along k, a row, and
// both with one column.
TEST(Tensorize, AxesOfOneValue) {
  Nest step(Matmul(8, 6, 5));
  const std::vector<LoopRef> i = Get(Split(step.s, step.loops[0], {-1, 4}));
  Do(Reorder(step.s, {i[0], step.loops[2], i[1], step.loops[1]}));
  Do(Tensorize(step.s, i[1], "fma_tile_f32"));
  ExpectBody(step.s, R"(
for i_0, k in T.grid(2, 5):
    with T.block("C"):
        v_i_o = T.axis.spatial(2, i_0)
        v_j_o = T.axis.spatial(1, 0)
        v_k_o = T.axis.reduce(5, k)
        T.reads(A[v_i_o * 4:v_i_o * 4 + 4, v_k_o], B[v_k_o, 0:6])
        T.writes(C[v_i_o * 4:v_i_o * 4 + 4, 0:6])
        with T.init():
            for i_1_init, j_init in T.grid(4, 6):
                C[v_i_o * 4 + i_1_init, j_init] = T.float32(0)
        T.tile_op("fma_tile_f32", C[v_i_o * 4:v_i_o * 4 + 4, 0:6], A[v_i_o * 4:v_i_o * 4 + 4, v_k_o], B[v_k_o, 0:6])
)");
  ExpectSound(step.s, step.workload);
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>(1, 6), {1, 1}, {8, 1}}) {
    Nest one(8, 6, 5, rows, columns);
    Do(Tensorize(one.s, one.loops[3], "fma_tile_f32"));
    ExpectSound(one.s, one.workload);
  }
  Nest row(Matmul(1, 6, 1));
  Do(Tensorize(row.s, row.loops[0], "fma_tile_f32"));
  ExpectSound(row.s, row.workload);
}

TEST(Tensorize, AFactorThatIsAValueComesByAFragment) {
  Nest n(SumOf(13, [](const te::Tensor& a, const te::Indices& i, const Expr& k) {
    return IfThenElse(i[0] + k < 4, a(i[0] + k, k * 2), FloatConst(0));
  }));
  EXPECT_EQ(TensorizeVectors(n, "axpy_f32"), "");
  ExpectBody(n.s, R"(
for i in range(4):
    for j_0_init, j_1_init in T.grid(2, 8):
        with T.block("C_init"):
            v_i = T.axis.spatial(4, i)
            v_j = T.axis.spatial(13, j_0_init * 8 + j_1_init)
            T.where(j_0_init * 8 + j_1_init < 13)
            T.reads()
            T.writes(C[v_i, v_j])
            C[v_i, v_j] = T.float32(0)
    for k, j_0 in T.grid(3, 2):
        with T.block("C"):
            v_i_o, v_j_o, v_k_o = T.axis.remap("SSR", [i, j_0, k])
            T.reads(A[v_i_o + v_k_o, v_k_o * 2], B[v_k_o, v_j_o * 8:v_j_o * 8 + T.min(13 - v_j_o * 8, 8)], C[v_i_o, v_j_o * 8:v_j_o * 8 + T.min(13 - v_j_o * 8, 8)])
            T.writes(C[v_i_o, v_j_o * 8:v_j_o * 8 + T.min(13 - v_j_o * 8, 8)])
            A_fragment = T.alloc_buffer((1,), "float32", scope="local")
            A_fragment[0] = T.if_then_else(v_i_o + v_k_o < 4, A[v_i_o + v_k_o, v_k_o * 2], T.float32(0))
            T.tile_op("axpy_f32", C[v_i_o, v_j_o * 8:v_j_o * 8 + T.min(13 - v_j_o * 8, 8)], A_fragment[0], B[v_k_o, v_j_o * 8:v_j_o * 8 + T.min(13 - v_j_o * 8, 8)], params={"n": 8})
)");
  ExpectSound(n.s, n.workload);
}

TEST(Tensorize, AFactorThatMovesAlongTheVectorInAnyWay) {
  Nest n(SumOf(16, [](const te::Tensor& a, const te::Indices& i, const Expr&) { return a(i[0], i[1] * 2); }));
  EXPECT_EQ(TensorizeVectors(n, "fma_f32"), "");
  ExpectBody(n.s, R"(
for i in range(4):
    for j_0_init, j_1_init in T.grid(2, 8):
        with T.block("C_init"):
            v_i = T.axis.spatial(4, i)
            v_j = T.axis.spatial(16, j_0_init * 8 + j_1_init)
            T.reads()
            T.writes(C[v_i, v_j])
            C[v_i, v_j] = T.float32(0)
    for k, j_0 in T.grid(3, 2):
        with T.block("C"):
            v_i_o, v_j_o, v_k_o = T.axis.remap("SSR", [i, j_0, k])
            T.reads(A[v_i_o, v_j_o * 16:v_j_o * 16 + 15], B[v_k_o, v_j_o * 8:v_j_o * 8 + 8], C[v_i_o, v_j_o * 8:v_j_o * 8 + 8])
            T.writes(C[v_i_o, v_j_o * 8:v_j_o * 8 + 8])
            A_fragment = T.alloc_buffer((8,), "float32", scope="local")
            for A_lane in T.vectorized(8):
                A_fragment[A_lane] = A[v_i_o, (v_j_o * 8 + A_lane) * 2]
            T.tile_op("fma_f32", C[v_i_o, v_j_o * 8:v_j_o * 8 + 8], A_fragment[0:8], B[v_k_o, v_j_o * 8:v_j_o * 8 + 8])
)");
  ExpectSound(n.s, n.workload);
  Nest other(SumOf(16, [](const te::Tensor& a, const te::Indices& i, const Expr&) { return a(i[0], i[1] * 2); }));
  EXPECT_EQ(TensorizeVectors(other, "axpy_f32"),
            "tensorize(j_1, axpy_f32): block C does not do what axpy_f32 means: A[v_i, v_j * 2] moves with v_j, the "
            "operand A does not");
}

TEST(Tensorize, SaysWhyNot) {
  Nest n(ByteDot(32, 3));
  EXPECT_EQ(
      std::string(Tensorize(n.s, n.loops[2], "dot4_s8s8_s32").message()),
      "tensorize(l, dot4_s8s8_s32): block C does not do what dot4_s8s8_s32 means: it computes uint8 at A[v_k, v_l]");
  const std::vector<LoopRef> l = Get(Split(n.s, n.loops[2], {2, 2}));
  EXPECT_EQ(std::string(Tensorize(n.s, l[1], "dot4_u8s8_s32").message()),
            "tensorize(l_1, dot4_u8s8_s32): block C does not do what dot4_u8s8_s32 means: dot4_u8s8_s32: operand 1 (A) "
            "takes 4 elements along dimension 1 of A, not 2");
}

// A message lists what a block can become: neither what goes on beside it nor what loads a product's operands.
TEST(Tensorize, ListsTheIntrinsicsThatItTakes) {
  Nest n(ByteDot(32, 3));
  std::string takes;
  for (const TileIntrinsic& row : TileIntrinsics()) {
    const bool loads = std::ranges::any_of(row.operands, [](const Buffer& b) { return b.scope() == Scope::kShared; });
    if (row.token != AsyncToken::kNone || loads) continue;
    absl::StrAppend(&takes, takes.empty() ? "" : ", ", row.name);
  }
  for (const auto& [name, why] : {std::pair("frob", "no intrinsic is called frob"),
                                  {"copy_async_16", "no block becomes tile operations of copy_async_16"},
                                  {"ldmatrix_x4_f16", "no block becomes tile operations of ldmatrix_x4_f16"}}) {
    EXPECT_EQ(std::string(Tensorize(n.s, n.loops[2], name).message()),
              absl::StrCat("tensorize(l, ", name, "): ", why, "; there are ", takes));
  }
}
// A product of float16 in registers has the types that a load has, and the load no factors to match its own with.
TEST(Tensorize, AProductIsNoLoadOfAWarp) {
  const DType half = DType::Float(16);
  const te::Tensor a = te::Placeholder({16}, half, "A"), b = te::Placeholder({16}, half, "B");
  const te::ReduceAxis k(16, "k");
  const te::Tensor c = te::Compute(
      {1}, [&](const te::Indices&) { return te::Sum(a(k) * b(k), {k}); }, "C");
  Nest n(te::CreatePrimFunc({a, b}, {c}, "main"));
  Get(CacheWrite(n.s, n.block, 0, Scope::kRegister));
  EXPECT_TRUE(Says(Tensorize(n.s, n.loops[0], "ldmatrix_x4_f16"), "no block becomes tile operations of ldmatrix_x4"));
}

// C[i, j] += A[step * i, k] * B[k // group, j, k % group] over bytes, groups side by side.
PrimFunc GroupedBytes(int64_t step, int64_t group) {
  const te::Tensor a = te::Placeholder({8 * step, 16}, DType::UInt(8), "A"),
                   b = te::Placeholder({16 / group, 8, group}, DType::Int(8), "B");
  const te::ReduceAxis k(16, "k");
  const te::Tensor c = te::Compute({8, 8},
                                   [&](const te::Indices& i) {
                                     const Expr at = k, by = IntConst(group);
                                     return te::Sum(MakeCast(kInt32, a(i[0] * IntConst(step), at)) *
                                                        MakeCast(kInt32, b(FloorDiv(at, by), i[1], FloorMod(at, by))),
                                                    {k});
                                   },
                                   "C", {.axes = {"i", "j"}});
  return te::CreatePrimFunc({a, b}, {c}, "main");
}

// Tiles of 4 x 8 sums and `depth` products.
std::string TensorizeTiles(Nest& n, int64_t depth) {
  const std::vector<LoopRef> i = Get(Split(n.s, n.loops[0], {-1, 4})), k = Get(Split(n.s, n.loops[2], {-1, depth}));
  Do(Reorder(n.s, {i[0], k[0], i[1], n.loops[1], k[1]}));
  return std::string(Tensorize(n.s, i[1], "mma4_u8s8_s32").message());
}

TEST(Tensorize, GroupsOfAReductionVariable) {
  Nest n(GroupedBytes(1, 4));
  EXPECT_EQ(TensorizeTiles(n, 8), "");
  ExpectBody(n.s, R"(
for i_0, k_0 in T.grid(2, 2):
    with T.block("C"):
        v_i_o = T.axis.spatial(2, i_0)
        v_j_o = T.axis.spatial(1, 0)
        v_k_o = T.axis.reduce(2, k_0)
        T.reads(B[v_k_o * 2:v_k_o * 2 + 2, 0:8, 0:4], A[v_i_o * 4:v_i_o * 4 + 4, v_k_o * 8:v_k_o * 8 + 8])
        T.writes(C[v_i_o * 4:v_i_o * 4 + 4, 0:8])
        with T.init():
            for i_1_init, j_init in T.grid(4, 8):
                C[v_i_o * 4 + i_1_init, j_init] = 0
        T.tile_op("mma4_u8s8_s32", C[v_i_o * 4:v_i_o * 4 + 4, 0:8], A[v_i_o * 4:v_i_o * 4 + 4, v_k_o * 8:v_k_o * 8 + 8], B[v_k_o * 2:v_k_o * 2 + 2, 0:8, 0:4])
)");
  ExpectSound(n.s, n.workload);
}

struct GroupCase {
  const char* name;
  int64_t step, group, depth;
  const char* why;
};
class GroupMissTest : public ::testing::TestWithParam<GroupCase> {};
TEST_P(GroupMissTest, IsRefused) {
  const GroupCase& c = GetParam();
  Nest n(GroupedBytes(c.step, c.group));
  const std::string said = TensorizeTiles(n, c.depth);
  EXPECT_NE(said.find(c.why), std::string::npos) << said;
}
INSTANTIATE_TEST_SUITE_P(
    Cases, GroupMissTest,
    ::testing::Values(GroupCase{"OtherGroups", 1, 2, 8, "B is used at v_k // 2, the operand B at k // 4"},
                      GroupCase{"CutGroup", 1, 4, 2, "the tile cuts what is divided by 4"},
                      GroupCase{"RowsApart", 2, 4, 8, "block C does not do what mma4_u8s8_s32 means"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone::testing
