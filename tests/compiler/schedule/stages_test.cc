// Primitives that move computation between blocks: inlining, caching, compute_at, reductions, layouts.
#include "compiler/schedule/analysis/program_index.h"
#include "compiler/schedule/primitives/cache.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_padding.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/inline.h"
#include "compiler/schedule/primitives/layout_constant.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/rfactor.h"
#include "compiler/schedule/primitives/sample.h"
#include "compiler/schedule/primitives/set_scope.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/primitives/transform_layout.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

TEST(Locate, FollowsTheData) {
  Schedule s(ConvBiasResidualRelu({4, 4, 2, 8}));
  const BlockRef pad = Get(GetBlock(s, "pad")), conv = Get(GetBlock(s, "conv")), root = Get(GetBlock(s, "root"));
  EXPECT_EQ(Get(GetProducers(s, pad)).size(), 0u);
  EXPECT_EQ(Get(s.FindBlock(Get(GetProducers(s, conv))[0]))->block.name, "pad");
  EXPECT_EQ(Get(s.FindBlock(Get(GetConsumers(s, conv))[0]))->block.name, "out");
  EXPECT_EQ(Get(s.FindBlock(Get(GetOutputBlocks(s))[0]))->block.name, "out");
  EXPECT_EQ(Get(GetChildBlocks(s, root)).size(), 3u);
  EXPECT_EQ(Get(GetChildBlocks(s, Get(GetLoops(s, conv))[3])).size(), 1u);
}

TEST(ComputeInline, PutsTheFormulaIntoItsReaders) {
  const PrimFunc workload = ThreeStages(3, 5);
  Schedule s(workload);
  Do(ComputeInline(s, Get(GetBlock(s, "up"))));
  ExpectBody(s, R"(
for i, j in T.grid(5, 3):
    with T.block("t"):
        v_i, v_j = T.axis.remap("SS", [i, j])
        T.reads(B[v_i, v_j], A[v_j, v_i])
        T.writes(t[v_i, v_j])
        t[v_i, v_j] = A[v_j, v_i] * T.float32(2) + B[v_i, v_j]
for i, j in T.grid(3, 5):
    with T.block("out"):
        v_i, v_j = T.axis.remap("SS", [i, j])
        T.reads(t[v_j, v_i], A[v_i, v_j])
        T.writes(out[v_i, v_j])
        out[v_i, v_j] = t[v_j, v_i] * t[v_j, v_i] - A[v_i, v_j] * T.float32(2)
)");
  ExpectSound(s, workload);
}

TEST(ComputeInline, TakesPaddingAlong) {
  const PrimFunc workload = ConvBiasResidualRelu({4, 5, 2, 3});
  Schedule s(workload);
  Do(ComputeInline(s, Get(GetBlock(s, "pad"))));
  ExpectSound(s, workload);
}

TEST(ComputeInline, SaysWhy) {
  Schedule s(DenseRelu(4, 4, 4));
  EXPECT_TRUE(Says(ComputeInline(s, Get(GetBlock(s, "C"))), "compute_inline(C): block C reduces"));
  EXPECT_TRUE(
      Says(ComputeInline(s, Get(GetBlock(s, "D"))), "compute_inline(D): D is seen outside, so it must be written"));
  EXPECT_TRUE(Says(ComputeInline(s, Get(GetBlock(s, "root"))), "the root block cannot be inlined"));
}

TEST(ReverseComputeInline, PutsTheReaderIntoItsProducer) {
  const PrimFunc workload = ThreeStages(3, 5);
  Schedule s(workload);
  Do(ComputeInline(s, Get(GetBlock(s, "up"))));
  Do(ReverseComputeInline(s, Get(GetBlock(s, "out"))));
  ExpectBody(s, R"(
for i, j in T.grid(5, 3):
    with T.block("t"):
        v_i, v_j = T.axis.remap("SS", [i, j])
        T.reads(B[v_i, v_j], A[v_j, v_i])
        T.writes(out[v_j, v_i])
        out[v_j, v_i] = (A[v_j, v_i] * T.float32(2) + B[v_i, v_j]) * (A[v_j, v_i] * T.float32(2) + B[v_i, v_j]) - A[v_j, v_i] * T.float32(2)
)");
  ExpectSound(s, workload);
}

TEST(ReverseComputeInline, SaysWhy) {
  Schedule s(DenseRelu(4, 4, 4));
  EXPECT_TRUE(Says(ReverseComputeInline(s, Get(GetBlock(s, "D"))), "reverse_compute_inline(D): block C reduces"));
  EXPECT_TRUE(Says(ReverseComputeInline(s, Get(GetBlock(s, "C"))), "reverse_compute_inline(C): block C reduces"));
  Schedule blur(Blur(6, 2));
  EXPECT_TRUE(Says(ReverseComputeInline(blur, Get(GetBlock(blur, "blur"))), "block blur reduces"));
}

// In its new layout the copy has a place for every element of y, but nobody writes the last two.
TEST(ReverseComputeInline, RefusesAProducerThatLeavesOutWhatIsNotRead) {
  const PrimFunc workload = Get(ParsePrimFunc(R"(
@T.prim_func
def main(x: T.Buffer((4,), "float32"), y: T.Buffer((6,), "float32")):
    for i in range(6):
        with T.block("y"):
            vi = T.axis.spatial(6, i)
            y[vi] = T.if_then_else(vi < 4, x[vi], T.float32(5))
)"));
  for (const PadValue& pad_value : {PadValue(), PadValue(1)}) {
    Schedule s(workload);
    const BlockRef y = Get(GetBlock(s, "y"));
    Do(TransformLayout(s, y, 0, BufferKind::kRead, Get(ParseIndexMap("lambda i: (i // 3, i % 3)")), pad_value));
    const absl::Status status = ReverseComputeInline(s, y);
    if (pad_value.has_value()) {
      Do(status);  // the padding is written
    } else {
      EXPECT_TRUE(Says(status,
                       "reverse_compute_inline(y): it reads x_global under a condition, and block x_global, where it "
                       "would run, does not write all of that"));
    }
    ExpectSound(s, workload);
  }
}

TEST(Cache, CopiesInAndOut) {
  const PrimFunc workload = DenseRelu(4, 6, 5);
  Schedule s(workload);
  const BlockRef c = Get(GetBlock(s, "C")), d = Get(GetBlock(s, "D"));
  const BlockRef in = Get(CacheRead(s, c, 1, Scope::kGlobal));
  const BlockRef out = Get(CacheWrite(s, d, 0, Scope::kThread));
  EXPECT_EQ(Get(s.FindBlock(in))->block.name, "B_global");
  EXPECT_EQ(Get(s.FindBlock(out))->block.name, "D_local_thread");
  EXPECT_TRUE(Says(CacheRead(s, c, 7, Scope::kGlobal), "cache_read(C): it reads 2 buffers, there is no number 7"));
  ExpectSound(s, workload);
  const std::vector<LoopRef> l = Get(GetLoops(s, d));
  Do(ReverseComputeAt(s, out, l[0]));
  Do(ComputeAt(s, c, l[0]));
  Do(Parallel(s, l[0]));
  ExpectSound(s, workload);
}

TEST(SetScope, LeavesParamsAlone) {
  const PrimFunc workload = DenseRelu(4, 6, 5);
  Schedule s(workload);
  Do(SetScope(s, Get(GetBlock(s, "C")), 0, Scope::kThread));
  EXPECT_TRUE(
      Says(SetScope(s, Get(GetBlock(s, "D")), 0, Scope::kThread), "set_scope(D): D is a param of the function"));
  ExpectSound(s, workload);
}

TEST(ComputeAt, ComputesTheHalo) {
  const PrimFunc workload = Blur(20, 3);
  Schedule s(workload);
  const BlockRef up = Get(GetBlock(s, "up")), blur = Get(GetBlock(s, "blur"));
  const std::vector<LoopRef> tiles = Get(Split(s, Get(GetLoops(s, blur))[0], {-1, 8}));
  Do(ComputeAt(s, up, tiles[0]));
  ExpectBody(s, R"(
for i_0 in range(3):
    for ax0 in range(10):
        with T.block("up"):
            v_i = T.axis.spatial(22, i_0 * 8 + ax0)
            T.where(i_0 * 8 + ax0 < 22)
            T.reads(A[v_i])
            T.writes(up[v_i])
            up[v_i] = A[v_i] * T.float32(3)
    for i_1, k in T.grid(8, 3):
        with T.block("blur"):
            v_i = T.axis.spatial(20, i_0 * 8 + i_1)
            v_k = T.axis.reduce(3, k)
            T.where(i_0 * 8 + i_1 < 20)
            T.reads(up[v_i + v_k])
            T.writes(blur[v_i])
            with T.init():
                blur[v_i] = T.float32(0)
            blur[v_i] = blur[v_i] + up[v_i + v_k]
for i in range(20):
    with T.block("out"):
        v_i = T.axis.spatial(20, i)
        T.reads(blur[v_i], A[v_i])
        T.writes(out[v_i])
        out[v_i] = blur[v_i] - A[v_i]
)");
  ExpectSound(s, workload);
}

TEST(ComputeAt, SaysWhy) {
  Schedule s(Softmax(4, 6));
  const BlockRef max = Get(GetBlock(s, "max")), exp = Get(GetBlock(s, "exp")), out = Get(GetBlock(s, "softmax"));
  const std::vector<LoopRef> sum = Get(GetLoops(s, Get(GetBlock(s, "sum"))));
  EXPECT_TRUE(Says(ComputeAt(s, exp, Get(GetLoops(s, out))[0]),
                   "compute_at(exp, i): its consumer sum comes before the loop; choose a loop around all consumers"));
  EXPECT_TRUE(Says(ComputeAt(s, out, sum[0]), "compute_at(softmax, i): it writes softmax, which is seen outside"));
  EXPECT_TRUE(Says(ComputeAt(s, max, Get(GetLoops(s, max))[0]), "the block is under the loop already"));
  EXPECT_TRUE(Says(ReverseComputeAt(s, Get(GetBlock(s, "sum")), sum[0]), "the block is under the loop already"));
  EXPECT_TRUE(Says(ReverseComputeAt(s, exp, Get(GetLoops(s, max))[1]),
                   "block max goes on reducing v_k across loop k, so its values are not complete after one iteration"));
  Do(ReverseComputeAt(s, exp, Get(GetLoops(s, max))[0]));
  ExpectSound(s, Softmax(4, 6));
}

// Row by row, in steps of 4 with a tail: the sum takes its terms where they are made, and the last block reads them
// all.
TEST(ComputeAt, LeavesToLaterConsumersWhatAllIterationsMade) {
  const PrimFunc workload = Softmax(4, 6);
  Schedule s(workload);
  const BlockRef exp = Get(GetBlock(s, "exp")), sum = Get(GetBlock(s, "sum"));
  const LoopRef row = Get(GetLoops(s, Get(GetBlock(s, "softmax"))))[0];
  Do(ComputeAt(s, sum, row));
  const std::vector<LoopRef> k = Get(Split(s, Get(GetLoops(s, sum))[1], {-1, 4}));
  Do(ComputeAt(s, exp, k[0]));
  EXPECT_EQ(Get(GetLoops(s, exp)).size(), 3u) << "rows, steps, and four in a step";
  ExpectSound(s, workload);
}

TEST(ComputeAt, SaysWhatLaterConsumersMiss) {
  const PrimFunc workload = Get(ParsePrimFunc(R"(@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32"), D: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * T.float32(2)
    for j in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, j)
            C[v] = B[v * 2] + T.float32(1)
    for k in range(8):
        with T.block("D"):
            v = T.axis.spatial(8, k)
            D[v] = B[v] + T.float32(3)
)"));
  Schedule s(workload);
  const BlockRef b = Get(GetBlock(s, "B"));
  const LoopRef j = Get(GetLoops(s, Get(GetBlock(s, "C"))))[0];
  EXPECT_TRUE(Says(ComputeAt(s, b, j), "compute_at(B, j): its consumer D is not under the loop, and"));
  Do(Parallel(s, j));
  EXPECT_TRUE(Says(ComputeAt(s, b, j), "its consumer D is not under the loop, and loop j is not serial"));
}

TEST(ReverseComputeAt, GuardsPartialTiles) {
  const PrimFunc workload = DenseRelu(5, 7, 3);
  Schedule s(workload);
  const BlockRef c = Get(GetBlock(s, "C")), d = Get(GetBlock(s, "D"));
  const std::vector<LoopRef> l = Get(GetLoops(s, c));
  const std::vector<LoopRef> i = Get(Split(s, l[0], {-1, 2})), j = Get(Split(s, l[1], {-1, 4}));
  Do(Reorder(s, {i[0], j[0], l[2], i[1], j[1]}));
  Do(ReverseComputeAt(s, d, j[0]));
  ExpectBody(s, R"(
for i_0, j_0 in T.grid(3, 2):
    for k, i_1, j_1 in T.grid(3, 2, 4):
        with T.block("C"):
            v_i = T.axis.spatial(5, i_0 * 2 + i_1)
            v_j = T.axis.spatial(7, j_0 * 4 + j_1)
            v_k = T.axis.reduce(3, k)
            T.where(i_0 * 2 + i_1 < 5 and j_0 * 4 + j_1 < 7)
            T.reads(A[v_i, v_k], B[v_k, v_j])
            T.writes(C[v_i, v_j])
            with T.init():
                C[v_i, v_j] = T.float32(0)
            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
    for ax0, ax1 in T.grid(2, 4):
        with T.block("D"):
            v_i = T.axis.spatial(5, i_0 * 2 + ax0)
            v_j = T.axis.spatial(7, j_0 * 4 + ax1)
            T.where(i_0 * 2 + ax0 < 5 and j_0 * 4 + ax1 < 7)
            T.reads(C[v_i, v_j], bias[v_j])
            T.writes(D[v_i, v_j])
            D[v_i, v_j] = T.max(C[v_i, v_j] + bias[v_j], T.float32(0))
)");
  ExpectSound(s, workload);
}

TEST(ReverseComputeAt, SaysWhyABoxIsNotWhole) {
  Schedule s(DenseRelu(5, 7, 3));
  const BlockRef c = Get(GetBlock(s, "C")), d = Get(GetBlock(s, "D"));
  const std::vector<LoopRef> l = Get(GetLoops(s, c));
  const std::vector<LoopRef> f = Get(Split(s, Get(Fuse(s, {l[0], l[1]})), {5, 7}));
  Do(ReverseComputeAt(s, d, f[0]));  // a row at a time
  ExpectSound(s, DenseRelu(5, 7, 3));
  Schedule odd(DenseRelu(5, 7, 3));
  const std::vector<LoopRef> m = Get(GetLoops(odd, Get(GetBlock(odd, "C"))));
  const std::vector<LoopRef> g = Get(Split(odd, Get(Fuse(odd, {m[0], m[1]})), {-1, 5}));
  EXPECT_TRUE(Says(ReverseComputeAt(odd, Get(GetBlock(odd, "D")), g[0]),
                   "block C does not write a whole box of C in one iteration"));
  // A window of two neighbours may lie in two tiles.
  Schedule blur(Blur(8, 2));
  const std::vector<LoopRef> u = Get(Split(blur, Get(GetLoops(blur, Get(GetBlock(blur, "up"))))[0], {-1, 3}));
  EXPECT_TRUE(
      Says(ReverseComputeAt(blur, Get(GetBlock(blur, "blur")), u[0]),
           "dimension 0 of up is produced in parts and read at v_i + v_k, which is not one iteration variable"));
}

TEST(ReverseComputeAt, DoesNotLoseInstancesThatReadNothing) {
  // Border elements of `pad` read nothing of the copy, so no tile of the copy would compute them.
  const PrimFunc workload = ConvBiasResidualRelu({4, 5, 2, 3});
  Schedule s(workload);
  const BlockRef pad = Get(GetBlock(s, "pad")), copy = Get(CacheRead(s, pad, 0, Scope::kGlobal));
  EXPECT_TRUE(
      Says(ReverseComputeAt(s, pad, Get(GetLoops(s, copy))[1]), "where the producers under the loop never write"));
}

TEST(DecomposeReduction, SplitsTheInitOff) {
  const PrimFunc workload = Matmul(4, 6, 5);
  Schedule s(workload);
  const BlockRef c = Get(GetBlock(s, "C"));
  const std::vector<LoopRef> l = Get(GetLoops(s, c));
  const std::vector<LoopRef> j = Get(Split(s, l[1], {-1, 4}));
  Do(Reorder(s, {l[0], j[0], l[2], j[1]}));
  Do(Vectorize(s, j[1]));
  EXPECT_TRUE(Says(DecomposeReduction(s, c, j[1]), "decompose_reduction(C, j_1): loop k outside it reduces"));
  const BlockRef init = Get(DecomposeReduction(s, c, l[2]));
  EXPECT_EQ(Get(s.FindBlock(init))->block.name, "C_init");
  EXPECT_TRUE(Says(DecomposeReduction(s, c, l[2]), "the block has no init"));
  ExpectBody(s, R"(
for i, j_0 in T.grid(4, 2):
    for j_1_init in T.vectorized(4):
        with T.block("C_init"):
            v_i = T.axis.spatial(4, i)
            v_j = T.axis.spatial(6, j_0 * 4 + j_1_init)
            T.where(j_0 * 4 + j_1_init < 6)
            T.reads()
            T.writes(C[v_i, v_j])
            C[v_i, v_j] = T.float32(0)
    for k in range(5):
        for j_1 in T.vectorized(4):
            with T.block("C"):
                v_i = T.axis.spatial(4, i)
                v_j = T.axis.spatial(6, j_0 * 4 + j_1)
                v_k = T.axis.reduce(5, k)
                T.where(j_0 * 4 + j_1 < 6)
                T.reads(A[v_i, v_k], B[v_k, v_j], C[v_i, v_j])
                T.writes(C[v_i, v_j])
                C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
)");
  ExpectSound(s, workload);
}

TEST(Rfactor, MakesPartialSums) {
  const PrimFunc workload = Matmul(3, 4, 12);
  Schedule s(workload);
  const BlockRef c = Get(GetBlock(s, "C"));
  const std::vector<LoopRef> l = Get(GetLoops(s, c));
  const std::vector<LoopRef> k = Get(Split(s, l[2], {-1, 4}));
  const BlockRef rf = Get(Rfactor(s, k[1], -1));
  EXPECT_EQ(Get(s.FindBlock(rf))->block.name, "C_rf");
  ExpectSound(s, workload);
  Do(Vectorize(s, k[1]));  // a spatial loop now
  Do(Parallel(s, Get(GetLoops(s, c))[0]));
  ExpectSound(s, workload);
}

TEST(Rfactor, SaysWhy) {
  Schedule s(Matmul(3, 4, 10));
  const std::vector<LoopRef> l = Get(GetLoops(s, Get(GetBlock(s, "C"))));
  EXPECT_TRUE(Says(Rfactor(s, l[0], 0), "rfactor(i): the loop does not reduce"));
  EXPECT_TRUE(Says(Rfactor(s, l[2], 5), "factor_axis is 5, the new buffer has 3 dimensions"));
  const std::vector<LoopRef> k = Get(Split(s, l[2], {-1, 4}));
  Get(Rfactor(s, k[1], 0));  // 10 = 2 * 4 + 2: each of the 4 parts has a first term
  ExpectSound(s, Matmul(3, 4, 10));
  Schedule few(Matmul(3, 4, 3));
  const std::vector<LoopRef> q = Get(Split(few, Get(GetLoops(few, Get(GetBlock(few, "C"))))[2], {1, 4}));
  EXPECT_TRUE(Says(Rfactor(few, q[1], 0), "some partial results would stay without a value"));
}

TEST(Rfactor, MakesNoBufferOfMoreDimensionsThanAreRead) {
  const auto row_sum_of_rank = [](int rank) {
    std::string ones = "1", zeros = "0";
    for (int d = 1; d < rank; ++d) {
      ones += ", 1";
      zeros += ", 0";
    }
    return Get(ParsePrimFunc("@T.prim_func\ndef main(A: T.Buffer((6,), \"float32\"), C: T.Buffer((" + ones +
                             "), \"float32\")):\n    for k in range(6):\n        with T.block(\"C\"):\n"
                             "            vk = T.axis.reduce(6, k)\n            with T.init():\n                C[" +
                             zeros + "] = T.float32(0)\n            C[" + zeros + "] = C[" + zeros + "] + A[vk]\n"));
  };
  const auto factored = [](Schedule& s) {
    return Rfactor(s, Get(Split(s, Get(GetLoops(s, Get(GetBlock(s, "C"))))[0], {-1, 3}))[1], 0);
  };
  const PrimFunc widest = row_sum_of_rank(63);
  Schedule fits(widest);
  Get(factored(fits));
  ExpectSound(fits, widest);
  Get(ParsePrimFunc(ToText(fits.func())));
  Schedule full(row_sum_of_rank(64));
  EXPECT_TRUE(Says(factored(full),
                   "rfactor(k_1): C has 64 dimensions, and with one for the partial results it would have more than "
                   "the 64 that are supported; fuse some with transform_layout"));
}

TEST(LayoutConstant, PacksOncePadsAndComposes) {
  const PrimFunc workload = DenseRelu(3, 10, 4);
  Schedule s(workload);
  const BlockRef c = Get(GetBlock(s, "C"));
  Do(LayoutConstant(s, c, 1, Get(ParseIndexMap("lambda k, n: (n // 8, k, n % 8)"))));
  ASSERT_EQ(s.prepares().size(), 1u);
  EXPECT_EQ(s.prepares()[0].param, 1);
  EXPECT_EQ(ToText(s.prepares()[0].func), R"(@T.prim_func
def prepare_B(B: T.Buffer((4, 10), "float32"), B_packed: T.Buffer((2, 4, 8), "float32")):
    T.func_attr({"outputs": 1})
    for ax0 in T.parallel(2):
        for ax1, ax2 in T.grid(4, 8):
            with T.block("pack"):
                v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
                T.reads(B[v1, v2 + v0 * 8])
                T.writes(B_packed[v0, v1, v2])
                B_packed[v0, v1, v2] = T.if_then_else(v2 + v0 * 8 < 10, B[v1, v2 + v0 * 8], T.float32(0))
)");
  ExpectSound(s, workload);
  Do(LayoutConstant(s, c, 1, Get(ParseIndexMap("lambda a, b, c: (a, b // 2, c, b % 2)"))));
  ASSERT_EQ(s.prepares().size(), 1u);
  EXPECT_EQ(s.prepares()[0].func.params[1].rank(), 4);
  ExpectSound(s, workload);
}

TEST(LayoutConstant, FusesDimensions) {
  const PrimFunc workload = DenseRelu(3, 10, 4);
  for (const char* map :
       {"lambda k, n: (k * 10 + n,)", "lambda k, n: (k * 2 + n // 5, n % 5)", "lambda k, n: (k // 2, n * 2 + k % 2)"}) {
    Schedule s(workload);
    Do(LayoutConstant(s, Get(GetBlock(s, "C")), 1, Get(ParseIndexMap(map))));
    ExpectSound(s, workload);
  }
}

TEST(LayoutConstant, SaysWhy) {
  Schedule s(DenseRelu(3, 10, 4));
  const BlockRef c = Get(GetBlock(s, "C")), d = Get(GetBlock(s, "D"));
  const IndexMap swap = Get(ParseIndexMap("lambda a, b: (b, a)"));
  EXPECT_TRUE(Says(LayoutConstant(s, c, 0, swap),
                   "layout_constant(C, A): the function does not list param 0 in its attribute \"constants\""));
  EXPECT_TRUE(Says(LayoutConstant(s, d, 0, swap),
                   "layout_constant(D, C): it is an intermediate, not a param; transform_layout"));
  EXPECT_TRUE(
      Says(LayoutConstant(s, c, 1, Get(ParseIndexMap("lambda a, b: (a + b,)"))), "is not a digit of one index"));
}

TEST(TransformLayout, ChangesEverybodyWhoUsesTheBuffer) {
  const PrimFunc workload = DenseRelu(5, 10, 4);
  Schedule s(workload);
  Do(TransformLayout(s, Get(GetBlock(s, "C")), 0, BufferKind::kWrite,
                     Get(ParseIndexMap("lambda i, j: (j // 4, i, j % 4)"))));
  ExpectSound(s, workload);
}

TEST(TransformLayout, FusesDimensions) {
  const PrimFunc workload = DenseRelu(6, 20, 4);
  for (const char* map : {"lambda i, j: (i * 20 + j,)", "lambda i, j: (i * 5 + j // 4, j % 4)",
                          "lambda i, j: (j // 4, i % 2, j % 4 * 3 + i // 2)"}) {
    Schedule s(workload);
    Do(TransformLayout(s, Get(GetBlock(s, "C")), 0, BufferKind::kWrite, Get(ParseIndexMap(map))));
    ExpectSound(s, workload);
  }
  Schedule s(workload);
  EXPECT_TRUE(Says(TransformLayout(s, Get(GetBlock(s, "C")), 0, BufferKind::kWrite,
                                   Get(ParseIndexMap("lambda i, j: (i * 21 + j,)"))),
                   "dimensions are fused where the map is one to one, but"));
}

TEST(SampleComputeLocation, GivesALoopOrLeavesIt) {
  const PrimFunc workload = Blur(6, 3);
  for (int decision = -1; decision < 2; ++decision) {
    Schedule s(workload);
    const BlockRef up = Get(GetBlock(s, "up"));
    const LoopRef at = Get(SampleComputeLocation(s, up, decision));
    Do(ComputeAt(s, up, at));
    ExpectSound(s, workload);
  }
  Schedule s(workload);
  EXPECT_TRUE(Says(SampleComputeLocation(s, Get(GetBlock(s, "up")), 5), "decision 5, there are 2 locations"));
  EXPECT_TRUE(Says(Parallel(s, Get(SampleComputeLocation(s, Get(GetBlock(s, "up")), -1))),
                   "is no loop; only compute_at takes it"));
}

// Under the vectorized loop no block may move.
TEST(SampleComputeLocation, DrawsLegalPlacesAlone) {
  const PrimFunc workload = TwoElementwise(3, 8);
  Schedule start(workload);
  const std::vector<LoopRef> loops = Get(GetLoops(start, Get(GetBlock(start, "C"))));
  Do(Vectorize(start, loops[1]));
  Random random(5);
  int moved = 0, stayed = 0;
  for (int i = 0; i < 64; ++i) {
    Schedule s = start;
    const BlockRef b = Get(GetBlock(s, "B"));
    const LoopRef at = Get(SampleComputeLocation(s, b, random));
    Do(ComputeAt(s, b, at));
    const bool stays = !Get(s.FindOutput(at.step, at.output, OutputKind::kLoop, "test")).loop;
    ++(stays ? stayed : moved);
  }
  EXPECT_GT(moved, 10);
  EXPECT_GT(stayed, 10);
}

// As a predicate the condition would be evaluated, and the row read, for instances beyond a split's tail.
TEST(DecomposePadding, RefusesAConditionThatReadsMemory) {
  Schedule s(Get(ParsePrimFunc(R"(
@T.prim_func
def main(x: T.Buffer((3,), "float32"), rows: T.Buffer((7,), "int32"), y: T.Buffer((7,), "float32")):
    for i in range(7):
        with T.block("y"):
            vi = T.axis.spatial(7, i)
            T.reads(x[0:3], rows[vi])
            T.writes(y[vi])
            y[vi] = T.if_then_else(rows[vi] < 3, x[rows[vi]], T.float32(0))
)")));
  const BlockRef y = Get(GetBlock(s, "y"));
  EXPECT_TRUE(Says(DecomposePadding(s, y, Get(GetLoops(s, y))[0]), "the condition rows[vi] < 3 reads memory"));
}

}  // namespace
}  // namespace hone::testing
