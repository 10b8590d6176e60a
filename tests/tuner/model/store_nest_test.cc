#include "tuner/model/store_nest.h"

#include <gtest/gtest.h>

#include "compiler/support/check.h"
#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "tuner/model/nest_costs.h"

namespace hone {
namespace {

// Lowered by hand: what StoreNests reads, without the passes in front.
LoweredFunc Lowered(const std::string& text) {
  absl::StatusOr<PrimFunc> func = ParsePrimFunc(text);
  HONE_CHECK(func.ok()) << func.status();
  LoweredFunc lowered;
  lowered.func = *std::move(func);
  return lowered;
}

std::vector<StoreNest> NestsOf(const std::string& text) { return StoreNests(Lowered(text)); }

// A tile of two rows and two vectors: four accumulators, written out, and the same once more for the next k.
constexpr char kTile[] = R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((512,), "float32"), D: T.Buffer((256,), "float32")):
    for i in T.parallel(4):
        C = T.allocate((64,), "float32", scope="local")
        for k in range(8):
            C[T.Ramp(0, 1, 16)] = C[T.Ramp(0, 1, 16)] + T.Broadcast(A[i * 16 + k], 16) * B[T.Ramp(k * 64, 1, 16)]
            C[T.Ramp(16, 1, 16)] = C[T.Ramp(16, 1, 16)] + T.Broadcast(A[i * 16 + k], 16) * B[T.Ramp(k * 64 + 16, 1, 16)]
            C[T.Ramp(32, 1, 16)] = C[T.Ramp(32, 1, 16)] + T.Broadcast(A[i * 16 + 8 + k], 16) * B[T.Ramp(k * 64, 1, 16)]
            C[T.Ramp(48, 1, 16)] = C[T.Ramp(48, 1, 16)] + T.Broadcast(A[i * 16 + 8 + k], 16) * B[T.Ramp(k * 64 + 16, 1, 16)]
        D[T.Ramp(i * 64, 1, 16)] = C[T.Ramp(0, 1, 16)]
        D[T.Ramp(i * 64 + 32, 1, 16)] = C[T.Ramp(32, 1, 16)]
)";

TEST(StoreNest, CopiesOfAnUnrolledStatementAreOne) {
  const std::vector<StoreNest> nests = NestsOf(kTile);
  ASSERT_EQ(nests.size(), 2u);
  const StoreNest& tile = nests[0];
  EXPECT_EQ(tile.target.name(), "C");
  EXPECT_EQ(tile.copies, 4);
  EXPECT_EQ(tile.targets, 4);
  EXPECT_TRUE(tile.accumulates);
  EXPECT_EQ(tile.operations[kFloatMulAdd], 4 * 16);
  EXPECT_EQ(tile.operations[kFloatAddSub] + tile.operations[kFloatMul], 0)
      << "a product that is added is one operation";
  EXPECT_EQ(tile.vector_operations, 4);
  ASSERT_EQ(tile.accesses.size(), 2u) << "registers are no memory";
  EXPECT_EQ(tile.accesses[0].distinct, 2) << "two rows of A";
  EXPECT_EQ(tile.accesses[0].repeats, 4);
  EXPECT_TRUE(tile.accesses[0].broadcast);
  EXPECT_EQ(tile.accesses[1].distinct, 2) << "two vectors of B";
  EXPECT_EQ(nests[1].target.name(), "D");
  EXPECT_EQ(nests[1].copies, 2);
  EXPECT_FALSE(nests[1].accumulates);
}

TEST(StoreNest, LoopsThatTheTargetDoesNotMoveWithReduce) {
  const StoreNest tile = NestsOf(kTile)[0];
  ASSERT_EQ(tile.loops.size(), 2u);
  EXPECT_TRUE(tile.loops[0].parallel);
  EXPECT_FALSE(tile.loops[0].reduce) << "the accumulators are allocated inside";
  EXPECT_TRUE(tile.loops[1].reduce);
  EXPECT_EQ(tile.allocated_at, 1);
  EXPECT_EQ(tile.allocated_bytes, 64 * 4);
  EXPECT_EQ(tile.Iterations(), 32);
}

TEST(StoreNest, FootprintsGrowAsLoopsClose) {
  const StoreNest tile = NestsOf(kTile)[0];
  const NestAccess &a = tile.accesses[0], &b = tile.accesses[1];
  EXPECT_EQ(FootprintOf(a, 2).elements, 2);      // one iteration: two scalars
  EXPECT_EQ(FootprintOf(a, 1).elements, 2 * 8);  // the loop over k
  EXPECT_EQ(FootprintOf(a, 0).elements, 64);     // all of A
  EXPECT_EQ(FootprintOf(b, 2).elements, 32);
  EXPECT_EQ(FootprintOf(b, 2).lines, 2);
  EXPECT_EQ(FootprintOf(b, 1).elements, 8 * 32);
  EXPECT_EQ(FootprintOf(b, 1).lines, 8 * 2);
  EXPECT_EQ(FootprintOf(b, 0).elements, 8 * 32) << "every i reads the same";
  EXPECT_FALSE(MovesWith(b, 0));
  EXPECT_TRUE(MovesWith(b, 1));
}

// The windows of neighbouring outputs overlap: 10 rows are read for 8 windows of three.
TEST(StoreNest, OverlappingWindowsAreCountedOnce) {
  const std::vector<StoreNest> nests = NestsOf(R"(
@T.prim_func
def main(A: T.Buffer((1000,), "float32"), D: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 3):
        D[i] = D[i] + A[i * 100 + k * 100]
)");
  ASSERT_EQ(nests.size(), 1u);
  const NestAccess& a = nests[0].accesses[0].buffer.name() == "A" ? nests[0].accesses[0] : nests[0].accesses[1];
  EXPECT_EQ(FootprintOf(a, 0).elements, 10);
  EXPECT_EQ(FootprintOf(a, 0).lines, 10);
  EXPECT_EQ(FootprintOf(a, 1).elements, 3);
}

// A loop that fuse made: its digits are as good as two loops.
TEST(StoreNest, DigitsOfAFusedLoopAreSteps) {
  const std::vector<StoreNest> nests = NestsOf(R"(
@T.prim_func
def main(A: T.Buffer((1000,), "float32"), D: T.Buffer((56,), "float32")):
    for f in T.parallel(56):
        D[f] = A[f // 7 * 100 + f % 7]
)");
  ASSERT_EQ(nests.size(), 1u);
  const NestAccess& a = nests[0].accesses[0];
  EXPECT_EQ(FootprintOf(a, 0).elements, 56);
  EXPECT_EQ(FootprintOf(a, 0).lines, 8) << "eight runs of seven elements";
  EXPECT_TRUE(MovesWith(a, 0));
}

TEST(StoreNest, GathersAndMasksAreSeen) {
  const std::vector<StoreNest> nests = NestsOf(R"(
@T.prim_func
def main(A: T.Buffer((1600,), "float32"), D: T.Buffer((160,), "float32")):
    for i in range(10):
        if i < 7:
            D[T.Ramp(i * 16, 1, 16)] = A[T.Ramp(i, 100, 16)]
)");
  ASSERT_EQ(nests.size(), 1u);
  EXPECT_TRUE(nests[0].accesses[0].gather);
  EXPECT_FALSE(nests[0].accesses[1].gather);
  EXPECT_EQ(nests[0].masked, 1);
  EXPECT_EQ(FootprintOf(nests[0].accesses[0], 1).lines, 16) << "a line for every lane";
}

NestMachine Device(int threads = 2) {
  const Target target = *ParseTarget("cpu:x86-64-v4,l1d=32K,l2=1M,l3=32M");
  Machine facts = UsualMachine(target);
  facts.fma512 = 2;
  facts.fma_latency = 4;
  return MachineOf(target, facts, threads);
}

TEST(NestCosts, ArithmeticWaitsForFewAccumulators) {
  const StoreNest tile = NestsOf(kTile)[0];
  const NestCosts costs = CostsOf(tile, LevelsOf(tile), Device());
  EXPECT_EQ(costs.arithmetic_cycles, 32 * 4 / 2.0);  // 32 iterations of four, two a cycle
  EXPECT_EQ(costs.latency_factor, 2);                // four accumulators where eight would be in flight
  EXPECT_EQ(costs.loads, 2);
  EXPECT_EQ(costs.broadcasts, 2);
  EXPECT_EQ(costs.stores, 0);
  EXPECT_EQ(costs.parallel, 4);
  EXPECT_EQ(costs.speed_up, 2);
  EXPECT_EQ(CostsOf(tile, LevelsOf(tile), Device(3)).speed_up, 2) << "three threads need two rounds for four pieces";
}

// 2,048 x 2,048 floats, read row by row for every i: 16 MiB fit into no cache but the third.
TEST(NestCosts, WhatACacheCannotHoldIsFetchedAgain) {
  const std::vector<StoreNest> nests = NestsOf(R"(
@T.prim_func
def main(A: T.Buffer((4194304,), "float32"), D: T.Buffer((4194304,), "float32")):
    for i, j, k in T.grid(10, 2048, 128):
        D[T.Ramp(j * 2048 + k * 16, 1, 16)] = A[T.Ramp(k * 16, 1, 16)] + A[T.Ramp(j * 2048 + k * 16, 1, 16)]
)");
  ASSERT_EQ(nests.size(), 1u);
  const NestCosts costs = CostsOf(nests[0], LevelsOf(nests[0]), Device());
  const double matrix = 4194304 * 4.0;
  EXPECT_EQ(costs.traffic[0], 10 * matrix * 3) << "every vector passes through the ports";
  EXPECT_GE(costs.traffic[2], 10 * matrix * 2) << "A and D again for every i";
  EXPECT_LT(costs.traffic[2], 10 * matrix * 2.1) << "the first row stays near";
}

}  // namespace
}  // namespace hone
