// compute_at and reverse_compute_at around blocks that run, or write, only in part.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/schedule/primitives/compute_at.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/rfactor.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/text/text.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

// Rows of 10 in steps of 4: the last step of the partial sums has a tail, whose condition moves with them.
TEST(ComputeAt, MovesTheConditionOfATail) {
  const PrimFunc workload = Matmul(3, 5, 10);
  Schedule s(workload);
  const BlockRef c = Get(GetBlock(s, "C"));
  const std::vector<LoopRef> loops = Get(GetLoops(s, c));
  const std::vector<LoopRef> k = Get(Split(s, loops[2], {-1, 4}));
  const BlockRef partial = Get(Rfactor(s, k[1], -1));
  ExpectSound(s, workload);
  Do(ComputeAt(s, partial, Get(GetLoops(s, c))[1]));
  EXPECT_EQ(Get(GetLoops(s, partial)).size(), 4u) << "rows, columns, and the two of the sum";
  ExpectSound(s, workload);
}

// `nest` computes the block "both", 5 x 8, of A; a block "C" reads its elements.
PrimFunc ReadBack(const char* columns_of_a, const char* nest) {
  return Get(ParsePrimFunc(absl::StrCat(R"(
@T.prim_func
def main(A: T.Buffer((5, )",
                                        columns_of_a, R"(), "float32"), C: T.Buffer((5, 8), "float32")):
    both = T.alloc_buffer((5, 8), "float32"))",
                                        nest, R"(    for i, j in T.grid(5, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(both[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = both[vi, vj]
)")));
}
absl::Status MoveReaderIntoInnerLoop(Schedule& s) {
  const std::vector<LoopRef> loops = Get(GetLoops(s, Get(GetBlock(s, "both"))));
  return ReverseComputeAt(s, Get(GetBlock(s, "C")), loops[1]);
}

// The region that a block declares is the hull of its stores. Between two that are apart lies what no iteration wrote.
TEST(ReverseComputeAt, RefusesWhatTwoStoresWriteApart) {
  Schedule s(ReadBack("4", R"(
    for i, j in T.grid(5, 4):
        with T.block("both"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(both[vi, vj:vj + 5])
            both[vi, vj] = A[vi, vj]
            both[vi, vj + 4] = A[vi, vj] * T.float32(3)
)"));
  EXPECT_TRUE(Says(MoveReaderIntoInnerLoop(s), "that no statement of it writes as a whole; it may have holes"));
}

// A loop in the body writes all of it.
TEST(ReverseComputeAt, TakesWhatALoopInTheBodyWrites) {
  const PrimFunc workload = ReadBack("8", R"(
    for i, j in T.grid(5, 2):
        with T.block("both"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj * 4:vj * 4 + 4])
            T.writes(both[vi, vj * 4:vj * 4 + 4])
            for k in range(4):
                both[vi, vj * 4 + k] = A[vi, vj * 4 + k]
)");
  Schedule s(workload);
  Do(MoveReaderIntoInnerLoop(s));
  ExpectSound(s, workload);
}

// Every second element of "b", which "C" reads, is made of as many of "a".
PrimFunc EverySecond(const char* extent_of_a, const char* at) {
  return Get(ParsePrimFunc(absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((2, 2), "float32")):
    a = T.alloc_buffer((8,), "float32")
    b = T.alloc_buffer((8,), "float32")
    for i in range(EXTENT):
        with T.block("a"):
            v = T.axis.spatial(8, AT)
            a[v] = A[v] * T.float32(2)
    for i in range(4):
        with T.block("b"):
            v = T.axis.spatial(8, i * 2)
            b[v] = a[v] + T.float32(1)
    for i, j in T.grid(2, 2):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = b[vi * 4 + vj * 2]
)",
                                               {{"EXTENT", extent_of_a}, {"AT", at}})));
}
absl::Status MoveEverySecond(Schedule& s) {
  return ComputeAt(s, Get(GetBlock(s, "b")), Get(GetLoops(s, Get(GetBlock(s, "C"))))[0]);
}

// In its new place "b" runs on the elements in between as well, and "a" has them not.
TEST(ComputeAt, RefusesAStridedBlockWhoseProducerMadeNoMoreThanItRead) {
  Schedule s(EverySecond("4", "i * 2"));
  EXPECT_TRUE(Says(MoveEverySecond(s), "leaves out elements in between"));
}

TEST(ComputeAt, TakesAStridedBlockWhoseProducerMadeAll) {
  const PrimFunc workload = EverySecond("8", "i");
  Schedule s(workload);
  Do(MoveEverySecond(s));
  ExpectSound(s, workload);
}

// ELEMENTS elements in rows of 3; "C" is all three rows, what the last one lacks a constant.
PrimFunc InRowsOfThree(const char* elements) {
  return Get(ParsePrimFunc(absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((ELEMENTS,), "float32"), C: T.Buffer((3, 3), "float32")):
    rows = T.alloc_buffer((3, 3), "float32")
    for i in range(ELEMENTS):
        with T.block("rows"):
            v = T.axis.spatial(ELEMENTS, i)
            rows[v // 3, v % 3] = A[v]
    for i, j in T.grid(3, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(vi * 3 + vj < ELEMENTS, rows[vi, vj], T.float32(-1))
)",
                                               {{"ELEMENTS", elements}})));
}
absl::Status MoveRowsOfThree(Schedule& s) {
  return ReverseComputeAt(s, Get(GetBlock(s, "C")), Get(GetLoops(s, Get(GetBlock(s, "rows"))))[0]);
}

// No element of "rows" is read unwritten, yet two of "C" would have no iteration that computes them.
TEST(ReverseComputeAt, RefusesTheLastRowOfAPaddedLayout) {
  Schedule s(InRowsOfThree("7"));
  EXPECT_TRUE(Says(MoveRowsOfThree(s), "where the producers under the loop never write"));
}

TEST(ReverseComputeAt, TakesRowsThatAreWhole) {
  const PrimFunc workload = InRowsOfThree("9");
  Schedule s(workload);
  Do(MoveRowsOfThree(s));
  ExpectSound(s, workload);
}

// One loop gives both variables of "b": it runs on the diagonal alone, and "C" is the whole square.
TEST(ReverseComputeAt, RefusesAProducerThatRunsOnADiagonal) {
  Schedule s(Get(ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4, 4), "float32")):
    b = T.alloc_buffer((4, 4), "float32")
    for i in range(4):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, i])
            b[vi, vj] = A[vi]
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(vi == vj, b[vi, vj], T.float32(-1))
)")));
  const absl::Status moved = ReverseComputeAt(s, Get(GetBlock(s, "C")), Get(GetLoops(s, Get(GetBlock(s, "b"))))[0]);
  EXPECT_TRUE(Says(moved, "where the producers under the loop never write"));
}

}  // namespace
}  // namespace hone::testing
