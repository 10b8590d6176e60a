// A device of NVIDIA's driver, on the driver of the tests' own: what it runs, how it refuses, and that nothing of it is
// left whatever fails.
#include "deploy/runtime/devices/cuda_device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "deploy/runtime/devices/cuda_driver.h"
#include "gmock/gmock.h"
#include "tests/deploy/runtime/fake_cuda.h"

namespace hone {
namespace {

using testing::HasSubstr;

constexpr char kText[] = R"(
extern "C" __global__ void __launch_bounds__(8)
add_one(const int* __restrict__ a, int* __restrict__ b) {
  const int i = (int)(blockIdx.x * 4 + threadIdx.x);
  b[i] = a[i] + 1;
}
extern "C" __global__ void __launch_bounds__(8)
turn(const int* __restrict__ a, int* __restrict__ b) {
  extern __shared__ __align__(128) unsigned char shared[];
  int* const s = (int*)shared;
  s[15000 + threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  b[threadIdx.x] = s[15000 + 7 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(8)
stray(int* __restrict__ a) {
  a[200] = 1;
}
)";
const Device::Launch kAddOne = {"add_one", {2, 1, 1}, {4, 1, 1}, {0, 1}};
const Device::Launch kTurn = {"turn", {1, 1, 1}, {8, 1, 1}, {1, 2}, 60032};
const Device::Launch kStray = {"stray", {1, 1, 1}, {8, 1, 1}, {0}};

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override { FakeCuda::Reset(); }
  static std::vector<std::string> Kernels() { return {FakeCuda::Image(kText)}; }
  // With three buffers of eight numbers, the first of which holds 0 to 7.
  static std::unique_ptr<Device> Ready() {
    RuntimeResult<std::unique_ptr<Device>> device = CudaDevice::Open(0, /*with_clock=*/true);
    EXPECT_TRUE(device.ok()) << device.error().message();
    EXPECT_EQ((*device)->Build(Kernels()).message(), "");
    const std::array<int64_t, 3> bytes = {32, 32, 32};
    EXPECT_EQ((*device)->Allocate(bytes).message(), "");
    const std::array<int, 8> values = {0, 1, 2, 3, 4, 5, 6, 7};
    EXPECT_EQ((*device)->Write(0, values.data(), 32).message(), "");
    return *std::move(device);
  }
};

TEST_F(CudaDeviceTest, LaunchesRunInOrderWithTheSharedMemoryTheyAskFor) {
  const std::unique_ptr<Device> device = Ready();
  EXPECT_EQ(device->Start(kAddOne).message(), "");
  EXPECT_EQ(device->Start(kTurn).message(), "");
  std::array<int, 8> values{};
  ASSERT_EQ(device->Read(2, values.data(), 32).message(), "");
  EXPECT_EQ(values, (std::array<int, 8>{8, 7, 6, 5, 4, 3, 2, 1}));
}

TEST_F(CudaDeviceTest, ASequenceIsHandedOverAsOneUntilItsBuffersAreOthers) {
  const std::unique_ptr<Device> device = Ready();
  EXPECT_EQ(device->StartSequence().message(), "no sequence is kept");
  const auto work = [&] {
    EXPECT_EQ(device->Start(kAddOne).message(), "");
    EXPECT_EQ(device->Start(kTurn).message(), "");
    return device->Copy(2, 0, 32);
  };
  ASSERT_EQ(device->KeepSequence(work).message(), "");
  std::array<int, 8> values{};
  ASSERT_EQ(device->Read(0, values.data(), 32).message(), "");
  EXPECT_EQ(values, (std::array<int, 8>{0, 1, 2, 3, 4, 5, 6, 7})) << "nothing of it has run";
  const int launches = FakeCuda::Count("cuLaunchKernel");
  for (int i = 0; i < 2; ++i) ASSERT_EQ(device->StartSequence().message(), "");
  ASSERT_EQ(device->Read(0, values.data(), 32).message(), "");
  EXPECT_EQ(values, (std::array<int, 8>{2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(FakeCuda::Count("cuLaunchKernel"), launches);
  const std::array<int64_t, 3> bytes = {32, 32, 32};
  ASSERT_EQ(device->Allocate(bytes).message(), "");
  EXPECT_EQ(device->StartSequence().message(), "no sequence is kept");
}

TEST_F(CudaDeviceTest, WorkThatFailsIsNoSequence) {
  const std::unique_ptr<Device> device = Ready();
  const RuntimeError none = device->KeepSequence([&] { return device->Start({"none", {1, 1, 1}, {1, 1, 1}, {0}}); });
  EXPECT_EQ(none.message(), "the program has no kernel none");
  EXPECT_EQ(device->StartSequence().message(), "no sequence is kept");
  EXPECT_EQ(device->Start(kAddOne).message(), "");
  EXPECT_EQ(device->Finish().message(), "") << "the stream runs again";
}

TEST_F(CudaDeviceTest, TellsTheFactsOfTheDriver) {
  FakeCuda::Reset("devices=2 capability=8.0 memory=1000000");
  const RuntimeResult<std::vector<DeviceFacts>> devices = CudaDevice::List();
  ASSERT_TRUE(devices.ok()) << devices.error().message();
  ASSERT_EQ(devices->size(), 2u);
  const DeviceFacts& facts = (*devices)[1];
  EXPECT_EQ(facts.name, "Fake GPU 1");
  EXPECT_EQ(facts.version, "CUDA 13.0");
  EXPECT_EQ(facts.architecture, "sm_80");
  EXPECT_EQ(facts.global_bytes, 1000000);
  EXPECT_EQ(facts.clock_mhz, 1500);
  EXPECT_EQ(facts.local_bytes, 227 << 10);
  EXPECT_EQ(facts.lanes, 32);
  EXPECT_EQ(facts.resident_threads, 2048);
}

TEST_F(CudaDeviceTest, PartsAreOfTheirBuffers) {
  RuntimeResult<std::unique_ptr<Device>> device = CudaDevice::Open();
  ASSERT_TRUE(device.ok()) << device.error().message();
  constexpr int64_t kAt = Device::kPartAlignment;
  const std::array<int64_t, 2> bytes = {kAt + 32, 32};
  const std::array<Device::Part, 1> parts = {{{0, kAt, 32}}};
  ASSERT_TRUE((*device)->Allocate(bytes, parts).ok());
  const std::array<int, 8> values = {0, 1, 2, 3, 4, 5, 6, 7};
  ASSERT_TRUE((*device)->Write(2, values.data(), 32).ok());
  ASSERT_TRUE((*device)->Copy(2, 1, 32).ok());
  std::vector<char> whole(kAt + 32);
  std::array<int, 8> copied{};
  ASSERT_TRUE((*device)->Read(0, whole.data(), kAt + 32).ok());
  ASSERT_TRUE((*device)->Read(1, copied.data(), 32).ok());
  EXPECT_EQ(std::memcmp(whole.data() + kAt, values.data(), 32), 0);
  EXPECT_EQ(copied, values);
  const std::array<Device::Part, 1> beyond = {{{1, kAt, 32}}};
  EXPECT_EQ((*device)->Allocate(bytes, beyond).message(), "buffer 1 has 32 bytes, not 1056");
}

TEST_F(CudaDeviceTest, TimesLapsFromTheFirstLaunchToTheLast) {
  const std::unique_ptr<Device> device = Ready();
  device->StartClock();
  EXPECT_EQ(device->StopClock().error().message(), "nothing was launched under the clock");
  device->StartClock();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(device->Start(kAddOne).message(), "");
  ASSERT_EQ(device->EndLap().message(), "");
  EXPECT_EQ(device->EndLap().message(), "nothing was launched under the clock");
  ASSERT_EQ(device->Start(kAddOne).message(), "");
  const RuntimeResult<std::vector<double>> us = device->StopClock();
  ASSERT_TRUE(us.ok()) << us.error().message();
  ASSERT_EQ(us->size(), 2u);
  for (const double lap : *us) EXPECT_GT(lap, 0);
  EXPECT_EQ(FakeCuda::Count("cuEventRecord"), 3);
  ASSERT_EQ(device->Start(kAddOne).message(), "");
  ASSERT_EQ(device->Finish().message(), "");
  EXPECT_EQ(FakeCuda::Count("cuEventRecord"), 3);
}

TEST_F(CudaDeviceTest, WhatCannotBeIsRefusedWithItsReason) {
  const std::unique_ptr<Device> device = Ready();
  EXPECT_EQ(device->Start({"add_two", {1, 1, 1}, {1, 1, 1}, {0, 0}}).message(), "the program has no kernel add_two");
  EXPECT_EQ(device->Start({"add_one", {1, 1, 1}, {1, 1, 1}, {0, 7}}).message(),
            "add_one: there is no buffer 7; Allocate made 3");
  int value = 0;
  EXPECT_EQ(device->Read(0, &value, 33).message(), "buffer 0 has 32 bytes, not 33");
  const RuntimeError too_many = device->Start({"add_one", {1, 1, 1}, {2048, 1, 1}, {0, 0}});
  EXPECT_EQ(too_many.code(), RuntimeCode::kKernelFailed);
  EXPECT_EQ(too_many.message(), "add_one: cuLaunchKernel returned CUDA_ERROR_INVALID_VALUE (invalid argument)");
  EXPECT_EQ(device->Start({"turn", {1, 1, 1}, {8, 1, 1}, {1, 2}, 1 << 20}).code(), RuntimeCode::kKernelFailed);
  const std::vector<std::string> other = {FakeCuda::Image(kText, "sm_80")};
  const RuntimeError refused = device->Build(other);
  EXPECT_EQ(refused.code(), RuntimeCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("Fake GPU 0 (sm_90, driver of CUDA 13.0) refused the kernels: "
                                           "cuModuleLoadData returned CUDA_ERROR_NO_BINARY_FOR_GPU"));
  EXPECT_EQ(CudaDevice::Open(1000).error().message(), "there is no CUDA device 1000, only 1, counted from 0");
}

TEST_F(CudaDeviceTest, MemoryThatIsNotThereIsSaid) {
  FakeCuda::Reset("memory=1000");
  RuntimeResult<std::unique_ptr<Device>> device = CudaDevice::Open();
  ASSERT_TRUE(device.ok()) << device.error().message();
  const std::array<int64_t, 2> bytes = {600, 600};
  const RuntimeError error = (*device)->Allocate(bytes);
  EXPECT_EQ(error.code(), RuntimeCode::kOutOfMemory);
  EXPECT_EQ(error.message(),
            "no memory for 600 bytes on Fake GPU 0: cuMemAlloc returned CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
}

TEST_F(CudaDeviceTest, ALostDeviceSaysSoFromThenOn) {
  std::unique_ptr<Device> device = Ready();
  ASSERT_EQ(device->Start(kStray).message(), "");
  const RuntimeError lost = device->Finish();
  EXPECT_EQ(lost.code(), RuntimeCode::kDeviceLost);
  EXPECT_EQ(lost.message(),
            "cuStreamSynchronize returned CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered): "
            "Fake GPU 0 takes no more work of this process, which has to be started again");
  const int calls = FakeCuda::Count("cuLaunchKernel") + FakeCuda::Count("cuStreamSynchronize");
  int value = 0;
  const std::array<int64_t, 1> bytes = {32};
  for (const RuntimeError& error :
       {device->Start(kAddOne), device->Finish(), device->Write(0, &value, 4), device->Read(0, &value, 4),
        device->Copy(0, 1, 4), device->Allocate(bytes), device->Build(Kernels()), device->StopClock().error(),
        device->KeepSequence([] { return RuntimeError(); }), device->StartSequence()}) {
    EXPECT_EQ(error.code(), RuntimeCode::kDeviceLost);
    EXPECT_EQ(error.message(), lost.message());
  }
  EXPECT_EQ(FakeCuda::Count("cuLaunchKernel") + FakeCuda::Count("cuStreamSynchronize"), calls);
  device.reset();
  EXPECT_EQ(FakeCuda::Live(), 0);
}

// All that a device does, up to the first error.
RuntimeError Everything() {
  std::array<int, 8> values{};  // outlives the device: a copy whose wait fails may land later
  RuntimeResult<std::unique_ptr<Device>> opened = CudaDevice::Open(0, /*with_clock=*/true);
  if (!opened.ok()) return opened.error();
  Device& device = **opened;
  const std::vector<std::string> kernels = {FakeCuda::Image(kText)};
  if (RuntimeError error = device.Build(kernels)) return error;
  const std::array<int64_t, 3> bytes = {32, 32, 32};
  for (int round = 0; round < 2; ++round) {
    if (RuntimeError error = device.Allocate(bytes)) return error;
  }
  if (RuntimeError error = device.Write(0, values.data(), 32)) return error;
  device.StartClock();
  if (RuntimeError error = device.Start(kAddOne)) return error;
  if (RuntimeError error = device.Start(kTurn)) return error;
  const RuntimeResult<std::vector<double>> us = device.StopClock();
  if (!us.ok()) return us.error();
  if (RuntimeError error = device.KeepSequence([&] { return device.Copy(0, 1, 32); })) return error;
  if (RuntimeError error = device.StartSequence()) return error;
  return device.Read(2, values.data(), 32);
}

// Every call fails in turn, as an error of its own and as one that loses the device: whoever asked hears which call it
// was, and nothing that the driver gave is kept.
TEST_F(CudaDeviceTest, EveryCallMayFail) {
  ASSERT_EQ(Everything().message(), "");
  ASSERT_EQ(FakeCuda::Live(), 0);
  std::istringstream names(FakeCuda::Calls());
  std::map<std::string, int> calls;
  for (std::string name; names >> name;) ++calls[name];
  EXPECT_GE(calls.size(), 23u);
  // What gives something back while a device is closed has nobody to tell.
  const std::set<std::string> unheard = {
      "cuMemFree_v2",   "cuModuleUnload",     "cuStreamDestroy_v2",          "cuEventDestroy_v2",
      "cuGraphDestroy", "cuGraphExecDestroy", "cuDevicePrimaryCtxRelease_v2"};
  for (const auto& [name, count] : calls) {
    for (int n = 1; n <= count; ++n) {
      for (const CudaResult result : {999, int{kCudaLaunchFailed}}) {
        SCOPED_TRACE(name + ", call " + std::to_string(n) + ", error " + std::to_string(result));
        FakeCuda::Reset("fail=" + name + ":" + std::to_string(n) + ":" + std::to_string(result));
        const RuntimeError error = Everything();
        EXPECT_EQ(FakeCuda::Live(), 0);
        const bool last = name == "cuStreamSynchronize" && n == count;  // of the closing
        if (unheard.contains(name) || last) continue;
        EXPECT_THAT(error.message(), HasSubstr(name.substr(0, name.find("_v2")) + " returned CUDA_ERROR_"));
        const bool lost = result == kCudaLaunchFailed && name != "cuDeviceGetCount" && name != "cuDeviceGet";
        if (lost) { EXPECT_EQ(error.code(), RuntimeCode::kDeviceLost) << error.message(); }
      }
    }
  }
}

struct RunsCase {
  const char *name, *device, *code;
  bool runs;
};
constexpr RunsCase kRuns[] = {
    {"Same", "sm_90", "sm_90", true},
    {"LaterOfTheGeneration", "sm_86", "sm_80", true},
    {"EarlierVersion", "sm_80", "sm_86", false},
    {"OtherGeneration", "sm_90", "sm_80", false},
    {"ItsOwnLetter", "sm_90", "sm_90a", true},
    {"LetterOfAnother", "sm_103", "sm_100a", false},
    {"ThreeDigits", "sm_103", "sm_100", true},
    {"TenIsNotOne", "sm_100", "sm_10", false},
};
class CudaRuns : public testing::TestWithParam<RunsCase> {};
TEST_P(CudaRuns, CodeOfAnArchitecture) {
  EXPECT_EQ(CudaDevice::Runs(GetParam().device, GetParam().code), GetParam().runs);
}
INSTANTIATE_TEST_SUITE_P(Cases, CudaRuns, testing::ValuesIn(kRuns), [](const auto& info) { return info.param.name; });

TEST_F(CudaDeviceTest, TheDeviceOfATargetIsOpened) {
  const auto why = [](const char* target) {
    const RuntimeResult<std::unique_ptr<Device>> device = OpenDevice(target);
    return device.ok() ? (*device)->facts().name : device.error().message();
  };
  FakeCuda::Reset("devices=2");
  EXPECT_EQ(why("cuda:sm_90a,l2=50M"), "Fake GPU 0");
  EXPECT_EQ(why("cuda:sm_80"),
            "no CUDA device here runs code for sm_80: there is 0, Fake GPU 0 (sm_90); "
            "1, Fake GPU 1 (sm_90); compile for that one's architecture");
  setenv("HONE_CUDA_DEVICE", "1", 1);
  EXPECT_EQ(why("cuda:sm_90"), "Fake GPU 1");
  EXPECT_EQ(why("cuda:sm_80"),
            "no CUDA device here runs code for sm_80: there is 1, Fake GPU 1 (sm_90), which "
            "HONE_CUDA_DEVICE names; compile for that one's architecture");
  setenv("HONE_CUDA_DEVICE", "2", 1);
  EXPECT_EQ(why("cuda:sm_90"), "there is no CUDA device 2, which HONE_CUDA_DEVICE names, only 2, counted from 0");
  unsetenv("HONE_CUDA_DEVICE");
  EXPECT_EQ(why("abacus:old"), "this runtime opens no devices for abacus:old");
  FakeCuda::Reset("fail=cuDevicePrimaryCtxRetain:1:46");
  EXPECT_THAT(why("cuda:sm_90"), HasSubstr("device 0, Fake GPU 0, cannot be opened: cuDevicePrimaryCtxRetain returned "
                                           "CUDA_ERROR_DEVICE_UNAVAILABLE"));
}

}  // namespace
}  // namespace hone
