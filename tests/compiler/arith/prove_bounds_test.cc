#include "compiler/arith/prove_bounds.h"

#include "compiler/support/status_macros.h"
#include "compiler/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using testing::HasSubstr;

struct Case {
  const char* name;
  const char*
      body;  // of f(A: (16, 100) float32, I: (16,) int64 within [0, 100), J: the same without, B: (16, 100) float32)
  const char* error;  // "": every access is proven; else what the message says
};

constexpr char kHead[] =
    "@T.prim_func\n"
    "def f(A: T.Buffer((16, 100), \"float32\"), I: T.Buffer((16,), \"int64\"), J: T.Buffer((16,), \"int64\"), "
    "B: T.Buffer((16, 100), \"float32\")):\n";

const Case kCases[] = {
    {"WholeLoops", R"(
    for i, j in T.grid(16, 100):
        B[i, j] = A[i, j]
)",
     ""},
    {"OnePastTheEnd", R"(
    for i, j in T.grid(16, 100):
        B[i, j] = A[i, j + 1]
)",
     "A[i, j + 1]: index 1, `j + 1`, is not proven to stay below 100: it lies in [1, 100]"},
    {"InFrontOfTheStart", R"(
    for i, j in T.grid(16, 100):
        B[i, j] = A[i - 1, j]
)",
     "A[i - 1, j]: index 0, `i - 1`, is not proven to stay at or above 0: it lies in [-1, 14]"},
    {"AStore", R"(
    for i, j in T.grid(17, 100):
        B[i, j] = A[0, j]
)",
     "B[i, j]: index 0, `i`, is not proven to stay below 16: it lies in [0, 16]"},
    {"APredicateGuardsWhatDoesNotDivide", R"(
    for i, o, v in T.grid(16, 4, 32):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            vj = T.axis.spatial(100, o * 32 + v)
            T.where(o * 32 + v < 100)
            B[vi, vj] = A[vi, vj]
)",
     ""},
    {"WithoutItTheDomainIsNotBelieved", R"(
    for i, o, v in T.grid(16, 4, 32):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            vj = T.axis.spatial(100, o * 32 + v)
            B[vi, vj] = A[vi, vj]
)",
     "block B: A[vi, vj]: index 1, `vj`, is not proven to stay below 100: it lies in [0, 127]"},
    {"AConditionGuards", R"(
    for i, j in T.grid(16, 128):
        if j < 100:
            B[i, j] = A[i, j]
        else:
            B[i, j - 100] = A[i, 0]
)",
     ""},
    {"OnlyTheChosenSideOfAConditionalIsEvaluated", R"(
    for i, j in T.grid(16, 100):
        B[i, j] = T.if_then_else(j >= 1, A[i, j - 1], T.float32(0))
)",
     ""},
    {"BothSidesOfSelectAre", R"(
    for i, j in T.grid(16, 100):
        B[i, j] = T.Select(j >= 1, A[i, j - 1], T.float32(0))
)",
     "A[i, j - 1]: index 1, `j - 1`, is not proven to stay at or above 0"},
    {"AnIndexFromAnInputWithADomain", R"(
    for i in range(16):
        B[i, I[i]] = A[i, I[i]] + A[i, T.Cast("int32", I[i])]
)",
     ""},
    {"OneThatCountsFromTheEnd", R"(
    for i in range(16):
        B[i, 0] = A[i, T.Select(T.Cast("int32", I[i]) < 0, T.Cast("int32", I[i]) + 100, T.Cast("int32", I[i]))]
)",
     ""},
    {"AnIndexFromAnInputWithoutOne", R"(
    for i in range(16):
        B[i, 0] = A[i, J[i]]
)",
     "index 1, `J[i]`, is not proven to stay at or above 0: nothing is known of it"},
    {"WithACondition", R"(
    for i in range(16):
        if J[i] >= 0 and J[i] < 100:
            B[i, 0] = A[i, J[i]]
)",
     ""},
    {"Clamped", R"(
    for i in range(16):
        B[i, 0] = A[i, T.max(T.min(J[i], T.int64(99)), T.int64(0))]
)",
     ""},
    {"AConditionOnMemoryThatIsWrittenHoldsNoLonger", R"(
    K = T.alloc_buffer((16,), "int64")
    for i in range(16):
        K[i] = J[i]
        if K[i] >= 0 and K[i] < 100:
            K[i] = T.int64(100)
            B[i, 0] = A[i, K[i]]
)",
     "A[i, K[i]]: index 1"},
    {"AVectorUnderAMask", R"(
    for i, o in T.grid(16, 4):
        B.vstore([i, T.Ramp(o * 32, 1, 32)], A.vload([i, T.Ramp(o * 32, 1, 32)], predicate=T.Ramp(o * 32, 1, 32) < T.Broadcast(100, 32)), predicate=T.Ramp(o * 32, 1, 32) < T.Broadcast(100, 32))
)",
     ""},
    {"AVectorWithoutOne", R"(
    for i, o in T.grid(16, 4):
        B.vstore([i, T.Ramp(o * 32, 1, 32)], T.Broadcast(T.float32(0), 32))
)",
     "is not proven to stay below 100: it lies in [0, 127]"},
    {"ATileAtTheEdge", R"(
    for i, o in T.grid(2, 4):
        T.tile_op("fma_tile_f32", B[i * 8:i * 8 + 8, o * 32:o * 32 + T.min(32, 100 - o * 32)], A[i * 8:i * 8 + 8, 0:16], A[0:16, o * 32:o * 32 + T.min(32, 100 - o * 32)])
)",
     ""},
    {"ATileBeyondIt", R"(
    for i, o in T.grid(2, 4):
        T.tile_op("fma_tile_f32", B[i * 8:i * 8 + 8, o * 32:o * 32 + 32], A[i * 8:i * 8 + 8, 0:16], A[0:16, o * 32:o * 32 + 32])
)",
     "index 1, `o * 32`, is not proven to stay below 100: it lies in [31, 127]"},
    {"WhatIsMatched", R"(
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi, 0:100])
            T.writes(B[vi, 0:100])
            C = T.match_buffer(B[vi, 50:110], (60,), "float32")
            C[0] = A[vi, 0]
)",
     "block B: B[vi:vi + 1, 50:110]: index 1, `50`, is not proven to stay below 100"},
};

class ProveInBoundsTest : public testing::TestWithParam<Case> {};

TEST_P(ProveInBoundsTest, ProvesOrNamesTheAccess) {
  const absl::StatusOr<PrimFunc> func = ParsePrimFunc(std::string(kHead) + (GetParam().body + 1));
  ASSERT_TRUE(func.ok()) << func.status().ToString();
  const absl::Status proven = ProveInBounds(*func, {{func->params[1], {.min = 0, .max = 99}}});
  if (*GetParam().error == '\0') {
    EXPECT_TRUE(proven.ok()) << proven.message();
  } else {
    EXPECT_TRUE(absl::IsFailedPrecondition(proven)) << proven.ToString();
    EXPECT_THAT(std::string(proven.message()), HasSubstr(GetParam().error));
  }
}
INSTANTIATE_TEST_SUITE_P(Programs, ProveInBoundsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ProveInBounds, SymbolicSizes) {
  const char* text = R"(@T.prim_func
def f(n: T.int32, A: T.Buffer((n, 8), "float32"), B: T.Buffer((n, 8), "float32")):
    for i, j in T.grid(n, 8):
        B[i, j] = A[%s, j]
)";
  const auto prove = [&](const char* index) {
    std::string program = text;
    program.replace(program.find("%s"), 2, index);
    return ProveInBounds(*ParsePrimFunc(program));
  };
  EXPECT_TRUE(prove("i").ok());
  EXPECT_TRUE(prove("n - 1 - i").ok()) << prove("n - 1 - i").message();
  EXPECT_TRUE(prove("0").ok()) << "a size is at least 1";
  EXPECT_THAT(std::string(prove("i + 1").message()), HasSubstr("is not proven to stay below n"));
}

}  // namespace
}  // namespace hone
