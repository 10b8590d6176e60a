// Random schedules: after every pass the program is valid and computes what it did before.
#include "tests/compiler/schedule/random_schedule.h"

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

TEST(PlainLowering, KeepsTheResult) {
  for (const PrimFunc& workload : {Matmul(5, 7, 11), DenseRelu(3, 40, 9), ConvBiasResidualRelu({6, 5, 3, 17, 3, 2, 1}),
                                   TwoElementwise(3, 70), Softmax(4, 9), ThreeStages(6, 13), Blur(11, 3)}) {
    CheckPasses(workload, {.plain = true});
  }
}

}  // namespace
}  // namespace hone::testing
