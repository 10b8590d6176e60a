// Random legal schedules, 1 to 30 changes long, on small workloads of awkward sizes: whatever the checks let through
// computes what the workload computes, whatever order its parallel iterations run in, and replays; whatever they refuse
// leaves the schedule as it was. A failure comes with the least trace that shows it.
//   HONE_SEEDS=100000 HONE_FIRST_SEED=0 compiler_schedule_tests --gtest_filter='*RandomSchedules.*'
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/ir/structural.h"
#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/hand_written.h"
#include "tests/compiler/schedule/once_failed.h"
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

Schedule PlayAndCount(const SmallWorkload& workload, Random& random, bool moves_reduction = false) {
  Player player(workload.func, random, random.Chance(0.3) ? Machine::kGpu : Machine::kCpu);
  if (moves_reduction) {
    player.PlayChanges(static_cast<int>(random.Below(12)));
    player.PlayMovedReduction();
  }
  player.PlayChanges(1 + static_cast<int>(random.Below(30)));
  for (const auto& [name, count] : player.done()) Count(name, count);
  Count("changes", player.changes());
  return player.schedule();
}

std::string CheckPlayed(const SmallWorkload& workload, Random& random, bool moves_reduction = false) {
  const Schedule schedule = PlayAndCount(workload, random, moves_reduction);
  ExpectReplays(schedule, workload.func);
  const Reference& reference = ReferenceOf(workload, schedule.trace());
  const std::string wrong = Wrong(reference, schedule);
  if (wrong.empty()) return "";
  const Trace least =
      Shrink(schedule.trace(), workload.func, [&](const Schedule& s) { return !Wrong(reference, s).empty(); });
  const Schedule shown = Get(Replay(least, workload.func));
  return absl::StrCat(workload.name, ": ", wrong, "\nThe least trace:\n", ToText(least), Wrong(reference, shown), "\n",
                      ToText(workload.func), ToText(shown.func()));
}

std::string CheckSeed(uint64_t seed) {
  Random random(seed);
  const SmallWorkload workload = PickWorkload(random);
  return CheckPlayed(workload, random);
}

// The same schedule, not checked.
std::string PlaySeed(uint64_t seed) {
  Random random(seed);
  const SmallWorkload workload = PickWorkload(random);
  PlayAndCount(workload, random);
  return "";
}

// Of programs in which a reduction reads what another block makes.
std::string CheckMovedReductions(uint64_t seed) {
  static const auto& workloads = *new std::vector<SmallWorkload>([] {
    std::vector<SmallWorkload> found;
    for (const std::vector<SmallWorkload>* table : {&SmallWorkloads(), &HandWrittenWorkloads()}) {
      for (const SmallWorkload& workload : *table) {
        const ProgramIndex index(workload.func.body);
        const bool reads_made = std::ranges::any_of(index.AllBlocks(), [&](int node) {
          return HasReduction(index.block(node)) && !ProducersOf(index, node).empty();
        });
        if (reads_made) found.push_back(workload);
      }
    }
    return found;
  }());
  Random random(seed);
  return CheckPlayed(workloads[random.Below(workloads.size())], random, /*moves_reduction=*/true);
}

// Of the few workloads that reduce to several elements at once.
std::string CheckTuples(uint64_t seed) {
  static const auto& workloads = *new std::vector<SmallWorkload>([] {
    std::vector<SmallWorkload> found;
    for (const std::vector<SmallWorkload>* table : {&SmallWorkloads(), &HandWrittenWorkloads()}) {
      for (const SmallWorkload& workload : *table) {
        if (workload.name.find("arg") != std::string::npos || workload.name == "by_hand_moments")
          found.push_back(workload);
      }
    }
    return found;
  }());
  Random random(seed);
  return CheckPlayed(workloads[random.Below(workloads.size())], random);
}

constexpr int64_t kSeeds = 2000;  // one of 300 plays choose_algorithm, the rarest primitive

// One of the parts that the seeds are divided into, for tests that run side by side.
class RandomSchedules : public ::testing::TestWithParam<int64_t> {};
constexpr int64_t kParts = 4;

TEST_P(RandomSchedules, AreSound) {
  const int64_t seeds = FromEnvironment("HONE_SEEDS", kSeeds);
  const int64_t begin = seeds * GetParam() / kParts, end = seeds * (GetParam() + 1) / kParts;
  const uint64_t first = static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0) + begin);
  ExpectAllRight(RunCampaign(first, end - begin, CheckSeed));
}
INSTANTIATE_TEST_SUITE_P(Parts, RandomSchedules, ::testing::Range<int64_t>(0, kParts));

TEST(RandomSchedules, HaveEveryPrimitive) {
  const Campaign campaign = RunCampaign(0, kSeeds, PlaySeed);
  ExpectAllRight(campaign);
  for (const Primitive& primitive : AllPrimitives())
    EXPECT_GT(TimesCounted(campaign, primitive.info->name), 0) << primitive.info->name << " was never let through";
  for (const char* what : {"a map that swizzles", "a map that pads", "a map that pads with a value", "a param laid out",
                           "a block tensorized", "fma_tile_f32", "store_tile_f32", "zero_tile_f32"})
    EXPECT_GT(TimesCounted(campaign, what), 0) << what << " was never let through";
}

TEST(RandomSchedules, OfMovedReductionsAreSound) {
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                                        FromEnvironment("HONE_SEEDS", 1000) / 2, CheckMovedReductions);
  ExpectAllRight(campaign);
  EXPECT_GT(TimesCounted(campaign, "a sum moved"), FromEnvironment("HONE_SEEDS", 1000) / 10);
}

TEST(RandomSchedules, OfTuplesAreSound) {
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                                        FromEnvironment("HONE_SEEDS", 1000) / 10, CheckTuples);
  ExpectAllRight(campaign);
  EXPECT_GT(TimesCounted(campaign, "a tuple factored"), 0);
}

class OnceFailed : public ::testing::TestWithParam<std::string> {};

TEST_P(OnceFailed, IsSound) {
  const auto [workload, schedule] = ReadOnceFailed(GetParam());
  EXPECT_EQ(Wrong(Reference(workload), schedule), "") << ToText(schedule.func());
}
INSTANTIATE_TEST_SUITE_P(Files, OnceFailed, ::testing::ValuesIn(OnceFailedFiles()), OnceFailedName);

TEST(SmallWorkloads, AreManyAndAwkward) {
  std::set<std::string> names;
  std::set<uint64_t> programs;
  bool odd = false, unit = false;
  std::vector<SmallWorkload> all = SmallWorkloads();
  all.insert(all.end(), HandWrittenWorkloads().begin(), HandWrittenWorkloads().end());
  for (const SmallWorkload& workload : all) {
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
  EXPECT_EQ(names.size(), SmallWorkloads().size() + HandWrittenWorkloads().size());
  EXPECT_GE(programs.size(), 60u);
  EXPECT_TRUE(odd && unit);
}

}  // namespace
}  // namespace hone::testing
