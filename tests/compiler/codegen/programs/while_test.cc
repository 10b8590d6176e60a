// Loops of which nobody knows how often they run, compiled: what their rounds leave behind in memory is what the next
// round and the code after them see, whatever lowering does with the memory.
#include "gmock/gmock.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

struct Case {
  const char* name;
  const char* text;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"BinarySearch", R"(
@T.prim_func
def main(A: T.Buffer((40,), "float32"), x: T.Buffer((9,), "float32"), C: T.Buffer((9,), "int32")):
    for i in range(9):
        with T.block("upper_bound"):
            vi = T.axis.spatial(9, i)
            T.reads(A[0:40], x[vi])
            T.writes(C[vi])
            ends = T.alloc_buffer((2,), "int32")
            ends[0] = 0
            ends[1] = 40
            while ends[0] < ends[1]:
                middle: T.int32 = T.min((ends[0] + ends[1]) // 2, 39)
                if A[middle] <= x[vi]:
                    ends[0] = middle + 1
                else:
                    ends[1] = middle
            C[vi] = ends[0]
)"},
    // The element that a variable index names is another one in every round.
    {"ScratchByAnIndexFromMemory", R"(
@T.prim_func
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    with T.block("C"):
        T.reads(A[0:6])
        T.writes(C[0:6])
        at = T.alloc_buffer((1,), "int32")
        seen = T.alloc_buffer((6,), "int32")
        at[0] = 0
        while at[0] < 6:
            seen[at[0]] = A[at[0]] * 2
            at[0] = at[0] + 1
        while at[0] > 0:
            at[0] = at[0] - 1
            C[at[0]] = seen[5 - at[0]]
)"},
    // One round writes what the next one reads, and nothing outside touches it.
    {"ScratchOfTheBodyAlone", R"(
@T.prim_func
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    with T.block("C"):
        T.reads(A[0:6])
        T.writes(C[0:6])
        at = T.alloc_buffer((1,), "int32")
        before = T.alloc_buffer((1,), "int32")
        after = T.alloc_buffer((1,), "int32")
        at[0] = 0
        while at[0] < 6:
            if at[0] == 0:
                before[0] = 1
            after[0] = before[0] + A[at[0]]
            C[at[0]] = after[0]
            before[0] = after[0]
            at[0] = at[0] + 1
)"},
    // The second test of the same condition is another one.
    {"ConditionAskedTwice", R"(
@T.prim_func
def main(A: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = T.bitwise_and(A[vi], 15)
            while C[vi] < 20:
                C[vi] = C[vi] + 3
                if C[vi] < 20:
                    C[vi] = C[vi] + 4
                    if C[vi] < 20:
                        C[vi] = C[vi] + 1
)"},
    {"NestedInParallel", R"(
@T.prim_func
def main(A: T.Buffer((13,), "int32"), C: T.Buffer((13,), "int32")):
    for i in T.parallel(13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            n = T.alloc_buffer((2,), "int32", scope="local")
            n[0] = T.bitwise_and(A[vi], 31)
            C[vi] = 0
            while n[0] > 0:
                n[1] = n[0]
                while n[1] > 0:
                    C[vi] = C[vi] + n[1]
                    n[1] = n[1] - 2
                n[0] = n[0] - 3
)"},
    // Lanes would leave it at different times: the loop around it stays one.
    {"InAVectorisedLoop", R"(
@T.prim_func
def main(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    for i in T.vectorized(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = T.bitwise_and(A[vi], 31)
            while C[vi] > 3:
                C[vi] = C[vi] // 2
)"},
};

class CompiledWhile : public ::testing::TestWithParam<Case> {};

TEST_P(CompiledWhile, AgreesWithTheInterpreter) { ExpectCompiledAgrees(ParseOrDie(GetParam().text)); }

INSTANTIATE_TEST_SUITE_P(All, CompiledWhile, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone
