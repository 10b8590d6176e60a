// Accumulators without a start, and elements that are read and never written, told from those that have a start.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/compiler/lower/check_case.h"
#include "tests/compiler/lower/check_passes.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/workload_table.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

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

// ---- Elements that no store writes ----

// P: (3, 4, 4) holds the rows of A, four to a tile, the last of two.
constexpr char kTiles[] = R"(    P = T.alloc_buffer((3, 4, 4), "float32")
    for io, ii, j in T.grid(3, 4, 4):
        with T.block("pack"):
            v_o, v_i, v_j = T.axis.remap("SSS", [io, ii, j])
            T.where(io * 4 + ii < 10)
            P[v_o, v_i, v_j] = A[v_o * 4 + v_i, v_j]
    for io, ii, j in T.grid(3, 4, 4):
        with T.block("C"):
            v_i = T.axis.spatial(10, io * 4 + ii)
            v_j = T.axis.spatial(4, j)
            T.where(io * 4 + ii < 10)
            C[v_i, v_j] = P[v_i // 4, v_i % 4, v_j]
)";

constexpr CheckCase kCases[] = {
    {"ATailUnderMasks", kTiles, ""},
    {"ABoundTooSmall", R"(    P = T.alloc_buffer((10, 4), "float32")
    for i, j in T.grid(9, 4):
        P[i, j] = A[i, j]
    for i, j in T.grid(10, 4):
        C[i, j] = P[i, j]
)",
     "never-written: buffer P is read at 9 of dimension 0, "},
    {"AConditionTooNarrow", R"(    P = T.alloc_buffer((10, 4), "float32")
    for io, ii, j in T.grid(3, 4, 4):
        with T.block("copy"):
            v_i = T.axis.spatial(10, io * 4 + ii)
            v_j = T.axis.spatial(4, j)
            T.where(io * 4 + ii < 10 and j < 3)
            P[v_i, v_j] = A[v_i, v_j]
    for i, j in T.grid(10, 4):
        C[i, j] = P[i, j]
)",
     "buffer P is read at 3 of dimension 1, "},
    {"AxesThatChangedPlaces", R"(    P = T.alloc_buffer((10, 10), "float32")
    for i, j in T.grid(10, 4):
        P[j, i] = A[i, j]
    for i, j in T.grid(10, 4):
        C[i, j] = P[i, j]
)",
     "buffer P is read at 4 of dimension 0, "},
    {"AStoreThatNeverRuns", R"(    P = T.alloc_buffer((10, 4), "float32")
    for i, j in T.grid(10, 4):
        if j > 3:
            P[i, j] = A[i, j]
    for i, j in T.grid(10, 4):
        C[i, j] = P[i, j]
)",
     "buffer P is read at 0 of dimension 0, "},
    {"ABufferThatNobodyWrites", R"(    P = T.alloc_buffer((10, 4), "float32")
    for i, j in T.grid(10, 4):
        C[i, j] = P[i, j]
)",
     "buffer P is read at 0 of dimension 0, "},
    {"AnOutputThatIsReadBack", R"(    for i, j in T.grid(10, 3):
        C[i, j] = A[i, j]
    for i in range(10):
        C[i, 2] = C[i, 3]
)",
     "buffer C is read at 3 of dimension 1, "},
    {"AnInitOfAPart", R"(    P = T.alloc_buffer((10,), "float32")
    for i in range(9):
        P[i] = T.float32(0)
    for i, j in T.grid(10, 4):
        P[i] = P[i] + A[i, j]
    for i, j in T.grid(10, 4):
        C[i, j] = P[i]
)",
     "buffer P is read at 9 of dimension 0, "},
    {"AnInitOfABlock", R"(    P = T.alloc_buffer((10,), "float32")
    for i, j in T.grid(10, 4):
        with T.block("sum"):
            v_i, v_j = T.axis.remap("SR", [i, j])
            with T.init():
                P[v_i] = T.float32(0)
            P[v_i] = P[v_i] + A[v_i, v_j]
    for i, j in T.grid(10, 4):
        C[i, j] = P[i]
)",
     ""},
    {"APartThatIsMatched", R"(    P = T.alloc_buffer((10, 4), "float32")
    for i in range(10):
        with T.block("rows"):
            v_i = T.axis.spatial(10, i)
            T.reads(A[v_i, 0:4])
            T.writes(P[v_i, 1:4])
            row = T.match_buffer(P[v_i, 1:4], (3,), "float32")
            for j in range(3):
                row[j] = A[v_i, j + 1]
    for i, j in T.grid(10, 4):
        C[i, j] = P[i, j]
)",
     "buffer P is read at 0 of dimension 1, "},
    {"Vectors", R"(    P = T.alloc_buffer((10, 4), "float32")
    for i in range(10):
        P.vstore([i, T.Ramp(0, 1, 2)], A.vload([i, T.Ramp(0, 1, 2)]))
    for i in range(10):
        C.vstore([i, T.Ramp(0, 1, 4)], P.vload([i, T.Ramp(0, 1, 4)]))
)",
     "buffer P is read at 2 of dimension 1, "},
    {"PaddingThatIsGuarded", R"(    P = T.alloc_buffer((12, 4), "float32")
    for i, j in T.grid(10, 4):
        P[i + 1, j] = A[i, j]
    for i, j in T.grid(10, 4):
        C[i, j] = T.if_then_else(i >= 1, P[i, j], T.float32(0)) + P[i + 1, j] + T.Select(i < 9, P[i + 2, j], T.float32(0))
)",
     ""},
    {"PaddingThatIsGuardedTooLate", R"(    P = T.alloc_buffer((12, 4), "float32")
    for i, j in T.grid(10, 4):
        P[i + 1, j] = A[i, j]
    for i, j in T.grid(10, 4):
        C[i, j] = T.if_then_else(i >= 0, P[i, j], T.float32(0))
)",
     "buffer P is read at 0 of dimension 0, "},
    {"TilesThatOverlap", R"(    P = T.alloc_buffer((10, 4), "float32")
    for io, ii, j in T.grid(4, 4, 4):
        P[io * 2 + ii, j] = A[io * 2 + ii, j]
    for i, j in T.grid(10, 4):
        C[i, j] = P[i, j]
)",
     ""},
    {"TilesWithGaps", R"(    P = T.alloc_buffer((10, 4), "float32")
    for io, ii, j in T.grid(3, 2, 4):
        P[io * 4 + ii, j] = A[io * 4 + ii, j]
    for i, j in T.grid(10, 4):
        C[i, j] = P[i, j]
)",
     "buffer P is read at 2 of dimension 0, "},
    {"AnIndexThatDependsOnData", R"(    P = T.alloc_buffer((10, 4), "float32")
    for i, j in T.grid(10, 4):
        P[at[i], j] = A[i, j]
    for i, j in T.grid(10, 4):
        C[i, j] = P[i, j]
)",
     ""},
    {"AReadWhereDataSays", R"(    P = T.alloc_buffer((10, 4), "float32")
    for i, j in T.grid(9, 4):
        P[i, j] = A[i, j]
    for i, j in T.grid(10, 4):
        if at[i] < 9:
            C[i, j] = P[at[i], j] + P[i, j]
)",
     ""},
    {"ADefinitionThatIsUsedUnderACondition", R"(    P = T.alloc_buffer((10, 4), "float32")
    for i, j in T.grid(9, 4):
        P[i, j] = A[i, j]
    for i, j in T.grid(10, 4):
        value: T.float32 = P[i, j]
        C[i, j] = T.if_then_else(i < 9, value, T.float32(0))
)",
     ""},
    {"ADefinitionThatIsUsed", R"(    P = T.alloc_buffer((10, 4), "float32")
    for i, j in T.grid(9, 4):
        P[i, j] = A[i, j]
    for i, j in T.grid(10, 4):
        value: T.float32 = P[i, j]
        C[i, j] = value
)",
     "buffer P is read at 9 of dimension 0, "},
};

TEST(CheckInitialised, FindsReadsOfWhatNoStoreWrites) { ExpectTellsApart(kCases, CheckInitialised); }

// A loop as long as a symbolic size may write anything, and along a symbolic dimension nothing is known.
TEST(CheckInitialised, LeavesSymbolicSizesAlone) {
  const absl::Status status = CheckInitialised(ParseOrDie(R"(
@T.prim_func
def main(n: T.int32(1, 64), A: T.Buffer((n, 4), "float32"), C: T.Buffer((n, 4), "float32")):
    P = T.alloc_buffer((n, 4), "float32")
    Q = T.alloc_buffer((64, 4), "float32")
    for i, j in T.grid(n - 1, 4):
        P[i, j] = A[i, j]
        Q[i, j] = A[i, j]
    for i, j in T.grid(n, 4):
        C[i, j] = P[i, j] + Q[i, j]
)"));
  EXPECT_TRUE(status.ok()) << status;
}

// Another dimension of it may be known.
TEST(CheckInitialised, LooksBesideASymbolicDimension) {
  const absl::Status status = CheckInitialised(ParseOrDie(R"(
@T.prim_func
def main(n: T.int32(1, 64), A: T.Buffer((n, 4), "float32"), C: T.Buffer((n, 4), "float32")):
    P = T.alloc_buffer((n, 4), "float32")
    for i, j in T.grid(n, 3):
        P[i, j] = A[i, j]
    for j in range(4):
        C[0, j] = P[0, j]
)"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("buffer P is read at 3 of dimension 1, "));
}

// What each of the loops alone would not show: too many iterations together to look at all of them.
TEST(CheckInitialised, TakesWhatItCannotEnumerate) {
  const absl::Status status = CheckInitialised(ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((1048576,), "float32"), C: T.Buffer((1048576,), "float32")):
    P = T.alloc_buffer((1048576,), "float32")
    for i, j in T.grid(1024, 1024):
        if (i * 1024 + j) // 3 < 300000:
            P[i * 1024 + j] = A[i * 1024 + j]
    for i, j in T.grid(1024, 1024):
        C[i * 1024 + j] = P[i * 1024 + j]
)"));
  EXPECT_TRUE(status.ok()) << status;
}

// Schedules are right by construction, and none is refused. HONE_SEEDS=20000 tries as many.
TEST(CheckInitialised, TakesRandomSchedules) {
  const int64_t seeds = testing::FromEnvironment("HONE_SEEDS", 200);
  const testing::Campaign campaign = testing::RunCampaign(
      static_cast<uint64_t>(testing::FromEnvironment("HONE_FIRST_SEED", 0)), seeds, [](uint64_t seed) -> std::string {
        Random random(seed);
        const testing::SmallWorkload workload = testing::PickWorkload(random);
        testing::Player player(workload.func, random, seed % 4 == 0 ? testing::Machine::kGpu : testing::Machine::kCpu);
        player.PlayChanges(1 + static_cast<int>(random.Below(40)));
        const PrimFunc program = player.schedule().Program().main;
        const absl::Status status = CheckInitialised(ExpandVectorOps(program));
        return status.ok() ? "" : absl::StrCat(status.message(), "\n", ToText(program));
      });
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
}

}  // namespace
}  // namespace hone
