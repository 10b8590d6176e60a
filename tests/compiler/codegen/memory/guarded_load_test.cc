// Loads that a condition guards, A[i] if inside else a constant: outside, memory is not read, whatever the index.
// Tensors end at an unreadable page, so that a read past the end would show.
#include "absl/strings/match.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

constexpr char kPaddedTiles[] = R"py(
@T.prim_func
def main(A: T.Buffer((8, 8, 16), "float32"), C: T.Buffer((8, 8, 16), "float32")):
    for i, o in T.grid(8, 2):
        R = T.allocate((4, 16), "float32", scope="local")
        for j in T.unroll(4):
            for c in T.vectorized(16):
                R[j, c] = T.float32(0)
        for k, l in T.grid(3, 3):
            for j in T.unroll(4):
                for c in T.vectorized(16):
                    R[j, c] = R[j, c] + T.if_then_else(0 < i + k and i + k < 9 and 0 < o * 4 + j + l and o * 4 + j + l < 9, A[i + k - 1, o * 4 + j + l - 1, c], T.float32(-2))
        for j in T.unroll(4):
            for c in T.vectorized(16):
                C[i, o * 4 + j, c] = R[j, c]
)py";

TEST(GuardedLoads, OfAPaddingAgreeWithTheInterpreter) { ExpectCompiledAgrees(ParseOrDie(kPaddedTiles)); }

TEST(GuardedLoads, ChooseAnAddress) {
  const absl::StatusOr<Target> target = ParseTarget("cpu:x86-64-v4");
  ASSERT_TRUE(target.ok()) << target.status();
  const absl::StatusOr<std::string> assembly =
      CompileToAssembly(ScheduledProgram{ParseOrDie(kPaddedTiles), {}}, *target);
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  EXPECT_TRUE(absl::StrContains(*assembly, "cmov")) << *assembly;
}

TEST(GuardedLoads, OfNarrowAndWideTypes) {
  ExpectCompiledAgrees(ParseOrDie(R"py(
@T.prim_func
def main(A: T.Buffer((7,), "int8"), B: T.Buffer((7,), "float64"), C: T.Buffer((9,), "int8"), D: T.Buffer((9,), "float64")):
    for i in range(9):
        C[i] = T.if_then_else(0 < i and i < 8, A[i - 1], T.int8(-3))
        D[i] = T.if_then_else(0 < i and i < 8, B[i - 1], T.float64(0.1))
)py"));
}

// What the index is made of is not there either.
TEST(GuardedLoads, WithIndicesFromMemoryStayBehindTheGuard) {
  ExpectCompiledAgrees(ParseOrDie(R"py(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((4096,), "float32")):
    K = T.allocate((16,), "int32", scope="global")
    for i in range(16):
        K[i] = 15 - i
    for i in range(4096):
        C[i] = T.if_then_else(i < 16, A[K[i]], T.float32(1))
)py"));
}

TEST(GuardedLoads, WithADivisionByWhatMayBeZeroStayBehindTheGuard) {
  ExpectCompiledAgrees(ParseOrDie(R"py(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((4, 16), "float32")):
    for n, i in T.grid(4, 16):
        C[n, i] = T.if_then_else(0 < n, A[i // n], T.float32(1))
)py"));
}

}  // namespace
}  // namespace hone
