// A runner of a CUDA device, on the driver of the tests' own (tests/deploy/runtime/fake_cuda/fake_cuda.h): what it
// computes, and what becomes of it when the device is lost or cannot be had.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "compiler/sandbox/layers.h"
#include "gmock/gmock.h"
#include "tests/deploy/runtime/fake_cuda/fake_image.h"
#include "tests/deploy/runtime/machine_code.h"
#include "worker/runner/runner_client.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

constexpr int kElements = 1000;
constexpr absl::Duration kLong = absl::Seconds(60);

std::string Numbers(int factor) {
  std::string bytes;
  for (int i = 0; i < kElements; ++i) bytes += Int32(factor * i);
  return bytes;
}

// b = 2 * a through shared memory that the launch gives; `more` is done by the first thread of all.
std::string Image(const std::string& more = "", const std::string& architecture = "sm_90a") {
  return fake::kImageMagic + architecture + R"(
extern "C" __global__ void __launch_bounds__(8)
twice(const int* __restrict__ a, int* __restrict__ b) {
  extern __shared__ __align__(128) unsigned char shared[];
  int* const s = (int*)shared;
  const int i = (int)(blockIdx.x * 8 + threadIdx.x);
  s[threadIdx.x] = a[i];
  __syncthreads();
  b[i] = 2 * s[threadIdx.x];
  if (i == 0) { )" +
         more + " }\n}\n";
}

class CudaRunner : public testing::Test {
 protected:
  void SetUp() override {
    const std::string library = std::string(HONE_BIN) + "/../lib/libhone_fake_cuda_driver.so";
    ::setenv("HONE_CUDA_LIBRARY", library.c_str(), 1);
    ::unsetenv("HONE_FAKE_CUDA");
    const KernelTensor tensor{"int32", {kElements}, 4 * kElements};
    set_.symbol = "k";
    set_.params = {tensor, tensor};
    set_.launches = {{"twice", {125, 1, 1}, {8, 1, 1}, {0, 1}, 32}};
    const std::string a = Numbers(3);
    inputs_ = *InputSets::Create(set_, {{a}});
  }
  RunnerClient Start(const std::string& image) const {
    RunnerJob job{.image = image, .set = set_};
    job.inputs = &inputs_;
    job.program = std::string(HONE_BIN) + "/hone-device-runner";
    job.device = "cuda:sm_90a,processors=4";
    job.start_timeout = kLong;
    job.allowed_missing_layers = LayersSomeSystemsLack();
    absl::StatusOr<RunnerClient> runner = RunnerClient::Start(job);
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  KernelSet set_;
  InputSets inputs_;
};

// Locked in by every layer that any system gives but those that such a driver cannot have; the driver of the tests' own
// starts only where NVIDIA's would.
TEST_F(CudaRunner, VerifiesAndTimes) {
  RunnerClient runner = Start(Image());
  ASSERT_TRUE(runner.load_verdict().ok()) << runner.load_verdict().message;
  const RunnerVerdict verdict = runner.Verify(0, kLong);
  ASSERT_TRUE(verdict.ok()) << verdict.message;
  EXPECT_EQ(runner.output(0, 0), Numbers(6));
  const RunnerVerdict timed = runner.Time({.samples = 3, .inner = 5, .copy_outputs = 1, .flushed = 1}, kLong);
  ASSERT_TRUE(timed.ok()) << timed.message;
  for (const TimedSample& sample : timed.samples) EXPECT_GT(sample.us, 0);
  EXPECT_EQ(runner.output(0, 0), Numbers(6));
  const uint32_t lacking = MissingLayers(runner.layers()) & ~LayersSomeSystemsLack();
  EXPECT_EQ(lacking & ~uint32_t{kLayerMemoryLimit}, 0u) << LayerNames(lacking);
}

TEST_F(CudaRunner, ADeviceThatIsLostEndsItsRunner) {
  const RunnerClient runner = Start(Image("b[100000] = 1;"));
  EXPECT_EQ(runner.load_verdict().kind, RunnerVerdict::kDeviceLost);
  EXPECT_THAT(runner.load_verdict().message, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_FALSE(runner.alive());
  EXPECT_TRUE(Start(Image()).load_verdict().ok());
}

TEST_F(CudaRunner, OneThatIsLostLaterToo) {
  ::setenv("HONE_FAKE_CUDA", "fail=cuLaunchKernel:3:719", 1);  // the first is that of loading
  RunnerClient runner = Start(Image());
  ASSERT_TRUE(runner.Verify(0, kLong).ok());
  const RunnerVerdict lost = runner.Verify(0, kLong);
  EXPECT_EQ(lost.kind, RunnerVerdict::kDeviceLost);
  EXPECT_THAT(lost.message, HasSubstr("CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)"));
  EXPECT_FALSE(runner.alive());
}

TEST_F(CudaRunner, WithoutADeviceNoCandidateIsToBlame) {
  for (const char* words : {"fail=cuDevicePrimaryCtxRetain:1:46", "devices=0", "capability=8.0"}) {
    SCOPED_TRACE(words);
    ::setenv("HONE_FAKE_CUDA", words, 1);
    EXPECT_EQ(Start(Image()).load_verdict().kind, RunnerVerdict::kNoDevice);
  }
}

TEST_F(CudaRunner, WhatTheDriverRefusesIsTheCandidates) {
  const RunnerClient other = Start(Image("", "sm_80"));
  EXPECT_EQ(other.load_verdict().kind, RunnerVerdict::kRefused);
  EXPECT_THAT(other.load_verdict().message, HasSubstr("CUDA_ERROR_NO_BINARY_FOR_GPU"));
  ::setenv("HONE_FAKE_CUDA", "memory=100000", 1);
  EXPECT_EQ(Start(Image()).load_verdict().kind, RunnerVerdict::kOutOfMemory);
}

}  // namespace
}  // namespace hone
