// What LowerThreads refuses, and why; golden/lower_threads has what it makes, thread_schedule_test.cc that it is right.
#include "compiler/lower/threads/lower_threads.h"

#include <string>
#include <utility>

#include "compiler/lower/lower.h"
#include "tests/compiler/lower/check_passes.h"

namespace hone {
namespace {

struct RefusedCase {
  const char* name;
  const char* body;
  const char* message;
};

class LowerThreadsTest : public ::testing::TestWithParam<RefusedCase> {};

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
    ::testing::Values(
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
        RefusedCase{"ReductionAroundItsLaunch", R"(
    for k in range(2):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(1, 0)
                vk = T.axis.reduce(8, k * 4 + t)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vk]
)",
                    "block B reduces over an axis of threads, and loop k, which reduces too, lies outside of the "
                    "launch; reorder the two"},
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
        RefusedCase{"MemoryOfAnotherWarp", R"(
    up = T.alloc_buffer((8,), "float32", scope="warp")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for x in T.thread_binding(16, thread="threadIdx.x"):
            for i in T.thread_binding(8, thread="threadIdx.y"):
                with T.block("up"):
                    vi = T.axis.spatial(8, i)
                    T.where(x < 1)
                    up[vi] = A[vi]
            for j in T.thread_binding(8, thread="threadIdx.y"):
                with T.block("B"):
                    vi = T.axis.spatial(8, j)
                    T.where(x < 1)
                    B[vi] = up[7 - vi]
)",
                    "buffer up, in scope warp, is made and used under several loops over threads of several warps "
                    "(loop j over threadIdx.y), and a warp sees only its own; put both under one loop over "
                    "threadIdx.y, with a divisor of 32 threads along the axes before it, or give it the scope shared"},
        RefusedCase{"PartOfALongAxisForAWarp", R"(
    up = T.alloc_buffer((8,), "float32", scope="warp")
    for t in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("up"):
            vi = T.axis.spatial(8, 0)
            up[vi] = A[vi]
        with T.block("B"):
            vi = T.axis.spatial(8, t)
            T.where(t < 8)
            B[vi] = up[0]
)",
                    "block up does not depend on threadIdx.x, along which threads are of several warps, and writes up, "
                    "of which each warp has its own; give it the scope shared"},
        RefusedCase{"SumOverWarps", R"(
    up = T.alloc_buffer((1,), "float32", scope="warp")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for y in T.thread_binding(4, thread="threadIdx.y"):
            for x in T.thread_binding(32, thread="threadIdx.x"):
                with T.block("up"):
                    vi = T.axis.spatial(1, 0)
                    vk = T.axis.reduce(8, y)
                    T.where(x < 1)
                    with T.init():
                        up[vi] = T.float32(0)
                    up[vi] = up[vi] + A[vk]
                with T.block("B"):
                    vi = T.axis.spatial(8, y)
                    T.where(x < 1)
                    B[vi] = up[0]
)",
                    "block up reduces over threadIdx.y, along which threads are of several warps, and writes up, of "
                    "which each warp has its own; give it the scope shared"},
        RefusedCase{"RegistersOfEveryThread", R"(
    up = T.alloc_buffer((8,), "float32", scope="local")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("up"):
                vi = T.axis.spatial(8, i)
                up[vi] = A[vi]
        for j in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, j)
                B[vi] = up[vi]
)",
                    "buffer up, in scope local, is made and used under several loops over threads (loop i over "
                    "threadIdx.x), and a thread sees only its own; give it the scope shared"},
        RefusedCase{"RegistersThatOtherThreadsMakeLater", R"(
    up = T.alloc_buffer((8,), "float32", scope="local")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            for k in range(2):
                with T.block("up"):
                    vi = T.axis.spatial(8, i * 2 + k)
                    up[vi] = A[vi]
        for j in T.thread_binding(4, thread="threadIdx.x"):
            for k in range(2):
                with T.block("B"):
                    vi = T.axis.spatial(8, k * 4 + j)
                    B[vi] = up[vi]
)",
                    "buffer up, in scope local, is made and used under several loops over threads (loop j over "
                    "threadIdx.x), and a thread sees only its own; give it the scope shared"},
        RefusedCase{"RegistersThatOneThreadChanges", R"(
    up = T.alloc_buffer((1,), "float32", scope="local")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("up"):
                vi = T.axis.spatial(8, i)
                T.where(i == 3)
                up[0] = A[vi]
        for j in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(8, j)
                B[vi] = up[0]
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
        RefusedCase{"ElementsOfSeveralBlocksInTheMiddle", R"(
    for y in T.thread_binding(4, thread="blockIdx.y"):
        for x in T.thread_binding(2, thread="blockIdx.x"):
            with T.block("zero"):
                vy, vx = T.axis.remap("SS", [y, x])
                B[vy * 2 + vx] = T.float32(0)
        for x in range(2):
            with T.block("B"):
                vy, vx = T.axis.remap("SS", [y, x])
                T.where(y == 2)
                B[vy * 2 + vx] = A[vy * 2 + vx]
)",
                    "B[5] is written by several blocks (blockIdx.x = 1 and 0), which nothing orders; put what writes "
                    "it under a loop that is bound to no blocks"},
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
        RefusedCase{"TheGreatestWithThePlaceOfTheLeast", R"(
    for t in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.spatial(1, 0)
            vk = T.axis.reduce(8, t)
            with T.init():
                B[vi] = T.float32(9)
                A[vi] = T.float32("-inf")
            place: T.float32 = T.Select(A[vi] < T.Cast("float32", vk) or A[vi] == T.Cast("float32", vk) and B[vi] < T.float32(1), B[vi], T.float32(1))
            value: T.float32 = T.Select(A[vi] > T.Cast("float32", vk), A[vi], T.Cast("float32", vk))
            B[vi] = place
            A[vi] = value
)",
                    "block B reduces over an axis of threads, and is not of the form x = x OP v (+, *, min, max); "
                    "rfactor the reduction"},
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

// A copy of a step, and a sum of it, as a pipeline with these annotations.
class PipelineRefusedTest : public ::testing::TestWithParam<RefusedCase> {};
TEST_P(PipelineRefusedTest, SaysWhyNot) {
  const PrimFunc program = ParseOrDie(std::string(R"(
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32")):
    S = T.alloc_buffer((4, 8), "float32", scope="shared")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("zero"):
            vt = T.axis.spatial(8, t)
            B[vt] = T.float32(0)
        for k in T.)") + GetParam().body +
                                      R"():
            with T.block("fetch"):
                vk, vt = T.axis.remap("SS", [k, t])
                S[vk, vt] = A[vk, vt]
            with T.block("add"):
                vk, vt = T.axis.remap("RS", [k, t])
                B[vt] = B[vt] + S[vk, vt]
)");
  const absl::StatusOr<PrimFunc> lowered = LowerThreads(program);
  ASSERT_FALSE(lowered.ok()) << ToText(*lowered);
  EXPECT_EQ(lowered.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(lowered.status().message()),
            std::string("threads cannot run this program: ") + GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, PipelineRefusedTest,
    ::testing::Values(
        RefusedCase{"TooFewStages", R"(serial(4, annotations={"software_pipeline_stage": [0]})",
                    "loop k has 2 statements in its body, and software_pipeline_stage gives 1 of them a stage"},
        RefusedCase{"NoStages", R"(serial(4, annotations={"software_pipeline_order": [0, 1]})",
                    "loop k has 2 statements in its body, and software_pipeline_stage gives 0 of them a stage"},
        RefusedCase{"NoNumbers", R"(serial(4, annotations={"software_pipeline_stage": "two"})",
                    "loop k has the annotation software_pipeline_stage, which is no list of numbers"},
        RefusedCase{"OnePlaceTwice",
                    R"(serial(4, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [1, 1]})",
                    "loop k has the annotation software_pipeline_order, which does not give each of its 2 statements "
                    "one place"},
        RefusedCase{"AnotherAnnotation",
                    R"(serial(4, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_depth": 2})",
                    "loop k has the annotation software_pipeline_depth, which nothing honours; unannotate the loop"},
        RefusedCase{"AStageTooFar", R"(serial(4, annotations={"software_pipeline_stage": [0, 99]})",
                    "loop k has a stage in software_pipeline_stage that is none from 0 to 16"},
        RefusedCase{
            "NobodyInTheStage",
            R"(serial(4, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_async_stages": [2]})",
            "loop k has the asynchronous stage 2, in which there is no statement"},
        RefusedCase{"AnUnrolledLoop", R"(unroll(4, annotations={"software_pipeline_stage": [0, 1]})",
                    "loop k is pipelined, so its iterations are to follow one another; make it serial"},
        RefusedCase{"UsedBeforeItIsFetched", R"(serial(4, annotations={"software_pipeline_stage": [1, 0]})",
                    "the pipeline of loop k lets statement 1 (stage 0, place 1) run before statement 0 (stage 1, place "
                    "0), and both use S; give it a later stage, or a later place"},
        RefusedCase{
            "UsedFirstInOneStage",
            R"(serial(4, annotations={"software_pipeline_stage": [0, 0], "software_pipeline_order": [1, 0]})",
            "the pipeline of loop k lets statement 1 (stage 0, place 0) run before statement 0 (stage 0, place 1), and "
            "both use S; give it a later stage, or a later place"},
        RefusedCase{
            "NoCopy",
            R"(serial(4, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_async_stages": [1]})",
            "the pipeline of loop k has `B[threadIdx_x] = B[threadIdx_x] + S[0, threadIdx_x]` in the asynchronous "
            "stage 1, and only copies of elements from global to shared memory are asynchronous"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(PipelineOrderTest, ThereAreNoneOnACpu) {
  const PrimFunc program = ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.serial(8, annotations={"software_pipeline_stage": [0]}):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
)");
  EXPECT_EQ(Lower(program).status().message(),
            "loop i has the annotation software_pipeline_stage, which is for the threads of a GPU; unannotate it");
}

// A buffer that outlives an iteration orders the iterations.
TEST(PipelineOrderTest, AStageForEachOfTwoThatShareMoreThanAnIteration) {
  const PrimFunc program = ParseOrDie(R"(
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for k in T.serial(4, annotations={"software_pipeline_stage": [0, 1]}):
            with T.block("first"):
                vk = T.axis.opaque(4, k)
                vt = T.axis.spatial(8, t)
                T.reads(A[vk, vt])
                T.writes(B[vt])
                B[vt] = A[vk, vt]
            with T.block("second"):
                vk = T.axis.opaque(4, k)
                vt = T.axis.spatial(8, t)
                T.reads(B[vt])
                T.writes(B[vt])
                B[vt] = B[vt] * T.float32(2)
)");
  EXPECT_EQ(LowerThreads(program).status().message(),
            "threads cannot run this program: the pipeline of loop k puts statement 0 (stage 0, place 0) and statement "
            "1 (stage 1, place 1) into several stages, and both use B, which outlives an iteration; give them one "
            "stage");
}

TEST(LowerForACpu, RefusesMemoryThatThreadsShare) {
  for (const auto& [scope, whose] : {std::pair("shared", "shared"), std::pair("warp", "a warp's")}) {
    const PrimFunc program = ParseOrDie(std::string(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    up = T.alloc_buffer((8,), "float32", scope=")") +
                                        scope +
                                        R"(")
    for i in range(8):
        with T.block("up"):
            vi = T.axis.spatial(8, i)
            up[vi] = A[vi]
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = up[7 - vi]
)");
    EXPECT_EQ(std::string(Lower(program, {}).status().message()),
              std::string("buffer up is in ") + whose + " memory, which a CPU does not have");
  }
}

}  // namespace
}  // namespace hone
