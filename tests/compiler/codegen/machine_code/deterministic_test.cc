// The same program, target and options give the same bytes in every process: `hone compile` makes a record's kernel
// anew and compares digests, so that a record's time holds on machines that never saw the one it was measured on.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/compile.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/support/parallel_for.h"
#include "compiler/support/sha256.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/random_schedule.h"

namespace hone::testing {
namespace {

constexpr int kPrograms = 30;

// Random schedule `seed`, replayed from its text and compiled for a target that is the same on every machine.
std::string DigestOf(uint64_t seed) {
  Random random(seed);
  const SmallWorkload workload = PickWorkload(random);
  Player player(workload.func, random);
  player.PlayChanges(1 + static_cast<int>(random.Below(30)));
  const absl::StatusOr<Trace> trace = ParseTrace(ToText(player.schedule().trace()));
  if (!trace.ok()) return trace.status().ToString();
  const absl::StatusOr<Schedule> schedule = Replay(*trace, workload.func);
  if (!schedule.ok()) return schedule.status().ToString();
  const char* const targets[] = {"cpu:x86-64-v3", "cpu:znver5", "cpu:cortex-a76", "cpu:generic-rv64"};
  const absl::StatusOr<CompiledKernel> kernel = CompileKernel(
      schedule->Program(), *ParseTarget(targets[seed % std::size(targets)]), {.threads = static_cast<int>(seed % 2)});
  return kernel.ok() ? ToHex(Sha256(kernel->object)) : kernel.status().ToString();
}

std::string Digests(int threads) {
  std::vector<std::string> digests(kPrograms);
  ParallelFor(kPrograms, threads, [&](size_t i) { digests[i] = DigestOf(i); });
  std::string text;
  for (const std::string& digest : digests) text += digest + "\n";
  return text;
}

// What the process that Print below runs in says under `environment`, a prefix of its command line.
std::string DigestsUnder(const std::string& environment) {
  const std::string command = absl::StrCat(
      environment, " $(readlink -f /proc/", ::getpid(),
      "/exe) --gtest_also_run_disabled_tests --gtest_filter=Deterministic.DISABLED_Print | grep -a '^digests'");
  std::string output;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  char buffer[4096];
  for (size_t got; (got = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) output.append(buffer, got);
  ::pclose(pipe);
  return output;
}

// No test of its own: the child of the test below.
TEST(Deterministic, DISABLED_Print) {
  const int threads = static_cast<int>(FromEnvironment("HONE_THREADS", 1));
  std::printf("digests %s\n", ToHex(Sha256(Digests(threads))).c_str());
}

TEST(Deterministic, ThreadsDoNotMatter) {
  const std::string one = Digests(1);
  EXPECT_EQ(one.find(' '), std::string::npos) << "a program was refused:\n" << one;
  for (int round = 0; round < 3; ++round) EXPECT_EQ(Digests(4), one);
}

TEST(Deterministic, EnvironmentsDoNotMatter) {
  const std::string here = absl::StrCat("digests ", ToHex(Sha256(Digests(1))), "\n");
  const char* const environments[] = {
      "env -i",  // nothing in the environment, and another place in memory
      "setarch -R env MALLOC_PERTURB_=165 MALLOC_ARENA_MAX=1",  // no randomisation, memory that is not zero
      "env LC_ALL=tr_TR.UTF-8 LANG=de_DE TZ=Asia/Kathmandu HOME=/nonexistent TMPDIR=/nonexistent",
      "cd / && env HONE_THREADS=5",
      "taskset -c 0 env HONE_THREADS=2",
  };
  for (const char* environment : environments) { EXPECT_EQ(DigestsUnder(environment), here) << environment; }
}

}  // namespace
}  // namespace hone::testing
