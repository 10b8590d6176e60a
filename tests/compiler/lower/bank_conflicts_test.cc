// Bank conflicts of accesses whose count is known.
#include "compiler/lower/threads/bank_conflicts.h"

#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "compiler/text/text.h"

namespace hone {
namespace {

// What the first statement asks for that begins like this; all counts where there is none.
BankCount CountOf(const PrimFunc& scheduled, const std::string& statement) {
  const absl::StatusOr<DeviceProgram> program = LowerToDevice(scheduled);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  const auto counts = CountBankConflicts(program->launches[0], program->kernels[0]);
  EXPECT_TRUE(counts.ok()) << counts.status();
  if (!counts.ok()) return {};
  for (const BankCount& count : *counts)
    if (count.statement.starts_with(statement)) return count;
  ADD_FAILURE() << "nothing begins with " << statement << " in\n" << ToText(program->kernels[0].body);
  return {};
}

// Each lane writes one element of shared memory, and reads that of another.
struct Case {
  const char *name, *type, *written;
  int64_t turns;
};
class BankConflicts : public ::testing::TestWithParam<Case> {};
TEST_P(BankConflicts, AreCounted) {
  const auto f = ParsePrimFunc(absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((32,), "TYPE"), B: T.Buffer((2048,), "TYPE")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        S = T.allocate((2048,), "TYPE", scope="shared")
        S[WRITTEN] = A[t]
        B[WRITTEN] = S[WRITTEN]
)",
                                                   {{"TYPE", GetParam().type}, {"WRITTEN", GetParam().written}}));
  ASSERT_TRUE(f.ok()) << f.status();
  const BankCount count = CountOf(*f, "S[");
  EXPECT_EQ(count.requests, 1);
  EXPECT_EQ(count.turns, GetParam().turns);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, BankConflicts,
    ::testing::Values(Case{"Neighbours", "float32", "t", 1}, Case{"EverySecond", "float32", "t * 2", 2},
                      Case{"OneBank", "float32", "t * 32", 32}, Case{"ThreeApart", "float32", "t * 3", 1},
                      Case{"TwoInAWord", "float16", "t", 1}, Case{"RowsOfBytes", "int8", "t % 4 * 512 + t // 4", 4},
                      Case{"Doubles", "float64", "t", 2}),
    [](const auto& info) { return std::string(info.param.name); });

// Rows of 64 bytes that a warp loads as four matrices: pieces of 8 rows above one another.
std::string Rows(const std::string& annotation) {
  return absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((16, 32), "bfloat16"), C: T.Buffer((32, 8), "bfloat16")):
    S = T.alloc_buffer((16, 32), "bfloat16", scope="shared")
    for t in T.thread_binding(32, thread="threadIdx.x"):
        for i in range(2):
            for v in T.vectorized(8):
                with T.block("S"):
                    vi = T.axis.spatial(16, i * 8 + t // 4)
                    vj = T.axis.spatial(32, t % 4 * 8 + v)
                    ANNOTATION
                    S[vi, vj] = A[vi, vj]
        for k in T.unroll(2):
            with T.block("C"):
                vt, vk = T.axis.remap("SR", [t, k])
                T.reads(S[0:16, vk * 16:vk * 16 + 16])
                T.writes(C[vt, 0:8])
                d = T.alloc_buffer((8,), "bfloat16", scope="local")
                T.tile_op("ldmatrix_x4_bf16", d[0:8], S[vt % 16, vk * 16 + vt // 16 * 8:vk * 16 + vt // 16 * 8 + 8], accumulates=False)
                for r in range(8):
                    C[vt, r] = d[r]
)",
                             {{"ANNOTATION", annotation}});
}
TEST(BankConflictsOfMatrices, GoWithPaddingAndWithASwizzle) {
  struct Row {
    const char* annotation;
    int64_t turns;  // of four matrices
  };
  for (const Row& row : {Row{"T.block_attr({})", 16}, Row{"T.block_attr({\"storage_swizzle\": [0]})", 4},
                         Row{"T.block_attr({\"buffer_dim_align\": [0, 0, 16, 8]})", 4}}) {
    SCOPED_TRACE(row.annotation);
    const auto f = ParsePrimFunc(Rows(row.annotation));
    ASSERT_TRUE(f.ok()) << f.status();
    const BankCount count = CountOf(*f, "T.tile_op(\"ldmatrix_x4_bf16\"");
    EXPECT_EQ(count.requests, 1);
    EXPECT_EQ(count.least, 4);
    EXPECT_EQ(count.turns, row.turns);
    const BankCount written = CountOf(*f, "S[");
    EXPECT_EQ(written.requests, 2);
    EXPECT_EQ(written.least, 8);
  }
}

TEST(BankConflictsOfMatrices, DependOnNoData) {
  const auto f = ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        S = T.allocate((32,), "int32", scope="shared")
        S[A[t]] = t
        B[t] = S[t]
)");
  ASSERT_TRUE(f.ok()) << f.status();
  const absl::StatusOr<DeviceProgram> program = LowerToDevice(*f);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(CountBankConflicts(program->launches[0], program->kernels[0]).status().message(),
            "bank conflicts cannot be counted: A[threadIdx_x] depends on data");
}

}  // namespace
}  // namespace hone
