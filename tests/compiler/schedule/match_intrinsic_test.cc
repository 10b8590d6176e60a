// Which computations of a block are those of an intrinsic, operation by operation.
#include "compiler/schedule/analysis/match_intrinsic.h"

#include "absl/strings/str_cat.h"
#include "compiler/schedule/analysis/divide_block.h"
#include "compiler/schedule/schedule.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic_rows.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/expect.h"

namespace hone::testing {
namespace {

// What no row of the registry has yet: selections, functions, a negation and comparisons.
const TileIntrinsic& ChoosesNumbers() {
  static const auto& row = *new TileIntrinsic(MakeTileIntrinsic("choose_f32", R"(
@T.prim_func
def choose(n: T.int32, A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32"), C: T.Buffer((n,), "float32")):
    for j in range(n):
        with T.block("choose"):
            vn = T.axis.spatial(n, j)
            C[vn] = T.Select(not T.isnan(A[vn]), T.exp(A[vn]) + B[vn], T.float32(0))
)",
                                                                {}));
  return row;
}

const TileIntrinsic& ChoosesTheSmaller() {
  static const auto& row = *new TileIntrinsic(MakeTileIntrinsic("choose_smaller_f32", R"(
@T.prim_func
def choose(n: T.int32, A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32"), C: T.Buffer((n,), "float32")):
    for j in range(n):
        with T.block("choose"):
            vn = T.axis.spatial(n, j)
            C[vn] = T.Select(A[vn] < B[vn], A[vn], B[vn])
)",
                                                                {}));
  return row;
}

struct OperationCase {
  const char *name, *value, *message;  // "": it matches
  const TileIntrinsic& (*intrinsic)() = ChoosesNumbers;
};
class MatchedOperations : public ::testing::TestWithParam<OperationCase> {};
TEST_P(MatchedOperations, MatchOrSayWhy) {
  const OperationCase& c = GetParam();
  const Schedule s(Get(ParsePrimFunc(absl::StrCat(R"(
@T.prim_func
def main(D: T.Buffer((8,), "float32"), E: T.Buffer((8,), "float32"), F: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("F"):
            v = T.axis.spatial(8, i)
            F[v] = )",
                                                  c.value, "\n"))));
  const ProgramIndex& index = s.index();
  const int loop = index.parent(index.FindBlock("F"));
  const DividedBlock divided = Get(DivideBlock(index, loop, "match"));
  const absl::StatusOr<MatchedTile> tile = MatchIntrinsic(index, divided, c.intrinsic(), "match");
  if (*c.message != '\0') {
    EXPECT_TRUE(Says(tile, c.message));
    return;
  }
  ASSERT_TRUE(tile.ok()) << tile.status();
  ASSERT_EQ(tile->op.operands.size(), 3u);
  EXPECT_EQ(tile->op.operands[0].buffer.name(), "F");
  EXPECT_EQ(tile->op.operands[1].buffer.name(), "D");
  EXPECT_EQ(tile->op.operands[2].buffer.name(), "E");
}
INSTANTIATE_TEST_SUITE_P(
    Cases, MatchedOperations,
    ::testing::Values(
        OperationCase{"Same", "T.Select(not T.isnan(D[v]), T.exp(D[v]) + E[v], T.float32(0))", ""},
        OperationCase{"SumTheOtherWayRound", "T.Select(not T.isnan(D[v]), E[v] + T.exp(D[v]), T.float32(0))", ""},
        OperationCase{"AnotherFunction", "T.Select(not T.isnan(D[v]), T.exp2(D[v]) + E[v], T.float32(0))",
                      "it computes T.exp2(D[v]) where the intrinsic has another operation"},
        OperationCase{"WithoutTheNegation", "T.Select(T.isnan(D[v]), T.exp(D[v]) + E[v], T.float32(0))",
                      "it computes T.isnan(D[v]) where the intrinsic has another operation"},
        OperationCase{"AnotherSide", "T.Select(not T.isnan(D[v]), T.exp(D[v]) + E[v], T.float32(1))",
                      "it computes T.float32(1), not T.float32(0)"},
        OperationCase{"AnotherCondition", "T.Select(not T.isnan(E[v]), T.exp(D[v]) + E[v], T.float32(0))",
                      "D is used where the intrinsic has E again, at the same place"},
        OperationCase{"ABranch", "T.if_then_else(not T.isnan(D[v]), T.exp(D[v]) + E[v], T.float32(0))",
                      "where the intrinsic has another operation"},
        OperationCase{"AComparison", "T.Select(D[v] < E[v], D[v], E[v])", "", ChoosesTheSmaller},
        OperationCase{"AComparisonFromTheOtherSide", "T.Select(E[v] > D[v], D[v], E[v])", "", ChoosesTheSmaller},
        OperationCase{"TheOtherComparison", "T.Select(D[v] > E[v], D[v], E[v])", "is used where the intrinsic has",
                      ChoosesTheSmaller},
        OperationCase{"AnotherComparison", "T.Select(D[v] <= E[v], D[v], E[v])",
                      "it computes D[v] <= E[v] where the intrinsic has another operation", ChoosesTheSmaller},
        OperationCase{"TheLarger", "T.Select(D[v] < E[v], E[v], D[v])", "is used where the intrinsic has",
                      ChoosesTheSmaller},
        OperationCase{"AComparisonOfOthers", "T.Select(D[v] < D[v], D[v], E[v])", "is used where the intrinsic has",
                      ChoosesTheSmaller}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone::testing
