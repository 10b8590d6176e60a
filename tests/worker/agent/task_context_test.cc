// What a task is verified on, and that wrong kernels which ordinary inputs do not show are refused.
#include "worker/agent/trials/task_context.h"

#include <numeric>

#include "absl/strings/str_replace.h"
#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/sandbox/layers.h"
#include "compiler/target/target.h"
#include "compiler/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/schedule/workloads.h"
#include "tests/compiler/support/descriptor_limit.h"
#include "tests/worker/agent/host_task.h"
#include "worker/agent/builds/build_reply.h"
#include "worker/agent/builds/builder_pool.h"
#include "worker/agent/trials/verify_candidate.h"
#include "worker/oracle/input_plan.h"
#include "worker/runner/protocol.h"

namespace hone::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(20);

absl::StatusOr<std::unique_ptr<TaskContext>> MakeTask(const std::string& workload) {
  static auto& builders = *new BuilderPool(1, "", LayersSomeSystemsLack());
  return HostTask(workload, builders, kLimit);
}

// What verification on all sets of the workload's task says of another program.
Verified VerifyOnAllSets(const std::string& workload, const std::string& program) {
  const absl::StatusOr<std::unique_ptr<TaskContext>> task = MakeTask(workload);
  EXPECT_TRUE(task.ok()) << task.status();
  const absl::StatusOr<PrimFunc> func = ParsePrimFunc(program);
  EXPECT_TRUE(func.ok()) << func.status();
  const absl::StatusOr<CompiledKernel> kernel = CompileKernel({*func, {}}, HostTarget(), {.threads = 2});
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  const absl::StatusOr<std::string> image = LinkImage({&kernel->object, 1});
  EXPECT_TRUE(image.ok()) << image.status();
  Verified started = StartCandidate(**task, *image, Serialize(kernel->set), {.threads = 2, .run = kLimit});
  EXPECT_TRUE(started.runner.has_value()) << started.detail;
  if (!started.runner.has_value()) return started;
  std::vector<int> sets(static_cast<size_t>((*task)->num_sets()));
  std::iota(sets.begin(), sets.end(), 0);
  return VerifyOn(**task, *started.runner, sets, NumericLevel::kDefault, kLimit);
}

TEST(InputPlan, AdverseValuesForWhatTheyShow) {
  const InputPlan softmax = PlanInputs(Softmax(64, 1000));
  for (const InputKind kind : {InputKind::kUniform, InputKind::kInteger, InputKind::kLarge, InputKind::kPeaks,
                               InputKind::kPatterned, InputKind::kRising}) {
    EXPECT_THAT(softmax.kinds, Contains(kind)) << static_cast<int>(kind);
  }
  EXPECT_GE(softmax.least, 4);
  const InputPlan product = PlanInputs(Matmul(256, 256, 256));
  EXPECT_EQ(product.kinds, softmax.kinds);
  EXPECT_EQ(product.least, 2);
  // What a window may be computed by does not matter: bounds hold for it.
  EXPECT_EQ(PlanInputs(ConvBiasResidualRelu({20, 200, 8, 8})).kinds, product.kinds);
  EXPECT_THAT(PlanInputs(ConvBiasResidualRelu({20, 20, 8, 8})).kinds,
              ::testing::AllOf(Contains(InputKind::kPeaks), Contains(InputKind::kPatterned)));
  EXPECT_LE(PlanInputs(Softmax(3, 4)).kinds.size(), static_cast<size_t>(kRunnerMaxSets));
}

TEST(TaskContext, ALargeTaskIsTriedOnTwoSetsInTurn) {
  const absl::StatusOr<std::unique_ptr<TaskContext>> task = MakeTask(ToText(Softmax(64, 1000)));
  ASSERT_TRUE(task.ok()) << task.status();
  ASSERT_GT((*task)->num_sets(), 2);
  std::vector<int> times(static_cast<size_t>((*task)->num_sets()));
  for (int trial = 0; trial < 200; ++trial) {
    for (const int set : (*task)->SetsOfTrial()) ++times[static_cast<size_t>(set)];
  }
  EXPECT_EQ(times[0], 200);
  EXPECT_EQ(std::accumulate(times.begin(), times.end(), 0), 400);
  for (const int count : times) EXPECT_GT(count, 0);
}

// Whichever descriptor is the one too many, the task's candidates are not to blame.
TEST(TaskContext, WithoutDescriptorsIsNobodysFault) {
  const std::string workload = ToText(Matmul(8, 8, 8));
  ASSERT_TRUE(MakeTask(workload).ok()) << "its builder runs from here on";
  int refused = 0;
  for (int more = 0;; ++more) {
    ASSERT_LT(more, 64);
    const absl::Status status = [&] {
      const DescriptorLimit limit(more);
      return MakeTask(workload).status();
    }();
    if (status.ok()) break;
    ++refused;
    const v1::Outcome outcome = OutcomeOfUnprepared(status);
    EXPECT_EQ(outcome.kind(), v1::OUTCOME_INFRA) << more << " more: " << status;
  }
  EXPECT_GE(refused, 6);
}

// What a level of lower precision makes of a product: the oracle and the interpreter agree on what is rounded.
TEST(TaskContext, OfOperandsThatAreRounded) {
  for (const char* type : {"bfloat16", "float16"}) {
    const std::string workload = absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((48, 512), "float32"), B: T.Buffer((512, 32), "TYPE"), C: T.Buffer((48, 32), "float32")):
    a = T.alloc_buffer((48, 512), "TYPE")
    for i, k in T.grid(48, 512):
        with T.block("a"):
            vi, vk = T.axis.remap("SS", [i, k])
            a[vi, vk] = T.Cast("TYPE", A[vi, vk])
    for i, j, k in T.grid(48, 32, 512):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("float32", a[vi, vk]) * T.Cast("float32", B[vk, vj])
)",
                                                     {{"TYPE", type}});
    const Verified right = VerifyOnAllSets(workload, workload);
    EXPECT_EQ(right.kind, v1::OUTCOME_UNSPECIFIED) << type << ": " << right.detail;
  }
}

std::string SoftmaxText(const std::string& shift) {
  return absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((64, 1000), "float32"), C: T.Buffer((64, 1000), "float32")):
    most = T.alloc_buffer((64,), "float32")
    sum = T.alloc_buffer((64,), "float32")
    for i, k in T.grid(64, 1000):
        with T.block("most"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                most[vi] = T.float32("-inf")
            most[vi] = T.max(most[vi], A[vi, vk])
    for i, k in T.grid(64, 1000):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                sum[vi] = T.float32(0)
            sum[vi] = sum[vi] + T.exp(A[vi, vk] - SHIFT)
    for i, j in T.grid(64, 1000):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.exp(A[vi, vj] - SHIFT) / sum[vi]
)",
                             {{"SHIFT", shift}});
}

TEST(Verification, ASoftmaxThatTakesNoMaximumOffIsWrong) {
  const std::string workload = SoftmaxText("most[vi]");
  const Verified right = VerifyOnAllSets(workload, workload);
  EXPECT_EQ(right.kind, v1::OUTCOME_UNSPECIFIED) << right.detail;
  EXPECT_EQ(VerifyOnAllSets(workload, SoftmaxText("T.float32(0)")).kind, v1::OUTCOME_WRONG_RESULT);
}

std::string RowPlusVectorText(const std::string& condition) {
  return absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((64, 100), "float32"), B: T.Buffer((100,), "float32"), C: T.Buffer((64, 100), "float32")):
    for i in T.parallel(64):
        with T.block("row"):
            vi = T.axis.spatial(64, i)
            kept = T.alloc_buffer((100,), "float32")
            for j in range(100):
                with T.block("kept"):
                    vj = T.axis.spatial(100, j)
                    T.where(CONDITION)
                    kept[vj] = B[vj] * T.float32(2)
            for j in range(100):
                with T.block("C"):
                    vj = T.axis.spatial(100, j)
                    C[vi, vj] = A[vi, vj] + kept[vj]
)",
                             {{"CONDITION", condition}});
}

// Each of two threads runs 32 iterations: the later ones find in its scratch what the first left there, which is right.
TEST(Verification, WhatAnotherIterationLeftInScratchIsNoResult) {
  const std::string workload = RowPlusVectorText("j < 100");
  const Verified right = VerifyOnAllSets(workload, workload);
  EXPECT_EQ(right.kind, v1::OUTCOME_UNSPECIFIED) << right.detail;
  const Verified wrong = VerifyOnAllSets(workload, RowPlusVectorText("vi % 32 < 1"));
  EXPECT_EQ(wrong.kind, v1::OUTCOME_WRONG_RESULT) << wrong.detail;
}

std::string PairText(const std::string& value) {
  return absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((40, 1000), "float32"), B: T.Buffer((40, 1000), "float32"), C: T.Buffer((40, 1000), "float32")):
    for i, j in T.grid(40, 1000):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = VALUE
)",
                             {{"VALUE", value}});
}

TEST(Verification, InputsOfOneShapeAreNotTakenForEachOther) {
  const std::string workload = PairText("A[vi, vj] + B[vi, vj]");
  EXPECT_EQ(VerifyOnAllSets(workload, workload).kind, v1::OUTCOME_UNSPECIFIED);
  EXPECT_EQ(VerifyOnAllSets(workload, PairText("A[vi, vj] + A[vi, vj]")).kind, v1::OUTCOME_WRONG_RESULT);
}

// The first of a row's 35 elements that is left out hides behind the largest unless it is the largest.
TEST(Verification, AMaximumWithoutOneOfItsElementsIsWrong) {
  const auto text = [](const std::string& element) {
    return absl::StrReplaceAll(R"(
@T.prim_func
def main(A: T.Buffer((3, 35), "float32"), C: T.Buffer((3,), "float32")):
    for i, k in T.grid(3, 35):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32("-inf")
            C[vi] = T.max(C[vi], ELEMENT)
)",
                               {{"ELEMENT", element}});
  };
  const std::string workload = text("A[vi, vk]");
  EXPECT_EQ(VerifyOnAllSets(workload, workload).kind, v1::OUTCOME_UNSPECIFIED);
  const std::string without = text("T.Select(vk % 5 == 2, T.float32(\"-inf\"), A[vi, vk])");
  for (int time = 0; time < 6; ++time) {
    EXPECT_EQ(VerifyOnAllSets(workload, without).kind, v1::OUTCOME_WRONG_RESULT) << time;
  }
}

TEST(TaskContext, WhatItsBoundDoesNotDecideIsRefused) {
  const std::string product = "A[vi, vj] * B[vi, vj]";
  const absl::StatusOr<std::unique_ptr<TaskContext>> task =
      MakeTask(PairText(absl::StrCat("T.float32(1) / (", product, " - ", product, ")")));
  EXPECT_EQ(task.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(task.status().message()), HasSubstr("error bound of output 0 is wider than its values"));
}

}  // namespace
}  // namespace hone::testing
