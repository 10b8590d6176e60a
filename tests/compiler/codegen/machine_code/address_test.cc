// Addresses in the machine code: computed where the loops begin that they follow from, shared, and taken along.
#include <string>

#include "gmock/gmock.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

constexpr char kProductOfTiles[] = R"py(
@T.prim_func
def main(A: T.Buffer((12, 40), "float32"), B: T.Buffer((40, 96), "float32"), C: T.Buffer((12, 96), "float32")):
    for i, j in T.grid(3, 3):
        R = T.allocate((4, 32), "float32", scope="local")
        for a in T.unroll(4):
            for b in T.unroll(2):
                for c in T.vectorized(16):
                    R[a, b * 16 + c] = T.float32(0)
        for k in range(40):
            for a in T.unroll(4):
                for b in T.unroll(2):
                    for c in T.vectorized(16):
                        R[a, b * 16 + c] = R[a, b * 16 + c] + A[i * 4 + a, k] * B[k, j * 32 + b * 16 + c]
        for a in T.unroll(4):
            for b in T.unroll(2):
                for c in T.vectorized(16):
                    C[i * 4 + a, j * 32 + b * 16 + c] = R[a, b * 16 + c]
)py";

// A multiply-add that reads memory by two registers takes a turn more of the processor's front.
TEST(Addresses, LoopsTakePointersAlong) {
  const PrimFunc product = ParseOrDie(kProductOfTiles);
  ExpectCompiledAgrees(product);
  for (const char* name : {"cpu:skylake-avx512", "cpu:znver4"}) {
    const absl::StatusOr<std::string> assembly =
        CompileToAssembly(ScheduledProgram{product, {}}, *ParseTarget(name), {.threads = 1});
    ASSERT_TRUE(assembly.ok()) << assembly.status();
    EXPECT_THAT(*assembly, testing::Not(testing::ContainsRegex("[(]%r[a-z0-9]+,")));
  }
}

// What stands in front of a loop is computed although nothing may ask for it.
TEST(Addresses, AreNotDividedWhereNobodyAsks) {
  ExpectCompiledAgrees(ParseOrDie(R"py(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        C[i, j] = T.float32(0)
        if j > 0:
            for k in range(3):
                C[i, j] = C[i, j] + A[i // j]
)py"));
}

TEST(Addresses, OfLoopsThatBeginAnywhereAndMayBeEmpty) {
  ExpectCompiledAgrees(ParseOrDie(R"py(
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        C[i, j] = T.float32(1)
    for i in range(8):
        for j in T.serial(i, 8 - i):
            for k in T.serial(j, 8 - j):
                C[k, i] = C[k, i] + A[j, k] * A[7 - k, i]
)py"));
}

// More of them than registers hold.
TEST(Addresses, OfManyBuffersInOneLoop) {
  std::string params, sum = "T.float32(0)";
  for (int i = 0; i < 20; ++i) {
    params += "A" + std::to_string(i) + ": T.Buffer((5, 7), \"float32\"), ";
    sum += " + A" + std::to_string(i) + "[i, " + (i % 2 == 0 ? "j]" : "6 - j]");
  }
  ExpectCompiledAgrees(
      ParseOrDie("@T.prim_func\ndef main(" + params +
                 "C: T.Buffer((5, 7), \"float32\")):\n    for i, j in T.grid(5, 7):\n        C[i, j] = " + sum + "\n"));
}

}  // namespace
}  // namespace hone
