// Thread bindings with barriers, and atomic updates.
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/interp/checked_program.h"

namespace hone {
namespace {

std::vector<float> RunOn(const PrimFunc& f, std::vector<float> input, int64_t outputs) {
  std::vector<NdArray> args = {NdArray::Of<float>(kFloat32, {static_cast<int64_t>(input.size())}, input),
                               NdArray(kFloat32, {outputs})};
  const absl::Status status = Interpret(f, args);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return {args[1].As<float>(), args[1].As<float>() + outputs};
}

std::string Failure(const PrimFunc& f) {
  std::vector<NdArray> args = RandomArguments(f, 1, InputKind::kInteger);
  return std::string(Interpret(f, args).message());
}

// Each thread reads what its neighbour wrote: wrong without the barrier, whatever the order of threads.
TEST(ThreadsTest, WhatOneThreadWroteAnotherReadsAfterTheBarrier) {
  const PrimFunc f = CheckedProgram(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            with T.allocate((4,), "float32", scope="shared") as S:
                S[t] = A[b * 4 + t]
                T.tvm_storage_sync("shared")
                B[b * 4 + t] = S[(t + 1) % 4] * T.float32(10) + S[(t + 3) % 4]
)");
  EXPECT_THAT(RunOn(f, {1, 2, 3, 4, 5, 6, 7, 8}, 8), testing::ElementsAre(24, 31, 42, 13, 68, 75, 86, 57));
}

// A tree reduction in shared memory, a barrier in every round, thread-local results beside it.
TEST(ThreadsTest, TreeReductionWithABarrierARound) {
  const PrimFunc f = CheckedProgram(R"(
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((2,), "float32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("reduce"):
                vb = T.axis.spatial(2, b)
                vt = T.axis.spatial(8, t)
                T.reads(A[0:16])
                T.writes(B[0:2])
                S = T.alloc_buffer((8,), "float32", scope="shared")
                mine = T.alloc_buffer((1,), "float32", scope="local")
                mine[0] = A[vb * 8 + vt]
                S[vt] = mine[0]
                for r in range(3):
                    T.tvm_storage_sync("shared")
                    if vt < T.shift_right(4, r):
                        mine[0] = mine[0] + S[vt + T.shift_right(4, r)]
                    T.tvm_storage_sync("shared")
                    S[vt] = mine[0]
                if vt == 0:
                    B[vb] = mine[0]
)");
  EXPECT_THAT(RunOn(f, {1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80}, 2), testing::ElementsAre(36, 360));
}

// Threads of two axes: the inner loop makes threads of its own, which meet at one barrier.
TEST(ThreadsTest, TwoAxesTransposeThroughSharedMemory) {
  const PrimFunc f = CheckedProgram(R"(
@T.prim_func
def main(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32")):
    for y in T.thread_binding(3, thread="threadIdx.y"):
        with T.allocate((3, 4), "float32", scope="shared") as S:
            for x in T.thread_binding(4, thread="threadIdx.x"):
                S[y, x] = A[y * 4 + x]
                T.tvm_storage_sync("shared")
                B[y * 4 + x] = S[(y * 4 + x) % 3, (y * 4 + x) // 3]
)");
  EXPECT_THAT(RunOn(f, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 12),
              testing::ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
}

TEST(ThreadsTest, AtomicUpdatesAddUp) {
  const PrimFunc f = CheckedProgram(R"(
@T.prim_func
def main(A: T.Buffer((12,), "float32"), B: T.Buffer((3,), "float32")):
    for i in range(3):
        B[i] = T.float32(0)
    for t in T.thread_binding(12, thread="threadIdx.x"):
        T.evaluate(T.atomic_add(B[t % 2], A[t]))
        T.evaluate(T.atomic_max(B[2], A[t]))
)");
  EXPECT_THAT(RunOn(f, {1, 2, 3, 4, 5, 60, 7, 8, 9, 10, 11, 12}, 3), testing::ElementsAre(36, 96, 60));
}

struct DivergentCase {
  const char* name;
  const char* body;
  const char* message;
};
class DivergentTest : public testing::TestWithParam<DivergentCase> {};
TEST_P(DivergentTest, IsFound) {
  const PrimFunc f = CheckedProgram(std::string(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        B[t] = A[t]
)") + GetParam().body);
  EXPECT_EQ(Failure(f),
            std::string("interpreting main: divergent barrier: thread threadIdx.x = ") + GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(Cases, DivergentTest,
                         testing::Values(DivergentCase{"OneThreadLeavesItOut", R"(
        if t < 3:
            T.tvm_storage_sync("shared")
)",
                                                       "0 waits at it, thread threadIdx.x = 3 has ended"},
                                         DivergentCase{"TwoBarriers", R"(
        if t < 2:
            T.tvm_storage_sync("shared")
        else:
            T.tvm_storage_sync("shared")
)",
                                                       "0 waits at it, thread threadIdx.x = 2 waits at another"},
                                         DivergentCase{
                                             "OtherIterations", R"(
        for r in range(3):
            if (t + r) % 2 == 0:
                T.tvm_storage_sync("shared")
)",
                                             "0 waits at it, thread threadIdx.x = 1 is there with r = 1, not 0"},
                                         DivergentCase{"UnequalTripCounts", R"(
        for r in range(t + 1):
            T.tvm_storage_sync("shared")
)",
                                                       "1 waits at it, thread threadIdx.x = 0 has ended"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ThreadsTest, AThreadDoesNotSeeWhatAnotherHasInRegisters) {
  const PrimFunc f = CheckedProgram(R"(
@T.prim_func
def main(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
    for t in T.thread_binding(2, thread="threadIdx.x"):
        with T.allocate((2,), "float32", scope="local") as mine:
            mine[t] = A[t]
            T.tvm_storage_sync("shared")
            B[t] = mine[1 - t]
)");
  EXPECT_THAT(Failure(f), testing::HasSubstr("mine[1] is read before it is written"));
}

}  // namespace
}  // namespace hone
