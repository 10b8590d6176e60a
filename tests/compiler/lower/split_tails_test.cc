// Tiles whose last one is cut off by a size that is known when the kernel is called.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/symbolic_sizes.h"
#include "compiler/ir/visit.h"
#include "compiler/lower/passes.h"
#include "tests/compiler/lower/check_passes.h"

namespace hone::testing {
namespace {

// Rows in tiles of `rows`, each of which is added to in a loop over k.
PrimFunc RowsInTiles(int rows) {
  return ParseOrDie(absl::StrReplaceAll(R"(
@T.prim_func
def main(n: T.int32(1, 40), A: T.Buffer((n, 8), "float32"), B: T.Buffer((n,), "float32")):
    for io in range((n + ROWS - 1) // ROWS):
        for k in range(8):
            for ii in T.unroll(ROWS):
                if io * ROWS + ii < n:
                    B[io * ROWS + ii] = T.if_then_else(k == 0, T.float32(0), B[io * ROWS + ii]) + A[io * ROWS + ii, k]
)",
                                        {{"ROWS", absl::StrCat(rows)}}));
}

// Conditions on the size in the loop over k; those on rows of the tile alone are decided when it is unrolled.
int ConditionsInLoops(const Stmt& body) {
  int found = 0;
  ForEachStmt(body.As<For>()->body, [&](const Stmt& stmt) {
    const For* loop = stmt.As<For>();
    if (loop == nullptr || loop->kind != ForKind::kSerial) return true;
    ForEachStmt(loop->body, [&](const Stmt& inner) {
      const IfThen* branch = inner.As<IfThen>();
      found += branch != nullptr && MentionsSize(branch->condition) ? 1 : 0;
      return true;
    });
    return false;
  });
  return found;
}

TEST(SplitTails, ATileThatASizeCutsOffHasAVersionForEachNumberOfRows) {
  PrimFunc func = RowsInTiles(6);
  const PrimFunc before = func;
  EXPECT_GT(ConditionsInLoops(func.body), 0);
  func.body = SplitTails(func.body);
  EXPECT_EQ(ConditionsInLoops(func.body), 0) << ToText(func);
  for (int64_t n = 1; n <= 20; ++n) {
    std::vector<NdArray> want = RandomArguments(WithSizes(before, std::vector{n}), 3, InputKind::kInteger);
    std::vector<NdArray> got = want;
    ASSERT_TRUE(Interpret(WithSizes(before, std::vector{n}), want).ok());
    ASSERT_TRUE(Interpret(WithSizes(func, std::vector{n}), got).ok());
    EXPECT_TRUE(got[1].data == want[1].data) << n;
  }
}

TEST(SplitTails, OfATileOfManyRowsThereAreNotAsManyVersions) {
  PrimFunc func = RowsInTiles(16);
  func.body = SplitTails(func.body);
  EXPECT_GT(ConditionsInLoops(func.body), 0) << ToText(func);
}

}  // namespace
}  // namespace hone::testing
