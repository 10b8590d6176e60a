// Vectors that lowering makes of long loops are as wide as the target's, by the type of what is in them.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_replace.h"
#include "compiler/ir/visit.h"
#include "tests/compiler/lower/check_passes.h"

namespace hone {
namespace {

int WidestStore(const PrimFunc& func) {
  int lanes = 1;
  ForEachStmt(func.body, [&](const Stmt& s) {
    if (const Store* store = s.As<Store>()) lanes = std::max<int>(lanes, store->indices[0].type().lanes);
    return true;
  });
  return lanes;
}

struct LanesCase {
  const char* name;
  const char *from, *to;
  int vector_bits, lanes;
};
class TargetLanes : public ::testing::TestWithParam<LanesCase> {
 protected:
  void ExpectLanes(const char* text) {
    const auto& [name, from, to, bits, lanes] = GetParam();
    const PrimFunc func = ParseOrDie(absl::StrReplaceAll(text, {{"FROM", from}, {"TO", to}}));
    const LowerOptions options{.vector_bits = bits};
    const absl::StatusOr<LoweredFunc> lowered = Lower(func, options);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(WidestStore(lowered->func), lanes) << ToText(lowered->func);
    CheckPasses(func, options);
  }
};

TEST_P(TargetLanes, OfPiecesOfALongLoop) {
  ExpectLanes(R"(
@T.prim_func
def main(A: T.Buffer((1000,), "FROM"), C: T.Buffer((1000,), "TO")):
    for i in T.vectorized(1000):
        C[i] = T.Cast("TO", A[i])
)");
}

TEST_P(TargetLanes, OfSumsInATree) {
  ExpectLanes(R"(
@T.prim_func
def main(A: T.Buffer((128,), "FROM"), C: T.Buffer((1,), "TO")):
    C[0] = T.Cast("TO", 0)
    for i in T.unroll(128):
        C[0] = C[0] + T.Cast("TO", A[i])
)");
}

INSTANTIATE_TEST_SUITE_P(Types, TargetLanes,
                         ::testing::Values(LanesCase{"Float32Avx512", "float32", "float32", 512, 16},
                                           LanesCase{"Float32Avx2", "float32", "float32", 256, 8},
                                           LanesCase{"Float32Neon", "float32", "float32", 128, 4},
                                           LanesCase{"Float64Avx512", "float64", "float64", 512, 8},
                                           LanesCase{"BytesWidened", "int8", "int32", 256, 8},
                                           LanesCase{"Int64", "int64", "int64", 256, 4}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone
