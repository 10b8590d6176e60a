// Random schedules through code generation, at its lowest and at its normal level, and run: what they compute is what
// the interpreter says of the workload, bit for bit where its sums are exact. HONE_SEEDS=10000 tries as many in place
// of the few hundred of a usual run; HONE_BOARD_SEEDS does the same for CPUs that are emulated.
#include <cstdio>
#include <functional>

#include "tests/compiler/codegen/run_kernel.h"
#include "tests/boards/run_on_board.h"
#include "tests/compiler/schedule/campaign.h"
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

// On this machine. At the lowest level of code generation or at the normal one.
Way Here(bool optimize, int threads) {
  return {optimize ? "normal level" : "lowest level", [=](const Schedule& schedule, std::vector<NdArray>& args) {
            HONE_ASSIGN_OR_RETURN(const CompiledKernel kernel,
                                  CompileKernel(schedule.Program(), HostTarget(), {.optimize = optimize}));
            return RunCompiled(kernel, args, threads);
          }};
}

Way OnBoard(const std::string& cpu, int threads) {
  return {cpu, [=](const Schedule& schedule, std::vector<NdArray>& args) {
            HONE_ASSIGN_OR_RETURN(const Target target, ParseTarget("cpu:" + cpu));
            HONE_ASSIGN_OR_RETURN(const CompiledKernel kernel, CompileKernel(schedule.Program(), target));
            return RunOnBoard(kernel, args, cpu, threads);
          }};
}

// "" when the program, compiled and run, is right in all these ways.
std::string CheckSeed(uint64_t seed, const std::vector<Way>& ways) {
  Random random(seed);
  const SmallWorkload workload = PickWorkload(random);
  Player player(workload.func, random);
  player.PlayChanges(1 + static_cast<int>(random.Below(30)));
  const Reference& reference = ReferenceOf(workload, player.schedule().trace());
  for (const Way& way : ways) {
    const auto wrong = [&](const Schedule& s) {
      std::vector<NdArray> got = reference.arguments();
      const absl::Status ran = way.run(s, got);
      return ran.ok() ? reference.Compare(got) : ran.ToString();
    };
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

void ExpectAllRight(const Campaign& campaign) {
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  for (const auto& [name, count] : campaign.counts) {
    std::printf("%-28s %8lld\n", name.c_str(), static_cast<long long>(count));
  }
}

TEST(RandomSchedules, CompiledAgreesWithTheInterpreter) {
  const auto check = [](uint64_t seed) {
    const int threads = 1 + static_cast<int>(seed % 2);
    return CheckSeed(seed, {Here(/*optimize=*/false, threads), Here(/*optimize=*/true, threads)});
  };
  ExpectAllRight(RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                             FromEnvironment("HONE_SEEDS", 300), check));
}

TEST(RandomSchedules, CompiledForABoardAgreesWithTheInterpreter) {
  const auto check = [](uint64_t seed) {
    return CheckSeed(seed, {OnBoard(seed % 2 == 0 ? "cortex-a76" : "neoverse-n2", 1 + static_cast<int>(seed / 2 % 2))});
  };
  ExpectAllRight(RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                             FromEnvironment("HONE_BOARD_SEEDS", 200), check));
}

}  // namespace
}  // namespace hone::testing
