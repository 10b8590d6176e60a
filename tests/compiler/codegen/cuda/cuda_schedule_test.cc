// Random schedules for GPUs, printed as CUDA C++, compiled and run on a CUDA device: what they compute is what the
// interpreter says of the workload; and a kernel that faults. Where HONE_CUDA_LIBRARY names no driver, on the tests'
// own, which runs on the CPU (tests/deploy/runtime/fake_cuda/fake_cuda.h); on a GPU:
//   HONE_CUDA_LIBRARY=libcuda.so.1 HONE_SEEDS=500 compiler_codegen_cuda_tests
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/codegen/cuda/cuda_cpp.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/codegen/device/device_kernel.h"
#include "compiler/codegen/gpu/print_kernels.h"
#include "compiler/text/text.h"
#include "deploy/runtime/devices/cuda_device.h"
#include "tests/compiler/codegen/gpu/run_on_device.h"
#include "tests/compiler/lower/thread_schedules.h"
#include "tests/compiler/schedule/campaign.h"
#include "tests/compiler/schedule/reference.h"

namespace hone::testing {
namespace {

// Said before anything is opened. Returns whether the driver is the tests' own.
bool NameFakesUnlessNamed() {
  const char* const named = std::getenv("HONE_CUDA_LIBRARY");
  if (named != nullptr) return std::string(named).find("libhone_fake_cuda") != std::string::npos;
  ::setenv("HONE_CUDA_LIBRARY", HONE_LIB "/libhone_fake_cuda_driver.so", 1);
  ::setenv("HONE_NVRTC", HONE_LIB "/libhone_fake_cuda_nvrtc.so", 1);
  return true;
}
const bool kIsFake = NameFakesUnlessNamed();

// Opened once in a process and never before a fork. Null where there is none.
hone::Device* Device() {
  static RuntimeResult<std::unique_ptr<hone::Device>> device =
      CudaDevice::Open(static_cast<size_t>(FromEnvironment("HONE_CUDA_DEVICE", 0)));
  return device.ok() ? device->get() : nullptr;
}

std::string Check(const SmallWorkload& workload, const PrimFunc& scheduled, const std::string& shape,
                  const std::set<std::string>& features = CudaFeatures()) {
  const Reference reference(workload);
  std::vector<NdArray> got = reference.arguments();
  const absl::Status ran = RunOnCuda(*Device(), scheduled, got, features);
  Count(shape);
  const std::string wrong = ran.ok() ? reference.Compare(got) : ran.ToString();
  if (wrong.empty()) return "";
  return absl::StrCat(workload.name, ": ", wrong, "\n", ToText(scheduled),
                      PrintKernels(*LowerToDevice(scheduled), CudaCpp(), features).value_or("no text"));
}

std::string CheckSchedule(uint64_t seed) {
  if (Device() == nullptr) return Count("no device"), "";
  Random random(seed);
  if (seed % 3 == 2 && !kIsFake) {  // the tests' own has no instructions of warps
    const WarpProgram drawn = DrawWarpProduct(random);
    return Check(drawn.workload, drawn.program, "warp product");
  }
  const ThreadSchedule drawn = DrawThreadSchedule(random);
  // Of four, one as for a GPU without asynchronous copies.
  return Check(drawn.workload, drawn.schedule.Program().main, drawn.shape,
               seed % 4 == 3 ? std::set<std::string>() : CudaFeatures());
}

TEST(CudaSchedules, RunAndAgreeWithTheInterpreter) {
  const int64_t seeds = FromEnvironment("HONE_SEEDS", 12);
  const Campaign campaign =
      RunCampaign(static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0)), seeds, CheckSchedule);
  for (const std::string& report : campaign.reports) ADD_FAILURE() << report;
  std::map<std::string, int64_t> counts(campaign.counts.begin(), campaign.counts.end());
  for (const auto& [shape, count] : counts) std::printf("%-28s %8lld\n", shape.c_str(), static_cast<long long>(count));
  if (counts.contains("no device")) GTEST_SKIP() << "no CUDA device";
  if (seeds < 30) return;
  for (const char* shape : {"product", "pipelined product", "asynchronous product", "reduction", "softmax"})
    EXPECT_GT(counts[shape], 0) << shape;
}

// The features of the target decide, from its text on to what the driver takes.
TEST(CudaCopies, AreAsynchronousFromAnArchitectureOn) {
  if (!kIsFake) GTEST_SKIP() << "the text of a kernel is what the tests' own compiler makes";
  std::stringstream text;
  text
      << std::ifstream(std::filesystem::path(HONE_TEST_DATA) / "compiler/codegen/gpu/golden/vector_copies.txt").rdbuf();
  const absl::StatusOr<PrimFunc> scheduled = ParsePrimFunc(text.str().substr(0, text.str().find("----")));
  ASSERT_TRUE(scheduled.ok()) << scheduled.status();
  for (const auto& [arch, asynchronous] : {std::pair("sm_75", false), std::pair("sm_80", true), {"sm_90a", true}}) {
    SCOPED_TRACE(arch);
    GpuTarget target = *ParseGpuTarget("cuda:sm_80");
    target.arch = arch;
    const absl::StatusOr<CompiledKernel> kernel = CompileDeviceKernel({.main = *scheduled}, target, "k");
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    for (const char* word : {"copy_async_16(", "copy_async_4(", "commit_copies(", "wait_for_copies_"})
      EXPECT_EQ(kernel->object.find(word) != std::string::npos, asynchronous) << word;
  }
}

// 42 where a store far outside of all memory loses the device, by this and by every later call.
int LoseTheDevice() {
  const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Load();
  if (Device() == nullptr || !nvrtc.ok()) return 1;
  const absl::StatusOr<CudaImage> image = (*nvrtc)->Compile(R"(
extern "C" __global__ void __launch_bounds__(1)
stray(int* __restrict__ a) {
  a[1ll << 38] = 1;
}
)",
                                                            Device()->facts().architecture);
  if (!image.ok()) return 2;
  const int64_t bytes[] = {4};
  const bool ready = Device()->Build({&image->cubin, 1}).ok() && Device()->Allocate(bytes).ok();
  if (!ready || Device()->Start({"stray", {1, 1, 1}, {1, 1, 1}, {0}})) return 3;
  const RuntimeError lost = Device()->Finish(), later = Device()->Allocate(bytes);
  std::fprintf(stderr, "%s\n", lost.message().c_str());
  return lost.code() == RuntimeCode::kDeviceLost && later.code() == RuntimeCode::kDeviceLost ? 42 : 4;
}

// In a process of its own, as whoever runs a stranger's kernel does.
TEST(CudaFault, LosesTheDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const RuntimeResult<std::vector<DeviceFacts>> devices = CudaDevice::List();
  if (!devices.ok()) GTEST_SKIP() << devices.error().message();
  EXPECT_EXIT(std::exit(LoseTheDevice()), ::testing::ExitedWithCode(42), "CUDA_ERROR_ILLEGAL_ADDRESS");
}

}  // namespace
}  // namespace hone::testing
