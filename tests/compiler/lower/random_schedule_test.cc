// Random schedules: after every pass the program is valid and computes what it did before.
#include "tests/compiler/schedule/random_schedule.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/ir/visit.h"
#include "tests/compiler/lower/check_passes.h"
#include "tests/compiler/schedule/workload_table.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

class RandomLowering : public ::testing::TestWithParam<int> {};

TEST_P(RandomLowering, EveryPassKeepsTheResult) {
  constexpr int kPerTest = 25;
  for (int i = 0; i < kPerTest; ++i) {
    const uint64_t seed = static_cast<uint64_t>(GetParam() * kPerTest + i);
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const SmallWorkload workload = PickWorkload(random);
    Player player(workload.func, random, Machine::kCpu);
    player.PlayChanges(1 + static_cast<int>(random.Below(30)));
    CheckPasses(player.schedule().Program().main);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomLowering, ::testing::Range(0, 8));

// A product of vectors that one instruction makes, of sums that stand in memory or in registers.
PrimFunc ProductWithInstruction(Random& random) {
  const bool bytes = random.Chance(0.5);
  const int64_t lanes = random.Chance(0.5) ? 16 : 8, vectors = 1 + static_cast<int64_t>(random.Below(3));
  const std::string group = bytes ? "4" : "2";
  return ParseOrDie(absl::StrReplaceAll(
      R"(
@T.prim_func
def main(A: T.Buffer((ROWS, STEPS, GROUP), "LEFT"), B: T.Buffer((STEPS, COLUMNS, GROUP), "RIGHT"), C: T.Buffer((ROWS, COLUMNS), "int32")):
    for i, j in T.grid(ROWS, COLUMNS):
        with T.block("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = 0
    for i, j, k in T.grid(ROWS, VECTORS, STEPS):
        with T.block("C"):
            vi, vo, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(C[vi, vo * LANES:vo * LANES + LANES], A[vi, vk, 0:GROUP], B[vk, vo * LANES:vo * LANES + LANES, 0:GROUP])
            T.writes(C[vi, vo * LANES:vo * LANES + LANES])
            T.tile_op("INTRINSIC", C[vi, vo * LANES:vo * LANES + LANES], A[vi, vk, 0:GROUP], B[vk, vo * LANES:vo * LANES + LANES, 0:GROUP])
)",
      {{"ROWS", absl::StrCat(1 + random.Below(4))},
       {"STEPS", absl::StrCat(1 + random.Below(5))},
       {"COLUMNS", absl::StrCat(lanes * vectors)},
       {"VECTORS", absl::StrCat(vectors)},
       {"LANES", absl::StrCat(lanes)},
       {"GROUP", group},
       {"LEFT", bytes ? "uint8" : "int16"},
       {"RIGHT", bytes ? "int8" : "int16"},
       {"INTRINSIC", bytes ? "dot4_u8s8_s32" : "dot2_s16s16_s32"}}));
}

int NumTileOps(const Stmt& body) {
  int ops = 0;
  ForEachStmt(body, [&](const Stmt& s) {
    ops += s.As<TileOp>() != nullptr;
    return true;
  });
  return ops;
}

TEST(LoweringWithInstructions, EveryPassKeepsTheResult) {
  const LowerOptions options{.features = {"avx512bw", "avx512vnni"}, .vector_bits = 512};
  int kept = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    Player player(ProductWithInstruction(random), random, Machine::kCpu);
    player.PlayChanges(static_cast<int>(random.Below(12)));
    const PrimFunc scheduled = player.schedule().Program().main;
    CheckPasses(scheduled, options);
    if (HasFailure()) return;
    kept += NumTileOps(Lower(scheduled, options)->func.body) > 0;
  }
  EXPECT_GE(kept, 30) << "too few instructions are left for the code generator";
}

TEST(PlainLowering, KeepsTheResult) {
  for (const PrimFunc& workload : {Matmul(5, 7, 11), DenseRelu(3, 40, 9), ConvBiasResidualRelu({6, 5, 3, 17, 3, 2, 1}),
                                   TwoElementwise(3, 70), Softmax(4, 9), ThreeStages(6, 13), Blur(11, 3)}) {
    CheckPasses(workload, {.plain = true});
  }
}

}  // namespace
}  // namespace hone::testing
