// Vector loads whose lanes lie near each other, at constant distances: blocks, ends, few elements, and what is none of
// these. Memory ends right after the last line of a tensor, so that a load past its end would show.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/compiler/codegen/run_kernel.h"

namespace hone {
namespace {

struct LanesCase {
  const char* name;
  int size;           // of what is read
  int n;              // of the results: 3 rows of so many
  const char* index;  // of what is read, by row, column j and tap k of 4
};

PrimFunc SumOfTaps(const LanesCase& lanes, const char* taps) {
  return ParseOrDie(absl::StrReplaceAll(R"py(
@T.prim_func
def main(A: T.Buffer((SIZE,), "float32"), C: T.Buffer((3, N), "float32")):
    for i in range(3):
        for j0 in range(VECTORS):
            for k0 in TAPS:
                for j1 in T.vectorized(16):
                    with T.block("C"):
                        row = T.axis.spatial(3, i)
                        j = T.axis.spatial(N, j0 * 16 + j1)
                        k = T.axis.reduce(4, k0)
                        T.where(j0 * 16 + j1 < N)
                        with T.init():
                            C[row, j] = T.float32(0)
                        C[row, j] = C[row, j] + A[INDEX]
)py",
                                        {{"SIZE", absl::StrCat(lanes.size)},
                                         {"N", absl::StrCat(lanes.n)},
                                         {"VECTORS", absl::StrCat((lanes.n + 15) / 16)},
                                         {"TAPS", taps},
                                         {"INDEX", lanes.index}}));
}

class NearLanes : public ::testing::TestWithParam<LanesCase> {};

TEST_P(NearLanes, AgreeWithTheInterpreter) {
  for (const char* taps : {"T.unroll(4)", "range(4)"}) {
    SCOPED_TRACE(taps);
    ExpectCompiledAgrees(SumOfTaps(GetParam(), taps));
  }
}

constexpr LanesCase kLanes[] = {
    {"GroupsOfFour", 96, 32, "row * 32 + j // 4 * 4 + k"},
    {"GroupsOfFourWithATail", 96, 28, "row * 32 + j // 4 * 4 + k"},
    {"GroupsOfFourAtTheEnd", 92, 28, "row * 32 + j // 4 * 4 + k"},
    {"EightOutOfFour", 48, 32, "row * 16 + j // 8 * 4 + k"},
    {"FourOutOfEight", 192, 32, "row * 64 + j // 4 * 8 + k"},
    {"GroupsOfEightInARowOfAnySize", 132, 32, "row * 44 + j // 8 * 8 + k"},
    {"GroupsOfTwentyFour", 144, 48, "row * 48 + j // 24 * 24 + k"},
    {"OneGroup", 96, 32, "row * 32 + j // 16 * 16 + k"},
    {"EverySecond", 201, 32, "row * 67 + j * 2 + k"},
    {"EverySecondWithATail", 187, 28, "row * 64 + j * 2 + k"},
    {"EverySecondInBlocksWithATail", 192, 28, "row * 64 + j * 2 + k"},
    {"EverySecondBackwardsWithATail", 190, 28, "row * 64 + 58 - j * 2 + k"},
    {"EveryThirdWithATail", 300, 28, "row * 100 + j * 3 + k"},
    {"RepeatedWithATail", 64, 28, "row * 16 + j % 8 * 2 + k"},
    {"EverySecondToTheLastElement", 132, 16, "row * 48 + j * 2 + k + 2"},
    {"EverySecondBackwards", 201, 32, "row * 67 + 63 - j * 2 + k"},
    {"EveryThird", 300, 32, "row * 100 + j * 3 + k"},
    {"Repeated", 64, 32, "row * 16 + j % 8 + k"},
    {"RepeatedInOtherOrder", 64, 32, "row * 16 + 12 - j % 4 * 3 + k"},
};

INSTANTIATE_TEST_SUITE_P(All, NearLanes, ::testing::ValuesIn(kLanes),
                         [](const auto& lanes) { return std::string(lanes.param.name); });

// One of 16 lanes takes as long as ten loads and shuffles on some cores.
TEST(NearLanes, OfEverySecondAreNotGatheredUnderAMask) {
  const absl::StatusOr<Target> target = ParseTarget("cpu:x86-64-v4");
  ASSERT_TRUE(target.ok()) << target.status();
  for (const LanesCase& lanes : kLanes) {
    if (!absl::StartsWith(lanes.name, "EverySecond")) continue;
    SCOPED_TRACE(lanes.name);
    const absl::StatusOr<std::string> assembly =
        CompileToAssembly(ScheduledProgram{SumOfTaps(lanes, "T.unroll(4)"), {}}, *target);
    ASSERT_TRUE(assembly.ok()) << assembly.status();
    EXPECT_FALSE(absl::StrContains(*assembly, "gather")) << *assembly;
  }
}

}  // namespace
}  // namespace hone
