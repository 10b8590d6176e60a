// Kernels that take their sizes when they are called: one compiled kernel is right at every size of its range.
//   HONE_SEEDS=500 compiler_codegen_tests --gtest_filter=SymbolicKernels.*
#include <cstdio>

#include "compiler/ir/symbolic_sizes.h"
#include "compiler/schedule/trace/trace.h"
#include "tests/compiler/codegen/run_kernel.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/schedule/shrink.h"
#include "tests/compiler/schedule/symbolic_workloads.h"

namespace hone::testing {
namespace {

absl::StatusOr<CompiledKernel> Compiled(const Schedule& schedule, const X86Way& way) {
  HONE_ASSIGN_OR_RETURN(const Target target, ParseTarget(way.target));
  return CompileKernel(schedule.Program(), target, {.optimize = way.optimize, .fuse = way.fuse, .symbolic = true});
}

bool RunsHere(const X86Way& way) { return MissingFeatures(*ParseTarget(way.target), HostTarget()).empty(); }

// "" or at which size the kernel is wrong.
std::string WrongAt(const SymbolicWorkload& workload, const Trace& trace, const CompiledKernel& kernel,
                    const std::vector<std::vector<int64_t>>& sizes, int threads) {
  for (const std::vector<int64_t>& at : sizes) {
    const SmallWorkload fixed = AtSizes(workload, at);
    const Reference& reference = ReferenceOf(fixed, trace);
    std::vector<NdArray> got = reference.arguments();
    const absl::Status ran = RunCompiled(kernel, got, threads, at);
    const std::string said = ran.ok() ? reference.Compare(got) : ran.ToString();
    if (!said.empty()) return absl::StrCat(fixed.name, ": ", said);
  }
  return "";
}

// Seventeen of a range: its ends, and around multiples of the tiles.
std::vector<std::vector<int64_t>> SeventeenSizes(const PrimFunc& func) {
  std::vector<std::vector<int64_t>> sizes;
  for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 15, 16, 17, 21, 24, 31, 0}) {
    sizes.emplace_back();
    for (const Var& dim : func.dims) sizes.back().push_back(n == 0 ? dim.range()->max : std::min(n, dim.range()->max));
  }
  return sizes;
}

// Rows in tiles of four, columns (or what they are) in vectors of eight, pieces of rows in parallel.
Schedule Tiled(const SymbolicWorkload& workload) {
  Schedule s(workload.func);
  const std::vector<BlockRef> outputs = Get(GetOutputBlocks(s));
  const std::vector<LoopRef> loops = Get(GetLoops(s, outputs[0]));
  const std::vector<LoopRef> rows = Get(Split(s, loops[0], {-1, 4}));
  if (Get(s.FindLoop(rows[1]))->extent.As<IntImm>() != nullptr && loops.size() > 1) {
    const std::vector<LoopRef> columns = Get(Split(s, loops[1], {-1, 8}));
    (void)Reorder(s, {rows[0], columns[0], rows[1], columns[1]});
    (void)Vectorize(s, columns[1]);
  }
  (void)Unroll(s, rows[1]);
  (void)Parallel(s, rows[0]);
  return s;
}

TEST(SymbolicKernels, AreRightAtSeventeenSizes) {
  for (const SymbolicWorkload& workload : SymbolicWorkloads()) {
    for (const Schedule& schedule : {Schedule(workload.func), Tiled(workload)}) {
      for (const X86Way& way : kX86Ways) {
        if (!RunsHere(way)) continue;
        SCOPED_TRACE(absl::StrCat(workload.name, ", ", way.name));
        const absl::StatusOr<CompiledKernel> kernel = Compiled(schedule, way);
        ASSERT_TRUE(kernel.ok()) << kernel.status() << ToText(schedule.func());
        EXPECT_EQ(WrongAt(workload, schedule.trace(), *kernel, SeventeenSizes(workload.func), 2), "")
            << ToText(schedule.func());
      }
    }
  }
}

TEST(SymbolicKernels, AreRefusedToThoseWhoPassNoSizes) {
  const PrimFunc& func = SymbolicWorkloads()[0].func;
  EXPECT_TRUE(Says(CompileKernel(ScheduledProgram{func, {}}, HostTarget()), "has the symbolic size n; fix its sizes"));
}

TEST(SymbolicKernels, ScratchOfASizeWithoutARangeIsRefused) {
  const PrimFunc func = ParseOrDie(R"(
@T.prim_func
def main(n: T.int32, A: T.Buffer((n, 64), "float32"), B: T.Buffer((n, 64), "float32")):
    C = T.alloc_buffer((n, 64), "float32")
    for i, j in T.grid(n, 64):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(n, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = C[vi, 63 - vj]
)");
  EXPECT_TRUE(Says(CompileKernel(ScheduledProgram{func, {}}, HostTarget(), {.symbolic = true}),
                   "give its sizes smaller ranges"));
}

std::string CheckSeed(uint64_t seed) {
  Random random(seed);
  const SymbolicWorkload& workload = SymbolicWorkloads()[random.Below(SymbolicWorkloads().size())];
  Player player(workload.func, random, Machine::kCpu);
  player.PlayChanges(1 + static_cast<int>(random.Below(20)));
  const std::vector<std::vector<int64_t>> sizes = SomeSizes(workload.func, 2, random);
  const X86Way& way = kX86Ways[seed % std::size(kX86Ways)];
  if (!RunsHere(way)) return "";
  const auto wrong = [&](const Schedule& s) {
    const absl::StatusOr<CompiledKernel> kernel = Compiled(s, way);
    return kernel.ok() ? WrongAt(workload, s.trace(), *kernel, sizes, 1 + static_cast<int>(seed % 2))
                       : kernel.status().ToString();
  };
  Count("kernels");
  const std::string said = wrong(player.schedule());
  if (said.empty()) return "";
  const Trace least = Shrink(player.schedule().trace(), workload.func,
                             [&](const Schedule& s) { return FailsInChild([&] { return !wrong(s).empty(); }); });
  return absl::StrCat(way.name, ": ", said, "\nThe least trace:\n", ToText(least), ToText(workload.func),
                      ToText(Replay(least, workload.func)->func()));
}

TEST(SymbolicKernels, OfRandomSchedulesAreRight) {
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                                        FromEnvironment("HONE_SEEDS", 100), CheckSeed);
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
}

}  // namespace
}  // namespace hone::testing
