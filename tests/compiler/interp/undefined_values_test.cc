// Values that are made of elements nobody has written, followed to where they count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "tests/compiler/interp/checked_program.h"

namespace hone {
namespace {

// Of A the interpreter knows everything; of R, the vectors of which are whole, the first 5 of 8 elements are written.
absl::Status FollowUndefinedIn(const std::string& body, bool follow = true) {
  const PrimFunc f = CheckedProgram(absl::StrCat(R"hone(
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"domains": ["int[1,5)", ""]})
    R = T.allocate((8,), "int32", scope="local")
    S = T.allocate((8,), "int32", scope="local")
    for i in range(5):
        R[i] = A[i]
    for i in range(8):
        B[i] = 0
)hone",
                                                 body));
  std::vector<NdArray> args = RandomArguments(f, 3, InputKind::kInteger);
  return Interpret(f, args, {.follow_undefined = follow});
}

constexpr char kLanesThatAreOff[] =
    "    B.vstore([T.Ramp(0, 1, 8)], R[T.Ramp(0, 1, 8)] + A[T.Ramp(0, 1, 8)], predicate=T.Ramp(0, 1, 8) < "
    "T.Broadcast(5, 8))\n";

TEST(UndefinedValues, MayBeInLanesThatAreOff) {
  EXPECT_TRUE(FollowUndefinedIn(kLanesThatAreOff).ok()) << FollowUndefinedIn(kLanesThatAreOff);
  EXPECT_THAT(std::string(FollowUndefinedIn(kLanesThatAreOff, /*follow=*/false).message()),
              ::testing::HasSubstr("R[5] is read before it is written (lane 5)"));
}

TEST(UndefinedValues, MayBeWhatIsNotChosen) {
  const absl::Status status = FollowUndefinedIn(
      "    B[T.Ramp(0, 1, 8)] = T.Select(T.Ramp(0, 1, 8) < T.Broadcast(5, 8), R[T.Ramp(0, 1, 8)], T.Broadcast(1, "
      "8))\n");
  EXPECT_TRUE(status.ok()) << status;
}

TEST(UndefinedValues, AreGoneWhereAnElementIsWrittenAgain) {
  const absl::Status status = FollowUndefinedIn(
      "    S[T.Ramp(0, 1, 8)] = R[T.Ramp(0, 1, 8)]\n"
      "    S[6] = 4\n"
      "    B[6] = S[6]\n");
  EXPECT_TRUE(status.ok()) << status;
}

struct UndefinedUse {
  const char *name, *body, *says;
};
class UndefinedValuesRefused : public ::testing::TestWithParam<UndefinedUse> {};
TEST_P(UndefinedValuesRefused, WhereTheyCount) {
  const absl::Status status = FollowUndefinedIn(GetParam().body);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr(absl::StrCat(GetParam().says, " is made of an element before it is written")));
}
INSTANTIATE_TEST_SUITE_P(
    Uses, UndefinedValuesRefused,
    ::testing::Values(
        // What nobody has written reads as -1: the greater of the two is right all the same.
        UndefinedUse{"AnOutputThatIsRightByChance",
                     "    B[T.Ramp(0, 1, 8)] = T.max(R[T.Ramp(0, 1, 8)], A[T.Ramp(0, 1, 8)])\n", "B[5]"},
        UndefinedUse{"ByWayOfAnotherBuffer",
                     "    S[T.Ramp(0, 1, 8)] = R[T.Ramp(0, 1, 8)] * T.Broadcast(2, 8)\n    B[7] = S[7]\n", "B[7]"},
        UndefinedUse{"AMask",
                     "    B.vstore([T.Ramp(0, 1, 8)], A[T.Ramp(0, 1, 8)], predicate=R[T.Ramp(0, 1, 8)] < "
                     "T.Broadcast(9, 8))\n",
                     "lane 5 of a mask of B"},
        UndefinedUse{"TheIndexOfALoad", "    B[0] = A[R[6] + 1]\n", "index 0 of A"},
        UndefinedUse{"TheIndexOfAStore", "    B[R[6] + 1] = 3\n", "index 0 of B"},
        UndefinedUse{"ACondition", "    if R[6] < 0:\n        B[0] = 3\n", "a condition"},
        UndefinedUse{"AChoice", "    B[0] = T.if_then_else(R[6] < 0, 1, 2)\n", "a condition"},
        UndefinedUse{"TheBoundOfALoop", "    for i in range(R[6] + 2):\n        B[0] = 3\n", "the bound of a loop"}),
    [](const auto& info) { return std::string(info.param.name); });

// Every thread has values of its own.
TEST(UndefinedValues, AreFollowedInThreads) {
  const auto run = [](const char* condition) {
    const PrimFunc f = CheckedProgram(absl::StrCat(R"(
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        R = T.allocate((1,), "int32", scope="local")
        S = T.allocate((4,), "int32", scope="shared")
        if )",
                                                   condition, R"(:
            R[0] = A[t]
        S[t] = R[0]
        T.tvm_storage_sync("shared")
        B[t] = T.if_then_else(t < 3, S[t], S[0])
)"));
    std::vector<NdArray> args = RandomArguments(f, 3, InputKind::kInteger);
    return Interpret(f, args, {.follow_undefined = true});
  };
  EXPECT_TRUE(run("t < 3").ok()) << run("t < 3");
  EXPECT_THAT(std::string(run("t < 2").message()), ::testing::HasSubstr("B[2] is made of an element"));
}

}  // namespace
}  // namespace hone
