// Default schedules for GPUs, of operators of every kind at odd sizes: the rule that is meant takes them, threads find
// no race in them, and they compute what the workload does, in the interpreter and on an OpenCL device.
#include "tuner/space/gpu/default_gpu_schedule.h"

#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_join.h"
#include "compiler/lower/device_program.h"
#include "compiler/lower/lower_threads.h"
#include "compiler/schedule/trace/trace.h"
#include "compiler/text/text.h"
#include "tests/compiler/codegen/gpu/run_on_opencl.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/compiler/schedule/workload_table.h"
#include "tests/deploy/runtime/pocl_cache.h"
#include "tests/tuner/space/extra_workloads.h"

namespace hone {
namespace {

using testing::Reference;
using testing::SmallWorkload;

// A product of batches whose results stand beside one another, as an attention's heads do: a loop over batches lies
// between those over rows and columns.
SmallWorkload JoinedHeads() {
  return {"joined_heads", *ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((3, 128, 11), "float32"), B: T.Buffer((11, 3, 64), "float32"), C: T.Buffer((128, 3, 64), "float32")):
    for i, b, j, k in T.grid(128, 3, 64, 11):
        with T.block("C"):
            vi, vb, vj, vk = T.axis.remap("SSSR", [i, b, j, k])
            with T.init():
                C[vi, vb, vj] = T.float32(0)
            C[vi, vb, vj] = C[vi, vb, vj] + A[vb, vi, vk] * B[vk, vb, vj]
)")};
}

std::vector<SmallWorkload> Workloads() {
  std::vector<SmallWorkload> all = testing::SmallWorkloads();
  all.push_back(JoinedHeads());
  for (SmallWorkload& more : testing::LargerWorkloads()) all.push_back(std::move(more));
  return all;
}

class DefaultGpuSchedules : public ::testing::TestWithParam<SmallWorkload> {};

// The device, by its number in `hone doctor`, opened once in a process. Null where there is none.
OpenClDevice* Device() {
  static const auto* device = new RuntimeResult<std::unique_ptr<OpenClDevice>>(
      OpenClDevice::Open(static_cast<size_t>(testing::FromEnvironment("HONE_OPENCL_DEVICE", 0))));
  return device->ok() ? (**device).get() : nullptr;
}

std::string Refusals(const GpuDefault& made) {
  std::string text;
  for (const GpuNest& nest : made.nests)
    absl::StrAppend(&text, nest.block, ": ", absl::StrJoin(nest.refused, "; "), "\n");
  return text;
}

TEST_P(DefaultGpuSchedules, AreRightOnThreads) {
  const SmallWorkload& workload = GetParam();
  const GpuTarget target = *ParseGpuTarget("opencl:generic");
  const absl::StatusOr<GpuDefault> made = DefaultGpuSchedule(workload.func, target);
  ASSERT_TRUE(made.ok()) << made.status();
  const absl::StatusOr<Schedule> schedule = Replay(made->trace, workload.func);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const PrimFunc scheduled = schedule->Program().main;
  const Reference& reference = testing::ReferenceOf(workload);
  const absl::StatusOr<PrimFunc> lowered = LowerThreads(scheduled);
  ASSERT_TRUE(lowered.ok()) << lowered.status() << Refusals(*made) << "\n" << ToText(scheduled);
  ScheduledProgram program;
  program.main = *lowered;
  EXPECT_EQ(reference.CheckInterpreted(program), "") << ToText(scheduled) << ToText(*lowered);
  if (Device() == nullptr) GTEST_SKIP() << "no OpenCL device";
  std::vector<NdArray> got = reference.arguments();
  const absl::Status ran = testing::RunOnOpenCl(*Device(), scheduled, got);
  ASSERT_TRUE(ran.ok()) << ran << ToText(scheduled);
  EXPECT_EQ(reference.Compare(got), "") << ToText(scheduled);
}

INSTANTIATE_TEST_SUITE_P(Workloads, DefaultGpuSchedules, ::testing::ValuesIn(Workloads()),
                         [](const auto& info) { return info.param.name; });

// Each family is taken by the rule that is meant for it, and by no other because that was refused.
TEST(DefaultGpuScheduleRules, TakeTheirFamilies) {
  using Rule = GpuNest::Rule;
  const std::map<std::string, Rule> expected = {
      {"matmul_prime", Rule::kProduct},
      {"long_dense_relu", Rule::kProduct},
      {"wide_conv_block", Rule::kProduct},
      {"scores", Rule::kProduct},
      {"joined_heads", Rule::kProduct},
      {"softmax_rows", Rule::kRows},
      {"rows_softmax", Rule::kRows},
      {"layer_norm", Rule::kRows},
      {"group_norm", Rule::kRows},
      {"rows_layer_norm", Rule::kRows},
      {"sum_last", Rule::kRows},
      {"one_row_of_a_long_product", Rule::kReduction},
      {"argmax", Rule::kMap},
      {"padded_depthwise", Rule::kMap},
      {"two_elementwise", Rule::kMap},
  };
  size_t seen = 0;
  for (const SmallWorkload& workload : Workloads()) {
    const auto rule = expected.find(workload.name);
    if (rule == expected.end()) continue;
    ++seen;
    for (const char* target : {"opencl:generic", "cuda:sm_90a"}) {
      SCOPED_TRACE(workload.name + ", " + target);
      const absl::StatusOr<GpuDefault> made = DefaultGpuSchedule(workload.func, *ParseGpuTarget(target));
      ASSERT_TRUE(made.ok()) << made.status();
      ASSERT_EQ(made->nests.size(), 1u) << Refusals(*made);  // all blocks in one launch
      EXPECT_EQ(made->nests[0].rule, rule->second);
      EXPECT_TRUE(made->nests[0].refused.empty()) << Refusals(*made);
    }
  }
  EXPECT_EQ(seen, expected.size());
}

}  // namespace
}  // namespace hone
