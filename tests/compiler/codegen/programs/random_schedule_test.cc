// Random schedules through code generation, at its lowest and at its normal level, for AVX2 and AVX-512 with and
// without fused multiply-adds, and for CPUs that are emulated, and run: what they compute is what the interpreter says
// of the workload, bit for bit where its sums are exact. HONE_SEEDS=10000 tries as many in place of the 150 of a usual
// run; HONE_BOARD_SEEDS does the same for CPUs that are emulated.
#include <cstdio>
#include <functional>

#include "compiler/schedule/primitive_table.h"
#include "compiler/schedule/trace/trace.h"
#include "tests/boards/run_on_board.h"
#include "tests/compiler/codegen/run_kernel.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/once_failed.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/schedule/shrink.h"

namespace hone::testing {
namespace {

// How a schedule is compiled and run.
struct Way {
  std::string name;
  std::function<absl::Status(const Schedule&, std::vector<NdArray>&)> run;
};

Way Here(const X86Way& way, int threads) {
  return {way.name, [=](const Schedule& schedule, std::vector<NdArray>& args) {
            HONE_ASSIGN_OR_RETURN(const Target target, ParseTarget(way.target));
            HONE_ASSIGN_OR_RETURN(
                const CompiledKernel kernel,
                CompileKernel(schedule.Program(), target, {.optimize = way.optimize, .fuse = way.fuse}));
            return RunCompiled(kernel, args, threads);
          }};
}

constexpr char kElsewhere[] = ": on cortex-a76";  // where a kernel stops the emulator of its own CPU

Way OnBoard(const std::string& cpu, int threads) {
  return {cpu, [=](const Schedule& schedule, std::vector<NdArray>& args) {
            HONE_ASSIGN_OR_RETURN(const Target target, ParseTarget("cpu:" + cpu));
            HONE_ASSIGN_OR_RETURN(const CompiledKernel kernel, CompileKernel(schedule.Program(), target));
            if (StopsEmulator(kernel, cpu)) {
              Count(cpu + kElsewhere);
              return OnBoard("cortex-a76", threads).run(schedule, args);
            }
            Count(cpu);
            return RunOnBoard(kernel, args, cpu, threads);
          }};
}

// "" when the schedule, compiled and run, is right.
std::string WrongCompiled(const Reference& reference, const Schedule& schedule, const Way& way) {
  std::vector<NdArray> got = reference.arguments();
  const absl::Status ran = way.run(schedule, got);
  return ran.ok() ? reference.Compare(got) : ran.ToString();
}

// "" when the program is right in all these ways.
std::string CheckSeed(uint64_t seed, const std::vector<Way>& ways) {
  Random random(seed);
  const SmallWorkload workload = PickWorkload(random);
  Player player(workload.func, random, Machine::kCpu);
  player.PlayChanges(1 + static_cast<int>(random.Below(30)));
  for (const auto& [name, count] : player.done()) Count(name, count);
  const Reference& reference = ReferenceOf(workload, player.schedule().trace());
  for (const Way& way : ways) {
    const auto wrong = [&](const Schedule& s) { return WrongCompiled(reference, s, way); };
    const std::string said = wrong(player.schedule());
    Count("kernels run");
    if (said.empty()) continue;
    const Trace least = Shrink(player.schedule().trace(), workload.func,
                               [&](const Schedule& s) { return FailsInChild([&] { return !wrong(s).empty(); }); });
    return absl::StrCat(workload.name, ", ", way.name, ": ", said, "\nThe least trace:\n", ToText(least),
                        ToText(workload.func), ToText(Replay(least, workload.func)->func()));
  }
  return "";
}

// The rarest primitives are played by one seed of 250: of fewer seeds than these it may be none.
constexpr int64_t kSeedsForAll = 2000;

// All that is played for CPUs, which have no threads to bind loops to, was compiled and run.
void ExpectEveryPrimitive(const Campaign& campaign, int64_t seeds) {
  if (seeds < kSeedsForAll) return;
  for (const Primitive& primitive : AllPrimitives()) {
    if (primitive.info->name == "bind") continue;
    EXPECT_GT(TimesCounted(campaign, primitive.info->name), 0) << primitive.info->name << " was never let through";
  }
}

TEST(RandomSchedules, CompiledAgreesWithTheInterpreter) {
  const auto check = [](uint64_t seed) {
    std::vector<Way> ways;  // the first two for all, of the others one in turn
    for (size_t i = 0; i < std::size(kX86Ways); ++i) {
      if (i >= 2 && i != 2 + seed / 2 % (std::size(kX86Ways) - 2)) continue;
      const bool runs = MissingFeatures(*ParseTarget(kX86Ways[i].target), HostTarget()).empty();
      Count(std::string(kX86Ways[i].name) + (runs ? "" : ": not run, lacked"));
      if (runs) ways.push_back(Here(kX86Ways[i], 1 + static_cast<int>(seed % 2)));
    }
    return CheckSeed(seed, ways);
  };
  const int64_t seeds = FromEnvironment("HONE_SEEDS", 150);
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)), seeds, check);
  ExpectAllRight(campaign);
  ExpectEveryPrimitive(campaign, seeds);
}

TEST(RandomSchedules, CompiledForABoardAgreesWithTheInterpreter) {
  static constexpr const char* kBoards[] = {"cortex-a76", "generic-rv64", "neoverse-n2", "spacemit-x60-zicond"};
  const auto check = [](uint64_t seed) {
    return CheckSeed(seed, {OnBoard(kBoards[seed % 4], 1 + static_cast<int>(seed / 4 % 2))});
  };
  const int64_t seeds = FromEnvironment("HONE_BOARD_SEEDS", 100);
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)), seeds, check);
  ExpectAllRight(campaign);
  ExpectEveryPrimitive(campaign, seeds);
  for (const std::string cpu : kBoards) {
    const int64_t elsewhere = TimesCounted(campaign, cpu + kElsewhere);
    EXPECT_LE(10 * elsewhere, TimesCounted(campaign, cpu)) << "most kernels for " << cpu << " are to run on it";
  }
}

// In every way that this machine has the features for, in a process of its own: the code may be illegal.
class OnceFailedCompiled : public ::testing::TestWithParam<std::string> {};
TEST_P(OnceFailedCompiled, IsRight) {
  const auto [workload, schedule] = ReadOnceFailed(GetParam());
  const Reference& reference = ReferenceOf(workload, schedule.trace());
  const auto check = [&](uint64_t) -> std::string {
    for (const X86Way& way : kX86Ways) {
      if (!MissingFeatures(*ParseTarget(way.target), HostTarget()).empty()) continue;
      const std::string said = WrongCompiled(reference, schedule, Here(way, /*threads=*/1));
      if (!said.empty()) return absl::StrCat(way.name, ": ", said);
    }
    return "";
  };
  for (const std::string& report : RunCampaign(0, 1, check).reports) ADD_FAILURE() << report;
}
INSTANTIATE_TEST_SUITE_P(Files, OnceFailedCompiled, ::testing::ValuesIn(OnceFailedFiles()), OnceFailedName);

}  // namespace
}  // namespace hone::testing
