// Results that go past the caches: they are what they were, vectors that fill their part of a line are stored so and no
// others, and a fence stands before another thread may read.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 3 rows of `columns`, in vectors of 16; the rows in loops of the kind.
PrimFunc Doubled(int columns, const char* rows, const char* annotation, const char* type = "float32") {
  return ParseOrDie(absl::StrReplaceAll(R"py(
@T.prim_func
def main(A: T.Buffer((3, COLUMNS), "TYPE"), C: T.Buffer((3, COLUMNS), "TYPE")):
    T.func_attr({"outputs": 1})
    for i in ROWS(3):
        for j0 in range(VECTORS):
            for j1 in T.vectorized(16):
                with T.block("C"):
                    v_i = T.axis.spatial(3, i)
                    v_j = T.axis.spatial(COLUMNS, j0 * 16 + j1)
                    T.where(j0 * 16 + j1 < COLUMNS)
                    T.reads(A[v_i, v_j])
                    T.writes(C[v_i, v_j])
                    ANNOTATION
                    C[v_i, v_j] = A[v_i, v_j] + A[v_i, v_j]
)py",
                                        {{"COLUMNS", absl::StrCat(columns)},
                                         {"VECTORS", absl::StrCat((columns + 15) / 16)},
                                         {"ROWS", rows},
                                         {"TYPE", type},
                                         {"ANNOTATION", annotation}}));
}
constexpr char kPast[] = "T.block_attr({\"streamed\": [0]})", kThrough[] = "T.block_attr({\"streamed\": [1]})";

std::string AssemblyOf(const PrimFunc& func, const char* target = "cpu:x86-64-v4") {
  const absl::StatusOr<std::string> text = CompileToAssembly(ScheduledProgram{func, {}}, *ParseTarget(target));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

TEST(StreamedStore, IsWhatItWas) {
  for (const char* rows : {"range", "T.parallel"}) {
    for (const int columns : {48, 64, 41}) {
      for (const char* type : {"float32", "int8", "int64"}) {
        SCOPED_TRACE(absl::StrCat(rows, " ", columns, " ", type));
        ExpectCompiledAgrees(Doubled(columns, rows, kPast, type));
      }
    }
  }
}

TEST(StreamedStore, GoesPastTheCachesAndIsFenced) {
  for (const char* rows : {"range", "T.parallel"}) {
    for (const char* target : {"cpu:x86-64-v4", "cpu:x86-64-v3"}) {
      SCOPED_TRACE(absl::StrCat(rows, " ", target));
      const std::string text = AssemblyOf(Doubled(48, rows, kPast), target);
      EXPECT_THAT(text, HasSubstr("\tvmovntps"));
      EXPECT_LT(text.find("\tvmovntps"), text.find("\tsfence")) << text;
      EXPECT_THAT(text, HasSubstr("\tsfence"));
    }
  }
}

TEST(StreamedStore, ThatDoesNotFillItsPartOfALineGoesThrough) {
  EXPECT_THAT(AssemblyOf(Doubled(41, "range", kPast)), Not(HasSubstr("\tvmovnt")));  // rows begin anywhere
}

TEST(StreamedStore, IsOneThatWasAskedFor) {
  const std::string text = AssemblyOf(Doubled(48, "T.parallel", kThrough));
  EXPECT_THAT(text, Not(HasSubstr("\tvmovnt")));
  EXPECT_THAT(text, Not(HasSubstr("\tsfence")));
}

// Written by one loop and read by another thread in the next: a fence lies between the two.
TEST(StreamedStore, IsDoneBeforeThreadsAreHandedWork) {
  const PrimFunc func = ParseOrDie(R"py(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((4, 16), "float32")):
    T.func_attr({"outputs": 2})
    for i0 in range(4):
        for i1 in T.vectorized(16):
            with T.block("B"):
                i = T.axis.spatial(64, i0 * 16 + i1)
                T.reads(A[i])
                T.writes(B[i])
                T.block_attr({"streamed": [0]})
                B[i] = A[i] + A[i]
    for i in T.parallel(4):
        for j in T.vectorized(16):
            with T.block("C"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(A[v_j], B[v_i * 16 + v_j])
                T.writes(C[v_i, v_j])
                C[v_i, v_j] = B[v_i * 16 + v_j] + A[v_j]
)py");
  ExpectCompiledAgrees(func);
  const std::string text = AssemblyOf(func);
  const size_t stored = text.find("\tvmovntps"), fenced = text.find("\tsfence"), handed = text.find("\tcallq");
  ASSERT_NE(handed, std::string::npos) << text;
  EXPECT_LT(stored, fenced) << text;
  EXPECT_LT(fenced, handed) << text;
}

}  // namespace
}  // namespace hone
