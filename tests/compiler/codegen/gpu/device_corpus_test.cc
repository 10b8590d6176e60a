// The programs that TVM prints for GPUs (tests/compiler/text/corpus): those small enough are interpreted as they are,
// lowered for threads and interpreted again, where races and missing barriers are found, and run on an OpenCL device
// where there is one; all agree.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/interp/random_input.h"
#include "compiler/lower/threads/lower_threads.h"
#include "compiler/text/text.h"
#include "tests/compiler/codegen/gpu/run_on_device.h"
#include "tests/compiler/interp/expect_outputs_near.h"
#include "tests/compiler/text/corpus.h"
#include "tests/deploy/runtime/pocl_cache.h"
#include "tests/thorough.h"

namespace hone::testing {
namespace {

// Threads of a launch are interpreted side by side, which takes its time.
double MostInstances() { return Thorough() ? kMostCorpusInstances : kMostCorpusInstances / 8; }

class DeviceCorpus : public ::testing::TestWithParam<std::string> {};

void ExpectDeviceAgrees(const PrimFunc& func) {
  const double tolerance = CorpusTolerance(func);
  std::vector<NdArray> want = RandomArguments(func, 7, InputKind::kUniform), lowered_outputs = want, ran_outputs = want;
  const absl::Status interpreted = Interpret(func, want);
  ASSERT_TRUE(interpreted.ok()) << interpreted << "\n" << ToText(func);
  const absl::StatusOr<PrimFunc> lowered = LowerThreads(func);
  ASSERT_TRUE(lowered.ok()) << lowered.status() << "\n" << ToText(func);
  const absl::Status again = Interpret(*lowered, lowered_outputs);
  ASSERT_TRUE(again.ok()) << again << "\n" << ToText(*lowered);
  ExpectOutputsNear(func, lowered_outputs, want, tolerance);
  if (OpenClDeviceOfTests() == nullptr) return;
  const absl::Status ran = RunOnOpenCl(*OpenClDeviceOfTests(), func, ran_outputs);
  ASSERT_TRUE(ran.ok()) << ran << "\n" << ToText(func);
  ExpectOutputsNear(func, ran_outputs, want, tolerance);
}

TEST_P(DeviceCorpus, InterpretedLoweredAndRunAgree) {
  const std::vector<CorpusProgram> programs = SmallCorpusPrograms(GetParam(), /*thread_bound=*/true, MostInstances());
  EXPECT_FALSE(programs.empty());
  for (const CorpusProgram& program : programs) {
    SCOPED_TRACE(program.title);
    ExpectDeviceAgrees(program.func);
    if (HasFatalFailure()) return;
  }
  RecordProperty("programs run", static_cast<int>(programs.size()));
  std::printf("%zu programs of %s%s\n", programs.size(), GetParam().c_str(),
              OpenClDeviceOfTests() == nullptr ? ", no OpenCL device" : "");
}

INSTANTIATE_TEST_SUITE_P(Networks, DeviceCorpus, ::testing::ValuesIn(CorpusFiles()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone::testing
