// What LowerThreads refuses, and why; golden/lower_threads has what it makes, thread_schedule_test.cc that it is right.
#include "compiler/lower/lower_threads.h"

#include "tests/compiler/lower/check_passes.h"

namespace hone {
namespace {

struct RefusedCase {
  const char* name;
  const char* body;
  const char* message;
};

class LowerThreadsTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(LowerThreadsTest, SaysWhyNot) {
  const PrimFunc program = ParseOrDie(std::string(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
)") + GetParam().body);
  const absl::StatusOr<PrimFunc> lowered = LowerThreads(program);
  ASSERT_FALSE(lowered.ok()) << ToText(*lowered);
  EXPECT_EQ(lowered.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(lowered.status().message()),
            std::string("threads cannot run this program: ") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LowerThreadsTest,
    testing::Values(
        RefusedCase{"TwoExtents", R"(
    up = T.alloc_buffer((8,), "float32", scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("up"):
                vi = T.axis.spatial(8, i)
                up[vi] = A[vi]
        for j in T.thread_binding(4, thread="threadIdx.x"):
            for k in range(2):
                with T.block("B"):
                    vi = T.axis.spatial(8, j * 2 + k)
                    B[vi] = up[7 - vi]
)",
                    "loop j over threadIdx.x has the extent 4, loop i of the same launch 8; split both by one factor"},
        RefusedCase{"RegistersOfAnother", R"(
    up = T.alloc_buffer((8,), "float32", scope="local")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("up"):
                vi = T.axis.spatial(8, i)
                up[vi] = A[vi]
        for j in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(8, j)
                B[vi] = up[7 - vi]
)",
                    "buffer up, in scope local, is made and used under several loops over threads (loop j over "
                    "threadIdx.x), and a thread sees only its own; give it the scope shared"},
        RefusedCase{"WhatAnotherBlockMakes", R"(
    up = T.alloc_buffer((8,), "float32", scope="shared")
    for t in T.thread_binding(1, thread="threadIdx.x"):
        for i in T.thread_binding(8, thread="blockIdx.x"):
            with T.block("up"):
                vi = T.axis.spatial(8, i)
                up[vi] = A[vi]
        for j in T.thread_binding(8, thread="blockIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(8, j)
                B[vi] = up[7 - vi]
)",
                    "buffer up, in scope shared, is made and used by several blocks of one launch (loop j over "
                    "blockIdx.x), which nothing orders; put both under one loop over blockIdx.x"},
        RefusedCase{
            "SharedMemoryThatOutlivesTheLaunch", R"(
    up = T.alloc_buffer((8,), "float32", scope="shared")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("up"):
            vi = T.axis.spatial(8, i)
            up[vi] = A[vi]
    for j in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.spatial(8, j)
            B[vi] = up[7 - vi]
)",
            "buffer up, in scope shared, is used outside of the launch too, and what blocks and threads keep ends "
            "with it; give it the scope global"},
        RefusedCase{"ABarrierForSomeThreads", R"(
    up = T.alloc_buffer((8,), "float32", scope="shared")
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("both"):
            vi = T.axis.spatial(8, i)
            T.where(i < 6)
            T.reads(A[vi], up[0:8])
            T.writes(up[vi], B[vi])
            up[vi] = A[vi]
            B[vi] = up[7 - vi]
)",
                    "a barrier would have to stand in front of `B[threadIdx_x] = up[7 - threadIdx_x]`, where not all "
                    "threads of a block come by"},
        RefusedCase{
            "AReductionOfAnotherForm", R"(
    for t in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.spatial(1, 0)
            vk = T.axis.reduce(8, t)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] * T.float32(2) + A[vk]
)",
            "block B reduces over an axis of threads, and is not of the form x = x OP v (+, *, min, max); rfactor "
            "the reduction"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone
