// What registers hold that nobody wrote is what an accumulator without a start would keep.
#include "compiler/codegen/unwritten.h"

#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "compiler/text/text.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

int ByteOf(const std::string& type, const std::string& update) {
  const PrimFunc func = ParseOrDie(absl::StrReplaceAll(R"py(
@T.prim_func
def main(A: T.Buffer((8,), "TYPE"), C: T.Buffer((1,), "TYPE")):
    for i in range(8):
        UPDATE
)py",
                                                       {{"TYPE", type}, {"UPDATE", update}}));
  return UnwrittenByte(func.params[1], func.body);
}

TEST(UnwrittenByte, IsNaNForSumsAndProducts) {
  EXPECT_EQ(ByteOf("float32", "C[0] = C[0] + A[i]"), 0xff);
  EXPECT_EQ(ByteOf("float64", "C[0] = C[0] * A[i]"), 0xff);
}

TEST(UnwrittenByte, IsTheEndThatIsKept) {
  EXPECT_EQ(ByteOf("float32", "C[0] = T.max(C[0], A[i])"), 0x7a);
  EXPECT_EQ(ByteOf("float32", "C[0] = T.min(A[i], C[0])"), 0xfb);
  EXPECT_EQ(ByteOf("int32", "C[0] = T.max(C[0], A[i])"), 0x7f);
  EXPECT_EQ(ByteOf("int8", "C[0] = T.min(C[0], A[i])"), 0x80);
  EXPECT_EQ(ByteOf("uint8", "C[0] = T.max(C[0], A[i])"), 0xff);
  EXPECT_EQ(ByteOf("uint8", "C[0] = T.min(C[0], A[i])"), 0x00);
  EXPECT_EQ(ByteOf("bool", "C[0] = C[0] or A[i]"), 1);
  EXPECT_EQ(ByteOf("bool", "C[0] = C[0] and A[i]"), 0);
}

TEST(UnwrittenByte, FollowsComparisonsFromEitherSide) {
  EXPECT_EQ(ByteOf("float32", "C[0] = T.Select(C[0] > A[i], C[0], A[i])"), 0x7a);
  EXPECT_EQ(ByteOf("float32", "C[0] = T.Select(A[i] > C[0], A[i], C[0])"), 0x7a);
  EXPECT_EQ(ByteOf("float32", "C[0] = T.Select(C[0] <= A[i], C[0], A[i])"), 0xfb);
  EXPECT_EQ(ByteOf("float32", "C[0] = T.Select(C[0] >= A[i], A[i], C[0])"), 0xfb);
}

TEST(UnwrittenByte, LooksThroughDefinitions) {
  EXPECT_EQ(ByteOf("float32", R"(best: T.float32 = T.Select(C[0] < A[i] or C[0] == A[i], C[0], A[i])
        C[0] = best)"),
            0xfb);
}

// Least elements, started on the diagonal alone, which no check of the program finds: the others do not come out right
// by luck.
TEST(Unwritten, AStaleAccumulatorShows) {
  const PrimFunc stale = ParseOrDie(R"py(
@T.prim_func
def main(A: T.Buffer((2, 2, 8), "float32"), C: T.Buffer((2, 2), "float32")):
    least = T.alloc_buffer((2, 2), "float32", scope="local")
    for i in T.unroll(2):
        for j in T.unroll(2):
            for k in range(8):
                with T.block("least"):
                    v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                    T.reads(A[v_i, v_j, v_k])
                    T.writes(least[v_i, v_j])
                    with T.init():
                        if v_i == v_j:
                            least[v_i, v_j] = T.float32("inf")
                    least[v_i, v_j] = T.Select(least[v_i, v_j] < A[v_i, v_j, v_k], least[v_i, v_j], A[v_i, v_j, v_k])
            with T.block("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(least[v_i, v_j])
                T.writes(C[v_i, v_j])
                C[v_i, v_j] = least[v_i, v_j]
)py");
  const absl::StatusOr<CompiledKernel> kernel = CompileKernel(ScheduledProgram{stale, {}}, HostTarget());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<NdArray> args = RandomArguments(stale, 7, InputKind::kUniform);
  ASSERT_TRUE(RunCompiled(*kernel, args).ok());
  EXPECT_GE(args[1].Get(0), -1);
  EXPECT_LT(args[1].Get(1), -1e30);
  EXPECT_LT(args[1].Get(2), -1e30);
  EXPECT_GE(args[1].Get(3), -1);
}

}  // namespace
}  // namespace hone
