// Random primitives on small workloads of awkward sizes: whatever the checks let through computes what the workload
// computes, replays, and whatever they refuse leaves the schedule as it was.
#include <functional>
#include <map>

#include "compiler/ir/text.h"
#include "compiler/schedule/program_index.h"
#include "compiler/support/status_macros.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/random_schedule.h"

namespace hone::testing {
namespace {

class RandomSchedules : public ::testing::TestWithParam<int> {};

TEST_P(RandomSchedules, AreSound) {
  constexpr int kPerTest = 50;
  std::map<std::string, int> done;
  for (int i = 0; i < kPerTest; ++i) {
    const uint64_t seed = static_cast<uint64_t>(GetParam() * kPerTest + i);
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const PrimFunc workload = PickWorkload(random);
    Player player(workload, random);
    const int moves = 5 + static_cast<int>(random.Below(40));
    for (int m = 0; m < moves; ++m) player.Play();
    ExpectSound(player.schedule(), workload);
    for (const auto& [name, count] : player.done()) done[name] += count;
    if (HasFailure()) {
      ADD_FAILURE() << "workload:\n" << ToText(workload);
      return;
    }
  }
  for (const auto& [name, count] : done) RecordProperty(name, count);
  EXPECT_GE(done.size(), 12u) << "most primitives should have been let through at least once";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSchedules, ::testing::Range(0, 40));

}  // namespace
}  // namespace hone::testing
