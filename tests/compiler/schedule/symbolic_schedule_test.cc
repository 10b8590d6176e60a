// Schedules of programs with symbolic sizes: one scheduled program computes, at every size, what the unscheduled one
// does with that number in its place; and what cannot be done with a symbolic loop is refused by name.
//   HONE_SEEDS=500 HONE_FIRST_SEED=0 compiler_schedule_tests --gtest_filter=SymbolicSchedules.*
#include <cstdio>

#include "compiler/ir/symbolic_sizes.h"
#include "compiler/schedule/primitives/prefetch.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/schedule/trace/trace_edit.h"
#include "compiler/text/text.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/expect.h"
#include "tests/compiler/schedule/random_schedule.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/schedule/shrink.h"
#include "tests/compiler/schedule/symbolic_workloads.h"
#include "tests/compiler/text/parse_or_die.h"

namespace hone::testing {
namespace {

const SymbolicWorkload& Named(const std::string& name) {
  for (const SymbolicWorkload& workload : SymbolicWorkloads()) {
    if (workload.name == name) return workload;
  }
  HONE_CHECK(false) << name;
  __builtin_unreachable();
}

// "" or at which size the program is wrong, its parallel iterations in either order.
std::string WrongAt(const SymbolicWorkload& workload, const Schedule& schedule,
                    const std::vector<std::vector<int64_t>>& sizes) {
  for (const std::vector<int64_t>& at : sizes) {
    const SmallWorkload fixed = AtSizes(workload, at);
    const Reference& reference = ReferenceOf(fixed, schedule.trace());
    std::string said = reference.CheckInterpreted(schedule.Program());
    if (said.empty()) said = reference.CheckInterpreted(Reversed(schedule.Program()));
    if (!said.empty()) return absl::StrCat(fixed.name, ": ", said);
  }
  return "";
}

void ExpectRightAtEverySize(const SymbolicWorkload& workload, const Schedule& schedule) {
  ExpectReplays(schedule, workload.func);
  std::vector<std::vector<int64_t>> sizes;
  const SizeRange range = *workload.func.dims[0].range();
  for (int64_t n = range.min; n <= range.max; ++n) {
    sizes.push_back({n});
    for (size_t d = 1; d < workload.func.dims.size(); ++d)
      sizes.back().push_back(std::min(workload.func.dims[d].range()->max, 1 + n % 7 * 3));
  }
  EXPECT_EQ(WrongAt(workload, schedule, sizes), "") << ToText(schedule.func());
}

TEST(SymbolicSchedules, TheProductsTiles) {
  const SymbolicWorkload& workload = Named("dense_layer");
  Schedule s(workload.func);
  const BlockRef product = Get(GetBlock(s, "product")), sum = Get(GetBlock(s, "sum")), relu = Get(GetBlock(s, "relu"));
  Do(ComputeInline(s, sum));
  const std::vector<LoopRef> loops = Get(GetLoops(s, product));
  const std::vector<LoopRef> rows = Get(Split(s, loops[0], {-1, 4})), columns = Get(Split(s, loops[1], {-1, 8}));
  Do(Reorder(s, {rows[0], columns[0], loops[2], rows[1], columns[1]}));
  const BlockRef cached = Get(CacheWrite(s, product, 0, Scope::kThread));
  Do(ReverseComputeAt(s, cached, columns[0]));
  Do(ReverseComputeAt(s, relu, columns[0]));
  Do(Parallel(s, Get(Fuse(s, {rows[0], columns[0]}))));
  Do(Unroll(s, rows[1]));
  Do(Vectorize(s, columns[1]));
  Do(DecomposeReduction(s, product, loops[2]).status());
  ExpectRightAtEverySize(workload, s);
}

TEST(SymbolicSchedules, ProducersMoveUnderATile) {
  const SymbolicWorkload& workload = Named("convolution");
  Schedule s(workload.func);
  const BlockRef padded = Get(GetBlock(s, "padded")), conv = Get(GetBlock(s, "conv")), relu = Get(GetBlock(s, "relu"));
  const std::vector<LoopRef> loops = Get(GetLoops(s, relu));
  const std::vector<LoopRef> rows = Get(Split(s, loops[0], {-1, 8}));
  Do(ComputeAt(s, conv, rows[0]));
  Do(ComputeAt(s, padded, rows[0]));
  Do(Parallel(s, rows[0]));
  ExpectRightAtEverySize(workload, s);
}

TEST(SymbolicSchedules, RowsOfASoftmax) {
  const SymbolicWorkload& workload = Named("softmax");
  Schedule s(workload.func);
  const BlockRef share = Get(GetBlock(s, "share"));
  const LoopRef row = Get(GetLoops(s, share))[0];
  for (const char* name : {"total", "e", "most"}) Do(ComputeAt(s, Get(GetBlock(s, name)), row));
  const std::vector<LoopRef> columns = Get(Split(s, Get(GetLoops(s, share))[1], {-1, 8}));
  Do(Vectorize(s, columns[1]));
  Do(Parallel(s, row));
  ExpectRightAtEverySize(workload, s);
}

// Scores read the key in panels of eight columns: copied in front, there with their padding filled, and by each block
// of rows.
TEST(SymbolicSchedules, PanelsOfASymbolicOperand) {
  const SymbolicWorkload& workload = Named("scores");
  const IndexMap panels = Get(ParseIndexMap("lambda n, k: (n // 8, k, n % 8)"));
  enum class Copy { kInFront, kWithPadding, kInPanels };
  for (const Copy way : {Copy::kInFront, Copy::kWithPadding, Copy::kInPanels}) {
    Schedule s(workload.func);
    const BlockRef scores = Get(GetBlock(s, "scores"));
    const std::vector<LoopRef> loops = Get(GetLoops(s, scores));
    const std::vector<LoopRef> rows = Get(Split(s, loops[0], {-1, 4})), columns = Get(Split(s, loops[1], {-1, 8}));
    Do(Reorder(s, {rows[0], columns[0], loops[2], rows[1], columns[1]}));
    if (way == Copy::kInFront) {
      const BlockRef copy = Get(CacheRead(s, scores, 1, Scope::kGlobal));
      Do(TransformLayout(s, copy, 0, BufferKind::kWrite, panels));
    } else if (way == Copy::kWithPadding) {
      Do(TransformLayout(s, scores, 1, BufferKind::kRead, panels, 0.5));
      EXPECT_GE(s.index().FindBlock("key_global_padding"), 0) << ToText(s.func());
    } else {
      Do(Pack(s, scores, 1, rows[0], panels, PanelTails::kMask, Scope::kThread).status());
    }
    Do(Vectorize(s, columns[1]));
    ExpectRightAtEverySize(workload, s);
  }
}

TEST(SymbolicSchedules, WhatDividesShowsInTheShape) {
  const SymbolicWorkload& workload = Named("multiples");
  Schedule s(workload.func);
  const BlockRef product = Get(GetBlock(s, "product"));
  const std::vector<LoopRef> rows = Get(Split(s, Get(GetLoops(s, product))[0], {-1, 4}));
  EXPECT_TRUE(IsConst(Get(s.FindBlock(product))->predicate, 1)) << ToText(s.func());
  Do(Unroll(s, rows[1]));
  ExpectRightAtEverySize(workload, s);
}

TEST(SymbolicSchedules, ATraceOfOneSizeIsTakenToAll) {
  const SymbolicWorkload& workload = Named("dense_layer");
  const PrimFunc sixteen = WithSizes(workload.func, std::vector<int64_t>{16});
  Schedule s(sixteen);
  const BlockRef product = Get(GetBlock(s, "product")), relu = Get(GetBlock(s, "relu"));
  Do(ComputeInline(s, Get(GetBlock(s, "sum"))));
  const std::vector<LoopRef> loops = Get(GetLoops(s, product));
  const std::vector<LoopRef> rows = Get(Split(s, loops[0], {2, 2, 4}));
  Do(ReverseComputeAt(s, relu, rows[1]));
  Do(Unroll(s, rows[2]));
  Do(Parallel(s, rows[0]));
  EXPECT_FALSE(Replay(s.trace(), workload.func).ok());
  const Schedule of_all = Get(Replay(Get(ForAllSizes(s.trace(), workload.func)), workload.func));
  ExpectRightAtEverySize(workload, of_all);
  EXPECT_TRUE(Get(ForAllSizes(s.trace(), sixteen)) == s.trace()) << "nothing is symbolic, so nothing changes";
}

// Of ten passes over a panel as few as two are made where n is 3: those two ask for all of the next one.
TEST(SymbolicSchedules, PanelsAreAskedForInThePassesThatAreMade) {
  const PrimFunc func = ParseOrDie(R"(
@T.prim_func
def main(n: T.int32(3, 20), A: T.Buffer((n, 64), "float32"), B: T.Buffer((8, 64, 16), "float32"),
         C: T.Buffer((n, 128), "float32")):
    for p, r, k0, k1, i, j in T.grid(8, 10, 16, 4, 2, 16):
        with T.block("C"):
            vi = T.axis.spatial(n, r * 2 + i)
            vp, vj = T.axis.remap("SS", [p, j])
            vk = T.axis.reduce(64, k0 * 4 + k1)
            T.where(r * 2 + i < n)
            with T.init():
                C[vi, vp * 16 + vj] = T.float32(0)
            C[vi, vp * 16 + vj] = C[vi, vp * 16 + vj] + A[vi, vk] * B[vp, vk, vj]
)");
  Schedule s(func);
  const BlockRef block = Get(GetBlock(s, "C"));
  const std::vector<LoopRef> loops = Get(GetLoops(s, block));
  const BlockRef fetch = Get(PrefetchAcross(s, block, 1, loops[2], loops[0], loops[1]));
  const std::vector<LoopRef> around = Get(GetLoops(s, fetch));
  ASSERT_EQ(around.size(), 4u) << ToText(s.func());
  EXPECT_TRUE(IsConst(Get(s.FindLoop(around[3]))->extent, 2)) << "of four lines an iteration: " << ToText(s.func());
}

// At one size columns in vectors, the rest fused: of the symbolic rows and the symbolic tiles of columns one is fused.
TEST(SymbolicSchedules, AFusionOfSymbolicLoopsIsTakenToAll) {
  const SymbolicWorkload& workload = Named("chain");
  Schedule s(WithSizes(workload.func, std::vector<int64_t>{8, 16}));
  for (const char* name : {"a", "b"}) Do(ComputeInline(s, Get(GetBlock(s, name))));
  const std::vector<LoopRef> loops = Get(GetLoops(s, Get(GetBlock(s, "c"))));
  const std::vector<LoopRef> rows = Get(Split(s, loops[0], {4, 2})), columns = Get(Split(s, loops[1], {2, 8}));
  Do(Vectorize(s, columns[1]));
  Do(Parallel(s, Get(Fuse(s, {rows[0], rows[1], columns[0]}))));
  EXPECT_FALSE(Replay(s.trace(), workload.func).ok());
  const Schedule of_all = Get(Replay(Get(ForAllSizes(s.trace(), workload.func)), workload.func));
  ExpectRightAtEverySize(workload, of_all);
}

TEST(SymbolicSchedules, RefusalsAreByName) {
  const SymbolicWorkload& workload = Named("product_of_two_sizes");
  Schedule s(workload.func);
  const BlockRef product = Get(GetBlock(s, "product"));
  const std::vector<LoopRef> loops = Get(GetLoops(s, product));  // n, 5, m
  EXPECT_TRUE(Says(Split(s, loops[0], {4, -1}), "extent n is symbolic, so the outermost of the new loops"));
  EXPECT_TRUE(Says(Split(s, loops[0], {4, 4}), "the factors multiply to 16, which does not cover the extent n"));
  EXPECT_TRUE(Says(Vectorize(s, loops[0]), "the extent n is not a constant"));
  EXPECT_TRUE(Says(Unroll(s, loops[2]), "the extent m is not a constant"));
  EXPECT_TRUE(Says(Rfactor(s, loops[2], 0), "the loop is not a serial one from 0 to a number"));
  EXPECT_TRUE(Says(Fuse(s, {loops[1], loops[2]}), "only that of the outermost loop may be"));
  EXPECT_TRUE(Says(PadEinsum(s, product, {4, 1, 1}), "the domain of v_i0 is not [0, a number)"));
}

std::string CheckSeed(uint64_t seed) {
  Random random(seed);
  const SymbolicWorkload& workload = SymbolicWorkloads()[random.Below(SymbolicWorkloads().size())];
  Player player(workload.func, random, Machine::kCpu);
  player.PlayChanges(1 + static_cast<int>(random.Below(20)));
  for (const auto& [name, count] : player.done()) Count(name, count);
  Count("changes", player.changes());
  ExpectReplays(player.schedule(), workload.func);
  const std::vector<std::vector<int64_t>> sizes = SomeSizes(workload.func, 2, random);
  const auto wrong = [&](const Schedule& s) { return WrongAt(workload, s, sizes); };
  if (wrong(player.schedule()).empty()) return "";
  const Trace least =
      Shrink(player.schedule().trace(), workload.func, [&](const Schedule& s) { return !wrong(s).empty(); });
  const Schedule shown = Get(Replay(least, workload.func));
  return absl::StrCat(wrong(shown), "\nThe least trace:\n", ToText(least), ToText(workload.func), ToText(shown.func()));
}

TEST(SymbolicSchedules, RandomOnesAreSound) {
  const Campaign campaign = RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)),
                                        FromEnvironment("HONE_SEEDS", 1000), CheckSeed);
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  for (const auto& [name, count] : campaign.counts)
    std::printf("%-28s %8lld\n", name.c_str(), static_cast<long long>(count));
  EXPECT_GE(campaign.counts.size(), 40u) << "too few primitives are let through on symbolic programs";
}

}  // namespace
}  // namespace hone::testing
