// split, fuse, reorder, parallel, vectorize, unroll, bind, add_unit_loop, annotate.
#include "compiler/schedule/primitives/add_unit_loop.h"
#include "compiler/schedule/primitives/annotate.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/decompose_reduction.h"
#include "compiler/schedule/primitives/fuse.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/loop_kind.h"
#include "compiler/schedule/primitives/reorder.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/text/text.h"
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
};

TEST(Split, DividesTheLoop) {
  Nest n(TwoElementwise(8, 6), "B");
  Get(Split(n.s, n.loops[0], {-1, 4}));
  Get(Split(n.s, n.loops[1], {2, 3}));
  ExpectBody(n.s, R"(
for i_0, i_1, j_0, j_1 in T.grid(2, 4, 2, 3):
    with T.block("B"):
        v_i = T.axis.spatial(8, i_0 * 4 + i_1)
        v_j = T.axis.spatial(6, j_0 * 3 + j_1)
        T.reads(A[v_i, v_j])
        T.writes(B[v_i, v_j])
        B[v_i, v_j] = A[v_i, v_j] * T.float32(2)
for i, j in T.grid(8, 6):
    with T.block("C"):
        v_i, v_j = T.axis.remap("SS", [i, j])
        T.reads(B[v_i, v_j])
        T.writes(C[v_i, v_j])
        C[v_i, v_j] = B[v_i, v_j] + T.float32(1)
)");
  ExpectSound(n.s, n.workload);
}

TEST(Split, GuardsTheRemainder) {
  Nest n(TwoElementwise(1, 10), "B");
  Get(Split(n.s, Get(Split(n.s, n.loops[1], {-1, 4}))[1], {-1, 3}));
  ExpectBody(n.s, R"(
for i, j_0, j_1_0, j_1_1 in T.grid(1, 3, 2, 3):
    with T.block("B"):
        v_i = T.axis.spatial(1, 0)
        v_j = T.axis.spatial(10, j_0 * 4 + j_1_0 * 3 + j_1_1)
        T.where(j_0 * 4 + j_1_0 * 3 + j_1_1 < 10 and j_1_0 * 3 + j_1_1 < 4)
        T.reads(A[v_i, v_j])
        T.writes(B[v_i, v_j])
        B[v_i, v_j] = A[v_i, v_j] * T.float32(2)
for i, j in T.grid(1, 10):
    with T.block("C"):
        v_i, v_j = T.axis.remap("SS", [i, j])
        T.reads(B[v_i, v_j])
        T.writes(C[v_i, v_j])
        C[v_i, v_j] = B[v_i, v_j] + T.float32(1)
)");
  ExpectSound(n.s, n.workload);
}

struct SplitCase {
  const char* name;
  int64_t extent;
  std::vector<Value> factors;
  const char* says;  // "": it succeeds
};
class SplitCases : public ::testing::TestWithParam<SplitCase> {};
TEST_P(SplitCases, SucceedOrSayWhy) {
  Nest n(TwoElementwise(3, GetParam().extent));
  const absl::StatusOr<std::vector<LoopRef>> loops = Split(n.s, n.loops[1], GetParam().factors);
  if (GetParam().says[0] != '\0') {
    EXPECT_TRUE(Says(loops, GetParam().says));
  } else {
    EXPECT_TRUE(loops.ok()) << loops.status();
  }
  ExpectSound(n.s, n.workload);
}
INSTANTIATE_TEST_SUITE_P(
    Factors, SplitCases,
    ::testing::Values(
        SplitCase{"Exact", 12, {-1, 4}, ""}, SplitCase{"Whole", 12, {1, 12}, ""}, SplitCase{"One", 7, {Value()}, ""},
        SplitCase{"Prime", 13, {-1, 4}, ""}, SplitCase{"LargerThanTheLoop", 5, {-1, 16}, ""},
        SplitCase{"AbsentInTheMiddle", 24, {2, Value(), 3}, ""}, SplitCase{"Covers", 10, {4, 3}, ""},
        SplitCase{"Zero", 12, {-1, 0}, "split(j): factor 1 is 0, below 1"},
        SplitCase{"Negative", 12, {-1, -4}, "split(j): factor 1 is -4, below 1"},
        SplitCase{"TwoAbsent", 12, {-1, Value()}, "split(j): factors 0 and 1 are both absent"},
        SplitCase{"TooSmall", 12, {2, 5}, "split(j): the factors multiply to 10, which does not cover the extent 12"},
        SplitCase{"NoFactors", 12, {}, "split(j): no factors"},
        SplitCase{"Huge", 12, {int64_t{1} << 20, int64_t{1} << 20}, "more than 2**31"}),
    [](const ::testing::TestParamInfo<SplitCase>& info) { return info.param.name; });

TEST(Fuse, NumbersTheNest) {
  Nest n(TwoElementwise(5, 6), "B");
  const LoopRef fused = Get(Fuse(n.s, {n.loops[0], n.loops[1]}));
  Get(Split(n.s, fused, {-1, 6}));  // splits back into what it was made of
  ExpectBody(n.s, R"(
for i_j_fused_0, i_j_fused_1 in T.grid(5, 6):
    with T.block("B"):
        v_i, v_j = T.axis.remap("SS", [i_j_fused_0, i_j_fused_1])
        T.reads(A[v_i, v_j])
        T.writes(B[v_i, v_j])
        B[v_i, v_j] = A[v_i, v_j] * T.float32(2)
for i, j in T.grid(5, 6):
    with T.block("C"):
        v_i, v_j = T.axis.remap("SS", [i, j])
        T.reads(B[v_i, v_j])
        T.writes(C[v_i, v_j])
        C[v_i, v_j] = B[v_i, v_j] + T.float32(1)
)");
  ExpectSound(n.s, n.workload);
}

TEST(Fuse, SaysWhy) {
  Nest n(TwoElementwise(5, 6));
  EXPECT_TRUE(
      Says(Fuse(n.s, {n.loops[1], n.loops[0]}), "fuse(j, i): loop i is not the only statement directly inside loop j"));
  EXPECT_TRUE(Says(Fuse(n.s, {}), "no loops given"));
  Do(Unroll(n.s, n.loops[1]));
  EXPECT_TRUE(Says(Fuse(n.s, {n.loops[0], n.loops[1]}), "loop j is unrolled; fuse before it is made so"));
}

TEST(Reorder, KeepsThePlacesOfLoopsNotNamed) {
  Nest n(Matmul(4, 5, 6));
  Do(Reorder(n.s, {n.loops[2], n.loops[0]}));
  ExpectBody(n.s, R"(
for k, j, i in T.grid(6, 5, 4):
    with T.block("C"):
        v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
        T.reads(A[v_i, v_k], B[v_k, v_j])
        T.writes(C[v_i, v_j])
        with T.init():
            C[v_i, v_j] = T.float32(0)
        C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
)");
  ExpectSound(n.s, n.workload);
}

TEST(Reorder, SaysWhy) {
  Nest n(Matmul(4, 5, 6));
  const BlockRef init = Get(DecomposeReduction(n.s, n.block, n.loops[2]));
  EXPECT_TRUE(Says(Reorder(n.s, {n.loops[2], n.loops[1]}),
                   "not in one nest without branches: there are other statements between them"));
  const std::vector<LoopRef> other = Get(GetLoops(n.s, init));
  EXPECT_TRUE(Says(Reorder(n.s, {n.loops[0], n.loops[0]}), "loop i is named twice"));
  EXPECT_EQ(other.size(), 2u);

  Nest m(Matmul(4, 5, 6));
  const std::vector<LoopRef> f = Get(Split(m.s, Get(Fuse(m.s, {m.loops[1], m.loops[2]})), {-1, 4}));
  EXPECT_TRUE(Says(Reorder(m.s, {f[1], f[0]}), "runs over spatial and reduce variables of block C at once"));
  ExpectSound(m.s, m.workload);
}

TEST(LoopKinds, SayWhy) {
  Nest n(Matmul(4, 5, 6));
  EXPECT_TRUE(Says(Parallel(n.s, n.loops[2]), "parallel(k): the loop runs over v_k of block C, a reduction"));
  EXPECT_TRUE(Says(Vectorize(n.s, n.loops[2]), "vectorize(k): the loop runs over v_k of block C, a reduction"));
  EXPECT_TRUE(Says(Bind(n.s, n.loops[2], "blockIdx.x"), "a reduction"));
  EXPECT_TRUE(Says(Bind(n.s, n.loops[0], "threadIdx.q"), "there is no thread axis threadIdx.q"));
  Do(Parallel(n.s, n.loops[0]));
  EXPECT_TRUE(Says(Parallel(n.s, n.loops[0]), "the loop is parallel already"));
  EXPECT_TRUE(Says(Parallel(n.s, n.loops[1]), "it lies inside loop i, which is parallel; fuse the two"));
  EXPECT_TRUE(Says(Split(n.s, n.loops[0], {-1, 2}), "split(i): the loop is parallel; split it before it is made so"));
  Do(Vectorize(n.s, n.loops[1]));
  EXPECT_TRUE(Says(Vectorize(n.s, n.loops[1]), "the loop is vectorized already"));
  Do(Unroll(n.s, n.loops[2]));
  ExpectSound(n.s, n.workload);
  Nest large(TwoElementwise(5000, 1));
  EXPECT_TRUE(Says(Unroll(large.s, large.loops[0]), "5000 copies of the body, above 1024"));
  EXPECT_TRUE(Says(Vectorize(large.s, large.loops[0]), "above 1024 lanes"));
}

// Two halves of 57 products, three to a sum: the second half starts inside a sum, so steps of three do not hold one.
TEST(Vectorize, RefusesWhileLoops) {
  const absl::StatusOr<PrimFunc> halves = ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("C"):
            v_i = T.axis.spatial(4, i)
            T.reads(A[v_i])
            T.writes(C[v_i])
            C[v_i] = A[v_i]
            while 2 <= C[v_i]:
                C[v_i] = C[v_i] // 2
)");
  ASSERT_TRUE(halves.ok()) << halves.status();
  Nest n(*halves);
  EXPECT_TRUE(Says(Vectorize(n.s, n.loops[0]),
                   "vectorize(i): block C below has a while loop, which may end at another time in each lane"));
  EXPECT_TRUE(Parallel(n.s, n.loops[0]).ok());
}

TEST(LoopKinds, ASumIsNotSpreadOverIterations) {
  Nest n(Matmul(19, 1, 3));
  const std::vector<LoopRef> halves = Get(Split(n.s, Get(Fuse(n.s, n.loops)), {2, -1}));
  const LoopRef steps = Get(Split(n.s, halves[1], {-1, 3}))[0];
  for (const absl::Status& status : {Parallel(n.s, steps), Vectorize(n.s, steps)})
    EXPECT_TRUE(Says(status, "the sum of one element may be spread over iterations"));
}

TEST(LoopKinds, StepsOfWholeSumsMayBeParallel) {
  Nest n(Matmul(20, 1, 3));
  Do(Parallel(n.s, Get(Split(n.s, Get(Fuse(n.s, n.loops)), {-1, 6}))[0]));
  ExpectSound(n.s, n.workload);
}

TEST(LoopKinds, EveryIterationMustHaveElementsOfItsOwn) {
  Nest n(DenseRelu(4, 6, 3));
  const BlockRef d = Get(GetBlock(n.s, "D"));
  const std::vector<LoopRef> outer = Get(GetLoops(n.s, d));
  // Under j of D, C computes one column again and again: a parallel j is fine while C is private to an iteration.
  Do(ComputeAt(n.s, n.block, outer[1]));
  Do(Parallel(n.s, outer[0]));
  ExpectSound(n.s, n.workload);
  Nest m(Softmax(3, 4), "max");
  const std::vector<LoopRef> e = Get(GetLoops(m.s, Get(GetBlock(m.s, "exp"))));
  Do(ComputeAt(m.s, m.block, e[1]));
  EXPECT_TRUE(Says(Vectorize(m.s, e[1]), "block max below does not depend on the loop"));
}

TEST(AddUnitLoop, GoesAroundBlocksAndLoops) {
  Nest n(TwoElementwise(2, 3));
  Get(AddUnitLoop(n.s, n.block));
  const LoopRef u = Get(AddUnitLoop(n.s, n.loops[0]));
  Do(Parallel(n.s, u));
  EXPECT_EQ(Get(GetLoops(n.s, n.block)).size(), 4u);
  ExpectSound(n.s, n.workload);
}

TEST(Annotate, AddsReplacesAndRemoves) {
  Nest n(TwoElementwise(2, 3));
  Do(Annotate(n.s, n.block, "a", int64_t{1}));
  Do(Annotate(n.s, n.block, "a", std::string("two")));
  Do(Annotate(n.s, n.loops[0], "b", 0.5));
  EXPECT_EQ(std::get<std::string>(Get(n.s.FindBlock(n.block))->block.annotations.at("a")), "two");
  EXPECT_EQ(std::get<double>(Get(n.s.FindLoop(n.loops[0]))->annotations.at("b")), 0.5);
  ExpectSound(n.s, n.workload);
  Do(Unannotate(n.s, n.block, "a"));
  EXPECT_TRUE(Says(Unannotate(n.s, n.block, "a"), "there is no annotation a; there is none at all"));
  ExpectSound(n.s, n.workload);
}

}  // namespace
}  // namespace hone::testing
