// Tiles that read beyond the border of an image where they stand at one.
#include <gtest/gtest.h>

#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "tests/compiler/lower/check_passes.h"

namespace hone::testing {
namespace {

// Sides of conditions that add up without a condition.
int FreeTiles(const Stmt& body) {
  int found = 0;
  ForEachStmt(body, [&](const Stmt& stmt) {
    const IfThen* branch = stmt.As<IfThen>();
    if (branch == nullptr) return true;
    bool free = true;
    ForEachStmt(branch->yes, [&](const Stmt& inner) {
      const Store* store = inner.As<Store>();
      free = free && inner.As<IfThen>() == nullptr;
      if (store == nullptr) return true;
      ForEachExpr(store->value, [&](const Expr& e) {
        free = free && e.As<IfThenElseExpr>() == nullptr;
        return true;
      });
      return true;
    });
    found += free ? 1 : 0;
    return true;
  });
  return found;
}

// A window of three over 40 elements and a border of one, four results at a time.
constexpr const char* kWindow = R"(
@T.prim_func
def main(X: T.Buffer((40,), "float32"), P: T.Buffer((64,), "float32"), Y: T.Buffer((40,), "float32")):
    for o in range(10):
        sums = T.allocate((4,), "float32", scope="local")
        for i in T.unroll(4):
            sums[i] = T.float32(0)
        if o < 4:
            T.evaluate(T.prefetch(P[o * 16]))
            for k in range(3):
                for i in T.unroll(4):
                    sums[i] = sums[i] + T.if_then_else(0 < o * 4 + i + k and o * 4 + i + k < 41, X[o * 4 + i + k - 1], T.float32(0))
        else:
            for k in range(3):
                for i in T.unroll(4):
                    sums[i] = sums[i] + T.if_then_else(0 < o * 4 + i + k and o * 4 + i + k < 41, X[o * 4 + i + k - 1], T.float32(0))
        for i in T.unroll(4):
            Y[o * 4 + i] = sums[i]
)";

// Which tiles also ask for what is needed next has nothing to do with the border.
TEST(SplitBorders, BothSidesOfAConditionAroundTheTileHaveAVersionInside) {
  PrimFunc func = ParseOrDie(kWindow);
  const PrimFunc before = func;
  func.body = SplitBorders(func.body);
  EXPECT_EQ(FreeTiles(func.body), 2) << ToText(func);
  std::vector<NdArray> want = RandomArguments(before, 3, InputKind::kInteger);
  std::vector<NdArray> got = want;
  ASSERT_TRUE(Interpret(before, want).ok());
  ASSERT_TRUE(Interpret(func, got).ok());
  EXPECT_TRUE(got[2].data == want[2].data);
}

}  // namespace
}  // namespace hone::testing
