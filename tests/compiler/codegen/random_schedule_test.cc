// Random schedules through code generation, at its lowest and at its normal level, and run: what they compute is what
// the interpreter says of the workload, bit for bit where its sums are exact. HONE_SEEDS=10000 tries as many in place
// of the few hundred of a usual run.
#include <cstdio>

#include "tests/compiler/codegen/run_kernel.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/schedule/shrink.h"

namespace hone::testing {
namespace {

// "" when the program, compiled and run, is right. At the lowest level of code generation or at the normal one.
std::string Compiled(const Reference& reference, const Schedule& schedule, bool optimize, int threads) {
  const absl::StatusOr<CompiledKernel> kernel = CompileKernel(schedule.Program(), HostTarget(), {.optimize = optimize});
  if (!kernel.ok()) return kernel.status().ToString();
  std::vector<NdArray> got = reference.arguments();
  const absl::Status ran = RunCompiled(*kernel, got, threads);
  return ran.ok() ? reference.Compare(got) : ran.ToString();
}

std::string CheckSeed(uint64_t seed) {
  Random random(seed);
  const SmallWorkload workload = PickWorkload(random);
  Player player(workload.func, random);
  player.PlayChanges(1 + static_cast<int>(random.Below(30)));
  const Reference& reference = ReferenceOf(workload, player.schedule().trace());
  const int threads = 1 + static_cast<int>(seed % 2);
  for (const bool optimize : {false, true}) {
    const auto wrong = [&](const Schedule& s) { return Compiled(reference, s, optimize, threads); };
    const std::string said = wrong(player.schedule());
    Count("kernels run");
    if (said.empty()) continue;
    const Trace least = Shrink(player.schedule().trace(), workload.func,
                               [&](const Schedule& s) { return FailsInChild([&] { return !wrong(s).empty(); }); });
    return absl::StrCat(workload.name, optimize ? ", normal level: " : ", lowest level: ", said, "\nThe least trace:\n",
                        ToText(least), ToText(workload.func), ToText(Replay(least, workload.func)->func()));
  }
  return "";
}

TEST(RandomSchedules, CompiledAgreesWithTheInterpreter) {
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                                        FromEnvironment("HONE_SEEDS", 300), CheckSeed);
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  for (const auto& [name, count] : campaign.counts) {
    std::printf("%-28s %8lld\n", name.c_str(), static_cast<long long>(count));
  }
}

}  // namespace
}  // namespace hone::testing
