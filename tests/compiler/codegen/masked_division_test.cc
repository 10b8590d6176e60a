// Integer division in vectors whose last lanes lie beyond the end: those lanes hold no divisor.
#include "absl/strings/str_replace.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

constexpr char kDivision[] = R"py(
@T.prim_func
def main(A: T.Buffer((13,), "TYPE"), B: T.Buffer((13,), "TYPE"), C: T.Buffer((13,), "TYPE")):
    T.func_attr({"outputs": 1, "domains": ["int[-50,50)", "int[1,9)", ""]})
    for i0 in range(2):
        for i1 in T.vectorized(8):
            with T.block("C"):
                i = T.axis.spatial(13, i0 * 8 + i1)
                T.where(i0 * 8 + i1 < 13)
                T.reads(A[i], B[i])
                T.writes(C[i])
                C[i] = QUOTIENT
)py";

TEST(MaskedDivision, LanesBeyondTheEndDoNotDivide) {
  for (const char* op : {"T.truncdiv(A[i], B[i])", "T.truncmod(A[i], B[i])", "A[i] // B[i]", "A[i] % B[i]"}) {
    for (const char* type : {"int32", "int64"}) {
      SCOPED_TRACE(std::string(op) + " of " + type);
      ExpectCompiledAgrees(ParseOrDie(absl::StrReplaceAll(kDivision, {{"TYPE", type}, {"QUOTIENT", op}})));
    }
  }
}

}  // namespace
}  // namespace hone
