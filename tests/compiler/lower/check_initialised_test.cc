// Accumulators without a start, told from those that have one.
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/compiler/lower/check_passes.h"

namespace hone {
namespace {

absl::Status Check(const std::string& init, const std::string& update) {
  return CheckInitialised(ParseOrDie(absl::StrReplaceAll(R"py(
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), best: T.Buffer((4,), "float32"), at: T.Buffer((4,), "int32")):
    T.func_attr({"outputs": 2})
    for i, k in T.grid(4, 6):
        with T.block("best"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            INIT
            UPDATE
)py",
                                                         {{"INIT", init}, {"UPDATE", update}})));
}

constexpr char kInit[] = R"(with T.init():
                best[v_i] = T.float32("-inf")
                at[v_i] = -1)";
constexpr char kArgmax[] = R"(value: T.float32 = T.Select(best[v_i] > A[v_i, v_k], best[v_i], A[v_i, v_k])
            index: T.int32 = T.Select(best[v_i] > A[v_i, v_k], at[v_i], v_k)
            best[v_i] = value
            at[v_i] = index)";
constexpr char kSum[] = "best[v_i] = best[v_i] + A[v_i, v_k]";

TEST(CheckInitialised, TakesWhatHasAStart) {
  EXPECT_TRUE(Check(kInit, kSum).ok());
  EXPECT_TRUE(Check(kInit, kArgmax).ok());
}

TEST(CheckInitialised, RefusesASumWithoutAStart) {
  EXPECT_EQ(Check("T.evaluate(0)", kSum).message(),
            "never-initialised: buffer best: every store to it reads it, so the first reads what nobody wrote; give "
            "the block that accumulates an init");
}

TEST(CheckInitialised, LooksThroughDefinitions) {
  EXPECT_EQ(Check("T.evaluate(0)", kArgmax).message(),
            "never-initialised: buffer best: every store to it reads it, so the first reads what nobody wrote; give "
            "the block that accumulates an init");
}

// Where a condition decides whether the old value is used, the first store may be one that does without.
TEST(CheckInitialised, LeavesConditionsAlone) {
  EXPECT_TRUE(
      Check("T.evaluate(0)", "best[v_i] = T.if_then_else(v_k == 0, A[v_i, v_k], best[v_i] + A[v_i, v_k])").ok());
}

}  // namespace
}  // namespace hone
