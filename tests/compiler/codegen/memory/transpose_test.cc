// Loops that transpose, by blocks of rows and one by one: whole blocks, tails of rows and of lanes, types, and what
// else the loop computes.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

struct TransposeCase {
  const char* name;
  int rows, columns;  // of the result
  const char* type;
  const char* value;  // of row i and column j
};

class TransposeLoop : public ::testing::TestWithParam<TransposeCase> {};

TEST_P(TransposeLoop, AgreesWithTheInterpreter) {
  const TransposeCase& transpose = GetParam();
  for (const int block : {8, 32}) {
    SCOPED_TRACE(block);
    ExpectCompiledAgrees(ParseOrDie(absl::StrReplaceAll(
        R"py(
@T.prim_func
def main(A: T.Buffer((COLUMNS, ROWS), "TYPE"), D: T.Buffer((ROWS, COLUMNS), "TYPE"), C: T.Buffer((ROWS, COLUMNS), "TYPE")):
    T.func_attr({"outputs": 1})
    for i0 in T.parallel(BLOCKS):
        for j0 in range(VECTORS):
            for i1 in range(BLOCK):
                for j1 in T.vectorized(16):
                    with T.block("C"):
                        i = T.axis.spatial(ROWS, i0 * BLOCK + i1)
                        j = T.axis.spatial(COLUMNS, j0 * 16 + j1)
                        T.where(i0 * BLOCK + i1 < ROWS and j0 * 16 + j1 < COLUMNS)
                        C[i, j] = VALUE
)py",
        {{"BLOCKS", absl::StrCat((transpose.rows + block - 1) / block)},
         {"BLOCK", absl::StrCat(block)},
         {"VECTORS", absl::StrCat((transpose.columns + 15) / 16)},
         {"ROWS", absl::StrCat(transpose.rows)},
         {"COLUMNS", absl::StrCat(transpose.columns)},
         {"TYPE", transpose.type},
         {"VALUE", transpose.value}})));
  }
}

constexpr TransposeCase kTransposes[] = {
    {"WholeBlocks", 64, 48, "float32", "A[j, i]"},
    {"TailOfRows", 75, 48, "float32", "A[j, i]"},
    {"TailOfLanes", 64, 41, "float32", "A[j, i]"},
    {"BothTails", 49, 33, "float32", "A[j, i]"},
    {"FewerThanAVector", 40, 5, "float32", "A[j, i]"},
    {"Bytes", 70, 50, "int8", "A[j, i]"},
    {"Halves", 70, 50, "float16", "A[j, i]"},
    {"WideIntegers", 70, 50, "int64", "A[j, i]"},
    {"WithAnotherOperand", 49, 33, "float32", "A[j, i] * T.float32(2) + D[i, j]"},
};

INSTANTIATE_TEST_SUITE_P(All, TransposeLoop, ::testing::ValuesIn(kTransposes),
                         [](const auto& transpose) { return std::string(transpose.param.name); });

// Rows of padding behind the operand's last: where the condition does not hold there is nothing to be read.
TEST(PaddedTranspose, ReadsNothingBeyondItsOperand) {
  ExpectCompiledAgrees(ParseOrDie(R"py(
@T.prim_func
def main(A: T.Buffer((3, 4, 16), "float32"), C: T.Buffer((5, 4, 16), "float32")):
    T.func_attr({"outputs": 1})
    for i in range(5):
        for j in T.vectorized(4):
            for k in range(16):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                    C[vi, vj, vk] = T.if_then_else(vi < 3, A[vi, vj, vk], T.float32(0))
)py"));
}

}  // namespace
}  // namespace hone
