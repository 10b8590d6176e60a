// Random schedules for GPUs, printed as OpenCL C and run on an OpenCL device: what they compute is what the interpreter
// says of the workload.
//   HONE_SEEDS=500 HONE_FIRST_SEED=0 HONE_OPENCL_DEVICE=0 compiler_codegen_gpu_tests --gtest_filter=OpenClSchedules.*
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/gpu/print_kernels.h"
#include "compiler/codegen/opencl/opencl_c.h"
#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/lower/threads/lower_threads.h"
#include "compiler/text/text.h"
#include "tests/compiler/codegen/gpu/run_on_device.h"
#include "tests/compiler/lower/thread_schedules.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/reference.h"
#include "tests/deploy/runtime/pocl_cache.h"

namespace hone::testing {
namespace {

class OpenClSchedules : public ::testing::Test {};

std::string CheckSchedule(uint64_t seed) {
  if (OpenClDeviceOfTests() == nullptr) return Count("no device"), "";
  Random random(seed);
  const ThreadSchedule drawn = DrawThreadSchedule(random);
  const Reference reference(drawn.workload);
  std::vector<NdArray> got = reference.arguments();
  const absl::Status ran = RunOnOpenCl(*OpenClDeviceOfTests(), drawn.schedule.Program().main, got);
  Count(drawn.shape);
  const std::string wrong = ran.ok() ? reference.Compare(got) : ran.ToString();
  if (wrong.empty()) return "";
  return absl::StrCat(drawn.workload.name, ": ", wrong, "\n", ToText(drawn.schedule.func()),
                      PrintKernels(*LowerToDevice(drawn.schedule.Program().main), OpenClC(), {}).value_or("no text"));
}

TEST_F(OpenClSchedules, RunAndAgreeWithTheInterpreter) {
  const int64_t seeds = FromEnvironment("HONE_SEEDS", 30);
  const Campaign campaign =
      RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)), seeds, CheckSchedule);
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  std::map<std::string, int64_t> counts(campaign.counts.begin(), campaign.counts.end());
  for (const auto& [shape, count] : counts) std::printf("%-28s %8lld\n", shape.c_str(), static_cast<long long>(count));
  if (counts.contains("no device")) GTEST_SKIP() << "no OpenCL device";
  if (seeds < 30) return;
  for (const char* shape : {"product", "pipelined product", "asynchronous product", "reduction", "softmax"})
    EXPECT_GT(counts[shape], 0) << shape;
}

// A barrier left out of the printed text. Whether the numbers show it is the device's affair. PoCL runs the threads of
// a block one after the other from barrier to barrier: there a thread that reads what a later one writes is seen, and
// one that overwrites what another still reads often is not. For those there is the interpreter, which looks for races.
TEST_F(OpenClSchedules, ShowAMissingBarrier) {
  std::string why;
  if (OpenClDeviceOfTests(&why) == nullptr) GTEST_SKIP() << "no device: " << why;
  const absl::StatusOr<PrimFunc> reversed = ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    S = T.alloc_buffer((64,), "float32", scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("S"):
                vi = T.axis.spatial(64, t)
                S[vi] = A[vi]
        for t in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(64, t)
                B[vi] = S[63 - vi]
)");
  ASSERT_TRUE(reversed.ok()) << reversed.status();
  const Reference reference({.name = "reversed", .func = *reversed});
  const absl::StatusOr<DeviceProgram> program = LowerToDevice(*reversed);
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<std::string> source = PrintKernels(*program, OpenClC(), {});
  ASSERT_TRUE(source.ok()) << source.status();
  const std::string barrier(OpenClC().barrier);
  const size_t at = source->find(barrier);
  ASSERT_NE(at, std::string::npos);
  std::vector<NdArray> with = reference.arguments(), without = reference.arguments();
  // First without: what the other leaves in local memory would be right.
  ASSERT_TRUE(
      RunCode(*OpenClDeviceOfTests(), *program, OpenClC(), std::string(*source).erase(at, barrier.size()), without)
          .ok());
  ASSERT_TRUE(RunCode(*OpenClDeviceOfTests(), *program, OpenClC(), *source, with).ok());
  EXPECT_EQ(reference.Compare(with), "");
  const std::string shown = reference.Compare(without);
  std::printf("without the barrier: %s\n", shown.empty() ? "the same numbers" : shown.c_str());
  if (OpenClDeviceOfTests()->facts().version.find("PoCL") != std::string::npos) { EXPECT_NE(shown, ""); }
}

// The golden programs compute what the interpreter does: among them those with elements of every type, whose bits
// helpers read and write. A float16 may be the next one where a function's last place differs.
TEST_F(OpenClSchedules, RunTheGoldenPrograms) {
  std::string why;
  if (OpenClDeviceOfTests(&why) == nullptr) GTEST_SKIP() << "no device: " << why;
  for (const char* name : {"tiled_product", "softmax_rows", "reduction_across_threads", "asynchronous_pipeline",
                           "vector_copies", "element_types"}) {
    SCOPED_TRACE(name);
    std::stringstream text;
    text << std::ifstream(absl::StrCat(HONE_TEST_DATA, "/compiler/codegen/gpu/golden/", name, ".txt")).rdbuf();
    const absl::StatusOr<PrimFunc> func = ParsePrimFunc(text.str().substr(0, text.str().find("----")));
    ASSERT_TRUE(func.ok()) << func.status();
    std::vector<NdArray> want = RandomArguments(*func, 7, InputKind::kUniform), got = want;
    const absl::StatusOr<PrimFunc> lowered = LowerThreads(*func);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    ASSERT_TRUE(Interpret(*lowered, want).ok());
    const absl::Status ran = RunOnOpenCl(*OpenClDeviceOfTests(), *func, got);
    ASSERT_TRUE(ran.ok()) << ran;
    for (size_t p = func->params.size() - static_cast<size_t>(func->num_outputs()); p < func->params.size(); ++p) {
      const DType type = func->params[p].type();
      const double tolerance = !type.is_float() ? 0 : type.bits == 16 ? 0x1p-10 : 1e-5;
      for (int64_t i = 0; i < want[p].NumElements(); ++i) {
        const double a = got[p].Get(i), b = want[p].Get(i);
        ASSERT_LE(std::abs(a - b), tolerance * std::max(1.0, std::abs(b))) << func->params[p].name() << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace hone::testing
