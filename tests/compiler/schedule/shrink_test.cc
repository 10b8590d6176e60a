// Planted bugs, and the least traces that show them.
#include "tests/compiler/schedule/shrink.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/primitives/split.h"
#include "compiler/schedule/trace/trace.h"

#include <algorithm>

#include "compiler/ir/visit.h"
#include "compiler/schedule/trace/trace_edit.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/schedule/workloads.h"

namespace hone::testing {
namespace {

// A split that forgets the predicate of its remainder.
ScheduledProgram WithoutPredicates(ScheduledProgram program) {
  program.main.body = RewriteBottomUp(program.main.body, [](const Stmt& stmt) -> std::optional<Stmt> {
    const BlockRealize* realize = stmt.As<BlockRealize>();
    if (realize == nullptr || IsConst(realize->predicate, 1)) return std::nullopt;
    BlockRealize changed = *realize;
    changed.predicate = True();
    return Stmt::Make(std::move(changed));
  });
  return program;
}

TEST(Shrink, LeavesWhatTheFailureNeeds) {
  const SmallWorkload workload = {"matmul", Matmul(7, 11, 5)};
  const Reference reference(workload);
  const Fails fails = [&](const Schedule& s) {
    return !reference.CheckInterpreted(WithoutPredicates(s.Program())).empty();
  };
  int shrunk = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed);
    Player player(workload.func, random);
    player.PlayChanges(20);
    if (!fails(player.schedule())) continue;
    ++shrunk;
    const Trace least = Shrink(player.schedule().trace(), workload.func, fails);
    const Schedule again = Get(Replay(Get(ParseTrace(ToText(least))), workload.func));
    EXPECT_TRUE(fails(again)) << ToText(least);
    EXPECT_LE(least.steps.size(), 10u) << ToText(least);
    // Nothing is left that it could do without.
    for (size_t i = 0; i < least.steps.size(); ++i) {
      std::vector<bool> drop(least.steps.size(), false);
      drop[i] = true;
      Trace less = WithoutSteps(least, drop);
      std::fill(less.outputs.begin(), less.outputs.end(), 0);
      const absl::StatusOr<Schedule> schedule = Replay(less, workload.func);
      EXPECT_FALSE(schedule.ok() && fails(*schedule)) << ToText(least) << "without step " << i;
    }
  }
  EXPECT_GE(shrunk, 6);
}

TEST(Shrink, MakesNumbersSmall) {
  const PrimFunc workload = Matmul(7, 11, 5);
  Schedule s(workload);
  const std::vector<LoopRef> l = Get(GetLoops(s, Get(GetBlock(s, "C"))));
  Get(Split(s, l[2], {-1, 3}));
  Get(Split(s, l[1], {-1, 9}));
  Get(GetLoops(s, Get(GetBlock(s, "C"))));
  // Fails whenever j is split into something above 1.
  const Trace least = Shrink(s.trace(), workload, [&](const Schedule& t) {
    for (const Step& step : t.trace().steps) {
      const SplitStep* split = step.As<SplitStep>();
      if (split != nullptr && split->loop.output == 1 && *split->factors[1].number() > 1) return true;
    }
    return false;
  });
  EXPECT_EQ(ToText(least), R"(b0 = sch.get_block("C", func_name="main")
l1, l2, l3 = sch.get_loops(b0)
l4, l5 = sch.split(l2, factors=[None, 2])
)");
}

TEST(Campaign, TellsWrongSeedsFromCrashes) {
  const Campaign campaign = RunCampaign(0, 10, [](uint64_t seed) -> std::string {
    Count("run");
    if (seed == 3) return "three";
    if (seed == 5) std::abort();
    return "";
  });
  EXPECT_EQ(campaign.wrong, 1);
  EXPECT_EQ(campaign.crashed, 1);
  ASSERT_EQ(campaign.reports.size(), 2u);
  EXPECT_EQ(campaign.reports[0], "seed 3: three");
  EXPECT_EQ(campaign.reports[1], "seed 5: the process died, status 6");
  ASSERT_EQ(campaign.counts.size(), 1u);
  EXPECT_EQ(campaign.counts[0].second, 10);
  EXPECT_TRUE(FailsInChild([] { return true; }));
  EXPECT_TRUE(FailsInChild([]() -> bool { std::abort(); }));
  EXPECT_FALSE(FailsInChild([] { return false; }));
}

}  // namespace
}  // namespace hone::testing
