// blockize, tensorize, register_tile.
#include <functional>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/analysis/divide_block.h"
#include "compiler/schedule/analysis/match_intrinsic.h"
#include "compiler/schedule/primitives/blockize.h"
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
#include "compiler/tile/tile_intrinsic_rows.h"
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
  EXPECT_TRUE(
      std::string(Tensorize(n.s, n.loops[2], "frob").message())
          .starts_with("tensorize(l, frob): no intrinsic is called frob; there are fma_tile_f32, fma_tile_f64, "));
  EXPECT_EQ(
      std::string(Tensorize(n.s, n.loops[2], "dot4_s8s8_s32").message()),
      "tensorize(l, dot4_s8s8_s32): block C does not do what dot4_s8s8_s32 means: it computes uint8 at A[v_k, v_l]");
  const std::vector<LoopRef> l = Get(Split(n.s, n.loops[2], {2, 2}));
  EXPECT_EQ(std::string(Tensorize(n.s, l[1], "dot4_u8s8_s32").message()),
            "tensorize(l_1, dot4_u8s8_s32): block C does not do what dot4_u8s8_s32 means: dot4_u8s8_s32: operand 1 (A) "
            "takes 4 elements along dimension 1 of A, not 2");
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

// What no row of the registry has yet: selections, functions and a negation.
const TileIntrinsic& ChoosesNumbers() {
  static const auto& row = *new TileIntrinsic(MakeTileIntrinsic("choose_f32", R"(
@T.prim_func
def choose(n: T.int32, A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32"), C: T.Buffer((n,), "float32")):
    for j in range(n):
        with T.block("choose"):
            vn = T.axis.spatial(n, j)
            C[vn] = T.Select(not T.isnan(A[vn]), T.exp(A[vn]) + B[vn], T.float32(0))
)",
                                                                {}));
  return row;
}

struct OperationCase {
  const char *name, *value, *message;  // "": it matches
};
class MatchedOperations : public ::testing::TestWithParam<OperationCase> {};
TEST_P(MatchedOperations, MatchOrSayWhy) {
  const OperationCase& c = GetParam();
  const Schedule s(Get(ParsePrimFunc(absl::StrCat(R"(
@T.prim_func
def main(D: T.Buffer((8,), "float32"), E: T.Buffer((8,), "float32"), F: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("F"):
            v = T.axis.spatial(8, i)
            F[v] = )",
                                                  c.value, "\n"))));
  const ProgramIndex& index = s.index();
  const int loop = index.parent(index.FindBlock("F"));
  const DividedBlock divided = Get(DivideBlock(index, loop, "match"));
  const absl::StatusOr<MatchedTile> tile = MatchIntrinsic(index, divided, ChoosesNumbers(), "match");
  if (*c.message != '\0') {
    EXPECT_TRUE(Says(tile, c.message));
    return;
  }
  ASSERT_TRUE(tile.ok()) << tile.status();
  ASSERT_EQ(tile->op.operands.size(), 3u);
  EXPECT_EQ(tile->op.operands[0].buffer.name(), "F");
  EXPECT_EQ(tile->op.operands[1].buffer.name(), "D");
  EXPECT_EQ(tile->op.operands[2].buffer.name(), "E");
}
INSTANTIATE_TEST_SUITE_P(
    Cases, MatchedOperations,
    ::testing::Values(OperationCase{"Same", "T.Select(not T.isnan(D[v]), T.exp(D[v]) + E[v], T.float32(0))", ""},
                      OperationCase{"SumTheOtherWayRound",
                                    "T.Select(not T.isnan(D[v]), E[v] + T.exp(D[v]), T.float32(0))", ""},
                      OperationCase{"AnotherFunction", "T.Select(not T.isnan(D[v]), T.exp2(D[v]) + E[v], T.float32(0))",
                                    "it computes T.exp2(D[v]) where the intrinsic has another operation"},
                      OperationCase{"WithoutTheNegation", "T.Select(T.isnan(D[v]), T.exp(D[v]) + E[v], T.float32(0))",
                                    "it computes T.isnan(D[v]) where the intrinsic has another operation"},
                      OperationCase{"AnotherSide", "T.Select(not T.isnan(D[v]), T.exp(D[v]) + E[v], T.float32(1))",
                                    "it computes T.float32(1), not T.float32(0)"},
                      OperationCase{"AnotherCondition", "T.Select(not T.isnan(E[v]), T.exp(D[v]) + E[v], T.float32(0))",
                                    "D is used where the intrinsic has E again, at the same place"},
                      OperationCase{"ABranch", "T.if_then_else(not T.isnan(D[v]), T.exp(D[v]) + E[v], T.float32(0))",
                                    "where the intrinsic has another operation"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone::testing
