// Random schedules compiled and run: equal to the interpreted workload. HONE_SEEDS=N tries N seeds in place of the few
// hundred of a usual run.
#include "tests/compiler/schedule/random_schedule.h"

#include <cstdlib>

#include "tests/compiler/codegen/run_kernel.h"

namespace hone::testing {
namespace {

void CheckSeed(uint64_t seed) {
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  Random random(seed);
  const PrimFunc workload = PickWorkload(random);
  Player player(workload, random);
  const int moves = 5 + static_cast<int>(random.Below(40));
  for (int m = 0; m < moves; ++m) player.Play();

  std::vector<NdArray> want = RandomArguments(workload, 1, InputKind::kInteger), got = want;
  const absl::Status interpreted = Interpret(workload, want);
  ASSERT_TRUE(interpreted.ok()) << interpreted;
  const bool optimize = seed % 4 != 0;
  const absl::StatusOr<CompiledKernel> kernel =
      CompileKernel(player.schedule().Program(), HostTarget(), {.optimize = optimize});
  ASSERT_TRUE(kernel.ok()) << kernel.status() << "\n" << ToText(player.schedule().func());
  const absl::Status ran = RunCompiled(*kernel, got, 1 + static_cast<int>(seed % 2));
  ASSERT_TRUE(ran.ok()) << ran << "\n" << ToText(player.schedule().func());
  ExpectOutputsNear(workload, got, want, 1e-5);
}

TEST(RandomSchedules, CompiledAgreesWithTheInterpreter) {
  const char* seeds = std::getenv("HONE_SEEDS");
  const int count = seeds == nullptr ? 300 : std::atoi(seeds);
  for (int seed = 0; seed < count && !::testing::Test::HasFailure(); ++seed) CheckSeed(static_cast<uint64_t>(seed));
}

}  // namespace
}  // namespace hone::testing
