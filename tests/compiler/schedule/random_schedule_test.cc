// Random legal schedules, 1 to 30 changes long, on small workloads of awkward sizes: whatever the checks let through
// computes what the workload computes, whatever order its parallel iterations run in, and replays; whatever they refuse
// leaves the schedule as it was. A failure comes with the least trace that shows it.
//   HONE_SEEDS=100000 HONE_FIRST_SEED=0 compiler_schedule_tests --gtest_filter=RandomSchedules.*
#include <cstdio>
#include <map>
#include <set>

#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/text.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/schedule/shrink.h"

namespace hone::testing {
namespace {

std::string Wrong(const Reference& reference, const Schedule& schedule) {
  std::string said = reference.CheckInterpreted(schedule.Program());
  if (said.empty()) {
    said = reference.CheckInterpreted(Reversed(schedule.Program()));
    if (!said.empty()) said = absl::StrCat("with parallel iterations in reverse order: ", said);
  }
  return said;
}

std::string CheckSeed(uint64_t seed) {
  Random random(seed);
  const SmallWorkload workload = PickWorkload(random);
  Player player(workload.func, random);
  player.PlayChanges(1 + static_cast<int>(random.Below(30)));
  const Schedule& schedule = player.schedule();
  for (const auto& [name, count] : player.done()) Count(name, count);
  Count("changes", player.changes());
  ExpectReplays(schedule, workload.func);
  const Reference& reference = ReferenceOf(workload);
  const std::string wrong = Wrong(reference, schedule);
  if (wrong.empty()) return "";
  const Trace least =
      Shrink(schedule.trace(), workload.func, [&](const Schedule& s) { return !Wrong(reference, s).empty(); });
  const Schedule shown = Get(Replay(least, workload.func));
  return absl::StrCat(workload.name, ": ", wrong, "\nThe least trace:\n", ToText(least), Wrong(reference, shown), "\n",
                      ToText(workload.func), ToText(shown.func()));
}

TEST(RandomSchedules, AreSound) {
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                                        FromEnvironment("HONE_SEEDS", 2000), CheckSeed);
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  for (const auto& [name, count] : campaign.counts) {
    std::printf("%-28s %8lld\n", name.c_str(), static_cast<long long>(count));
  }
  EXPECT_GE(campaign.counts.size(), 20u) << "most primitives should have been let through at least once";
}

// For as long as a seed stands for the same trace: elements read before they were written, a block that never ran.
TEST(RandomSchedules, ThatOnceFailedAreSound) {
  for (const uint64_t seed : {58020, 77699, 85326, 88833}) {
    for (const std::string& report : RunCampaign(seed, 1, CheckSeed).reports) ADD_FAILURE() << report;
  }
}

TEST(SmallWorkloads, AreManyAndAwkward) {
  std::set<std::string> names;
  std::set<uint64_t> programs;
  bool odd = false, unit = false;
  for (const SmallWorkload& workload : SmallWorkloads()) {
    names.insert(workload.name);
    programs.insert(StructuralHash(workload.func));
    for (const Buffer& param : workload.func.params) {
      for (const Expr& extent : param.shape()) {
        odd |= *ConstantValue(extent) % 2 == 1;
        unit |= *ConstantValue(extent) == 1;
      }
    }
    // What the table says of sums holds: single and double precision agree bit for bit.
    if (workload.exact) {
      std::vector<NdArray> single = RandomArguments(workload.func, 1, InputKind::kInteger), wide = single;
      Do(Interpret(workload.func, single));
      Do(Interpret(workload.func, wide, {.double_accumulation = true}));
      for (size_t p = 0; p < single.size(); ++p) EXPECT_TRUE(single[p].data == wide[p].data) << workload.name;
    }
  }
  EXPECT_EQ(names.size(), SmallWorkloads().size());
  EXPECT_GE(programs.size(), 60u);
  EXPECT_TRUE(odd && unit);
}

}  // namespace
}  // namespace hone::testing
