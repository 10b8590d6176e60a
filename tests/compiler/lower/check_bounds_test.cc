// Programs that are sure to leave a buffer or the domain of a block told from those that stay inside.
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "absl/strings/str_cat.h"
#include "compiler/interp/interpreter.h"
#include "tests/compiler/lower/check_case.h"
#include "tests/compiler/lower/check_passes.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/mutants.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/workload_table.h"

namespace hone {
namespace {

constexpr CheckCase kBoundsCases[] = {
    {"ATailUnderAPredicate", R"(    for io, ii, j in T.grid(3, 4, 4):
        with T.block("C"):
            v_i = T.axis.spatial(10, io * 4 + ii)
            v_j = T.axis.spatial(4, j)
            T.where(io * 4 + ii < 10)
            C[v_i, v_j] = A[v_i, v_j]
)",
     ""},
    {"ATailWithoutOne", R"(    for io, ii, j in T.grid(3, 4, 4):
        with T.block("C"):
            v_i = T.axis.spatial(10, io * 4 + ii)
            v_j = T.axis.spatial(4, j)
            C[v_i, v_j] = A[v_i, v_j]
)",
     "block C: v_i is 10, outside of its range"},
    {"AnIterationTooMany", R"(    for i, j in T.grid(10, 5):
        with T.block("C"):
            v_i = T.axis.spatial(10, i)
            v_j = T.axis.spatial(4, j)
            C[v_i, v_j] = A[v_i, v_j]
)",
     "v_j is 4, outside"},
    {"ABlockThatNeverRuns", R"(    for i, j in T.grid(10, 4):
        with T.block("C"):
            v_i = T.axis.spatial(10, i + 20)
            v_j = T.axis.spatial(4, j)
            T.where(T.bool(False))
            C[v_i, v_j] = A[v_i, v_j]
)",
     ""},
    {"AxesThatChangedPlaces", R"(    for i, j in T.grid(10, 4):
        with T.block("C"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            C[v_i, v_j] = A[v_j, v_i]
)",
     "block C: index 1 of A is 4, outside"},
    {"PaddingThatIsGuarded", R"(    for i, j in T.grid(10, 4):
        C[i, j] = T.if_then_else(1 <= i and i < 9, A[i - 1, j] + A[i + 1, j], T.float32(0))
)",
     ""},
    {"PaddingThatIsGuardedTooLate", R"(    for i, j in T.grid(10, 4):
        C[i, j] = T.if_then_else(0 <= i and i < 9, A[i - 1, j] + A[i + 1, j], T.float32(0))
)",
     "index 0 of A is -1, outside"},
    {"ASelectIsNoGuard", R"(    for i, j in T.grid(10, 4):
        C[i, j] = T.Select(i < 9, A[i + 1, j], T.float32(0))
)",
     "index 0 of A is 10, outside"},
    {"AnInitBesideItsBuffer", R"(    P = T.alloc_buffer((10,), "float32")
    for i, j in T.grid(10, 4):
        with T.block("sum"):
            v_i, v_j = T.axis.remap("SR", [i, j])
            with T.init():
                P[v_i + v_j + 1] = T.float32(0)
            P[v_i] = P[v_i] + A[v_i, v_j]
)",
     "block sum: index 0 of P is 10, outside"},
    {"AnInitAtTheFirstOfItsTurns", R"(    P = T.alloc_buffer((10,), "float32")
    for i, j in T.grid(10, 4):
        with T.block("sum"):
            v_i, v_j = T.axis.remap("SR", [i, j])
            with T.init():
                P[v_i + v_j] = T.float32(0)
            P[v_i] = P[v_i] + A[v_i, v_j]
)",
     ""},
    {"ATailOfATail", R"(    for io, im, j in T.grid(2, 2, 4):
        with T.block("tiles"):
            v_o = T.axis.spatial(4, io * 2 + im)
            v_j = T.axis.spatial(4, j)
            T.where(io * 2 + im < 4)
            for ii in range(3):
                with T.block("C"):
                    v_i = T.axis.spatial(10, v_o * 3 + ii)
                    w_j = T.axis.spatial(4, v_j)
                    T.where(v_o * 3 + ii < 10)
                    C[v_i, w_j] = A[v_i, w_j]
)",
     ""},
    {"TheLastOfALongLoop", R"(    P = T.alloc_buffer((100000,), "float32")
    for i, k in T.grid(10, 100001):
        P[k] = A[i, 0]
)",
     "index 0 of P is 100000, outside"},
    {"AnIndexThatDependsOnData", R"(    for i, j in T.grid(10, 4):
        C[i, j] = A[at[i], j]
)",
     ""},
    {"WhereDataSays", R"(    for i, j in T.grid(10, 4):
        if at[i] + 1 < 10:
            C[i, j] = A[i + 1, j]
)",
     ""},
};

TEST(CheckBounds, TellsWhatLeavesABuffer) { ExpectTellsApart(kBoundsCases, CheckBounds); }

// Whatever the interpreter finds outside is refused, but for what depends on data; what it runs to the end is taken.
TEST(CheckBounds, AgreesWithTheInterpreter) {
  int outside = 0, refused = 0;
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(testing::FromEnvironment("HONE_SEEDS", 150)); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed, 31);
    const testing::SmallWorkload workload = testing::PickWorkload(random);
    testing::Player player(workload.func, random);
    player.PlayChanges(1 + static_cast<int>(random.Below(20)));
    const PrimFunc right = player.schedule().func();
    EXPECT_TRUE(CheckBounds(ExpandVectorOps(right)).ok()) << CheckBounds(ExpandVectorOps(right));
    for (size_t kind = 0; kind < testing::kDefectNames.size(); ++kind) {
      const std::optional<PrimFunc> variant = testing::WithDefect(right, static_cast<testing::Defect>(kind), random);
      if (!variant.has_value() || !Verify(*variant).ok()) continue;
      std::vector<NdArray> args = RandomArguments(*variant, seed, InputKind::kInteger);
      const absl::Status ran = Interpret(*variant, args, {.check_uninitialised = false});
      const bool stays = CheckBounds(ExpandVectorOps(*variant)).ok();
      if (ran.ok()) { EXPECT_TRUE(stays) << testing::kDefectNames[kind] << CheckBounds(ExpandVectorOps(*variant)); }
      outside += ran.code() == absl::StatusCode::kOutOfRange;
      refused += ran.code() == absl::StatusCode::kOutOfRange && !stays;
    }
  }
  EXPECT_GT(outside, 20);
  EXPECT_GE(refused, outside * 9 / 10) << "of " << outside;
}

}  // namespace
}  // namespace hone
