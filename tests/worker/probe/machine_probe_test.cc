#include "worker/probe/machine_probe.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>

#include "worker/probe/probe_kernels.h"

namespace hone {
namespace {

// What no core of today does, whatever the clock: a probe whose loop the compiler folded would report several times
// that.
TEST(MachineProbe, FactsAreThoseOfACore) {
  const Target target = HostTarget();
  ProbeOptions options = kQuickProbe;
  options.threads = std::min(2, target.cores);
  const MachineProbe probe = ProbeMachine(target, options);
  const Machine& machine = probe.machine;
  ASSERT_TRUE(CheckMachine(machine, target).ok()) << CheckMachine(machine, target) << ToText(machine);
  EXPECT_GT(machine.ghz, 0.3);
  EXPECT_LT(machine.ghz, 7);
  EXPECT_GT(machine.fma_per_cycle(target.vector_bits), 0.2);
  EXPECT_LT(machine.fma_per_cycle(target.vector_bits), 4.5);
  EXPECT_LT(machine.fma128, 8.5);
  EXPECT_GT(machine.fma_latency, 1.5);  // halved when the clock of a busy machine reads low
  EXPECT_LT(machine.fma_latency, 20);
  EXPECT_LT(machine.l1 * 8 / target.vector_bits, 4.5) << "vector loads a cycle";
  EXPECT_GE(machine.l1, machine.l2);
  EXPECT_GE(machine.l2, machine.l3);
  EXPECT_GE(machine.l3, machine.memory);
  EXPECT_GT(machine.memory, 0.1);
  EXPECT_GE(machine.l3_all, machine.l3);
  EXPECT_GE(machine.memory_all, machine.memory);
  EXPECT_LE(machine.fork_us, 100);
  // The peak is that of multiply-adds, and no lower than what the facts say together.
  const double by_facts = machine.ghz * machine.fma_per_cycle(target.vector_bits) * target.lanes() * 2;
  EXPECT_GT(probe.gflops_1, 0.8 * by_facts);
  EXPECT_LT(probe.gflops_1, 1.3 * by_facts);
  EXPECT_GE(probe.gflops_all, probe.gflops_1);
}

TEST(MachineProbe, IsOfTheFeaturesOfTheTarget) {
  const Target narrow = *ParseTarget(HostTarget().arch == "x86_64" ? "cpu:native-avx512f" : "cpu:native");
  ProbeOptions options = kQuickProbe;
  const Machine machine = ProbeMachine(narrow, options).machine;
  EXPECT_EQ(machine.fma512, 0);
  EXPECT_GT(machine.fma_per_cycle(narrow.vector_bits), 0);
}

double ThreadSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST(MachineProbe, AQuickOneTakesATenthOfASecond) {
  ProbeOptions options = kQuickProbe;
  options.threads = std::min(2, HostTarget().cores);
  double shortest = 1;  // by processor time, of some: others may run at the same time
  for (int attempt = 0; attempt < 5 && shortest > 0.1; ++attempt) {
    const double start = ThreadSeconds();
    (void)ProbeMachine(HostTarget(), options);
    shortest = std::min(shortest, ThreadSeconds() - start);
  }
  EXPECT_LT(shortest, 0.1);
}

}  // namespace
}  // namespace hone
