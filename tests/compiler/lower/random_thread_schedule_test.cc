// Random schedules with loops bound to blocks and threads, lowered to launches: with threads side by side the
// interpreter finds no race and what the workload computes, or lowering says why threads cannot run the program.
//   HONE_SEEDS=2000 HONE_FIRST_SEED=0 compiler_lower_tests --gtest_filter=RandomThreadSchedules.*
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/lower/threads/lower_threads.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/reference.h"

namespace hone::testing {
namespace {

// What LowerThreads may say of a program, as its messages have it.
constexpr const char* kRefusals[] = {
    "is used outside of the launch too",
    "which nothing orders",
    "a thread sees only its own",
    "of the same launch",
    "an axis has a constant extent",
    "a thread has one place on it",
    "make it two blocks",
    "reduces over an axis of threads",
    "where not all threads of a block come by",
};

std::string CountRefusal(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kFailedPrecondition) return absl::StrCat("lowering: ", status.ToString());
  for (const char* refusal : kRefusals) {
    if (!absl::StrContains(status.message(), refusal)) continue;
    Count("refused");
    Count(absl::StrCat("refused: ", refusal));
    return "";
  }
  return absl::StrCat("lowering refuses it with none of the words that the test knows: ", status.ToString());
}

std::string CheckSeed(uint64_t seed) {
  Random random(seed);
  const SmallWorkload workload = PickWorkload(random);
  Player player(workload.func, random, Machine::kGpu);
  player.PlayChanges(1 + static_cast<int>(random.Below(12)));
  player.PlayBindings(6);
  const Schedule& schedule = player.schedule();
  if (!player.done().contains("bind")) {
    Count("without threads");
    return "";
  }
  const ScheduledProgram program = schedule.Program();
  const absl::StatusOr<PrimFunc> lowered = LowerThreads(program.main);
  const std::string shown =
      absl::StrCat("\n", workload.name, "\n", ToText(schedule.trace()), ToText(workload.func), ToText(program.main));
  if (!lowered.ok()) {
    const std::string wrong = CountRefusal(lowered.status());
    return wrong.empty() ? "" : absl::StrCat(wrong, shown);
  }
  Count("lowered");
  const std::string wrong = ReferenceOf(workload, schedule.trace()).CheckInterpreted({*lowered, program.prepares});
  return wrong.empty() ? "" : absl::StrCat("lowered: ", wrong, shown, ToText(*lowered));
}

TEST(RandomThreadSchedules, HaveNoRacesAndTheRightResult) {
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                                        FromEnvironment("HONE_SEEDS", 300), CheckSeed);
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  std::map<std::string, int64_t> counts(campaign.counts.begin(), campaign.counts.end());
  for (const auto& [name, count] : counts) std::printf("%-60s %8lld\n", name.c_str(), static_cast<long long>(count));
  EXPECT_GT(counts["lowered"], counts["refused"]) << "too few of them reach the interpreter";
  EXPECT_GT(counts["refused"], 0);
}

}  // namespace
}  // namespace hone::testing
