// A runner of a device, whatever the kernels do: what they compute, what they harm, how long they take, how they end.
// Skipped, which is said, where there is no OpenCL device.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "compiler/sandbox/layers.h"
#include "compiler/support/sanitized.h"
#include "deploy/runtime/devices/opencl_device.h"
#include "gmock/gmock.h"
#include "tests/deploy/runtime/machine_code.h"
#include "worker/runner/runner_client.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

constexpr int kElements = 1000;  // 4000 bytes: no multiple of what devices align to
constexpr absl::Duration kLong = absl::Seconds(60);

std::string Numbers(int factor) {
  std::string bytes;
  for (int i = 0; i < kElements; ++i) bytes += Int32(factor * i);
  return bytes;
}

// twice = 2 * (a + w), the sum in scratch; `more` is done by the first thread of the second kernel.
std::string Text(const std::string& more = "") {
  return R"(
__kernel void add(__global const int* a, __global const int* w, __global int* sum) {
  int i = get_global_id(0);
  if (i < 1000) sum[i] = a[i] + w[i];
}
__kernel void twice(__global int* a, __global const int* sum, __global int* y) {
  int i = get_global_id(0);
  if (i < 1000) y[i] = 2 * sum[i];
  if (i == 0) { )" +
         more + " }\n}\n";
}

KernelSet Launches() {
  const KernelTensor tensor{"int32", {kElements}, 4 * kElements};
  KernelSet set;
  set.symbol = "k";
  set.params = {tensor, tensor, tensor};
  set.scratch_bytes = 4096;
  set.areas = {{0, 4 * kElements}};
  set.launches = {{"add", {125, 1, 1}, {8, 1, 1}, {0, 1, 3}}, {"twice", {63, 1, 1}, {16, 1, 1}, {0, 3, 2}}};
  return set;
}

class DeviceRunner : public testing::Test {
 protected:
  void SetUp() override {
    const auto devices = OpenClDevice::List();
    if (!devices.ok()) GTEST_SKIP() << "no device: " << devices.error().message();
    const std::string a0 = Numbers(3), w0 = Numbers(100), a1 = Numbers(7), w1 = Numbers(1000);
    const std::vector<std::vector<std::string_view>> values = {{a0, w0}, {a1, w1}};
    inputs_ = *InputSets::Create(Launches(), values);
  }
  RunnerJob Job(const std::string& text) const {
    RunnerJob job{.image = text, .set = Launches()};
    job.inputs = &inputs_;
    job.program = std::string(HONE_BIN) + "/hone-device-runner";
    job.device = "opencl:generic";
    job.start_timeout = kLong;
    job.allowed_missing_layers = LayersSomeSystemsLack();
    return job;
  }
  RunnerClient Start(const std::string& text) const {
    absl::StatusOr<RunnerClient> runner = RunnerClient::Start(Job(text));
    EXPECT_TRUE(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  InputSets inputs_;
};

TEST_F(DeviceRunner, VerifiesOnEverySet) {
  RunnerClient runner = Start(Text());
  ASSERT_TRUE(runner.load_verdict().ok()) << runner.load_verdict().message;
  for (int round = 0; round < 2; ++round) {
    for (int s = 0; s < 2; ++s) {
      const RunnerVerdict verdict = runner.Verify(s, kLong);
      ASSERT_TRUE(verdict.ok()) << verdict.message;
      EXPECT_EQ(runner.output(s, 0), Numbers(s == 0 ? 206 : 2014));
      EXPECT_TRUE(runner.OutputEdgesIntact(s));
    }
  }
}

TEST_F(DeviceRunner, TimesByTheDevicesClock) {
  RunnerClient runner = Start(Text());
  for (const uint64_t flushed : {0, 2}) {
    const RunnerVerdict verdict =
        runner.Time({.samples = 3, .inner = 10, .set = 1, .copy_outputs = 1, .flushed = flushed}, kLong);
    ASSERT_TRUE(verdict.ok()) << verdict.message;
    ASSERT_EQ(verdict.samples.size(), 3u);
    for (const TimedSample& sample : verdict.samples) EXPECT_GT(sample.us, 0.1);
    EXPECT_EQ(runner.output(1, 0), Numbers(2014));
  }
  EXPECT_EQ(runner.Time({.samples = kRunnerMaxSamples + 1}, kLong).kind, RunnerVerdict::kRefused);
}

TEST_F(DeviceRunner, RenewsItsInputs) {
  RunnerClient runner = Start(Text());
  const TimeRequest unseen{.warm_up = 0, .inner = 2, .renewal = Renewal::kUnseen, .copy_outputs = 1, .turn = 5};
  ASSERT_TRUE(runner.Time(unseen, kLong).ok());
  std::string turned;  // by 10 elements before the second call
  for (int i = 0; i < kElements; ++i) turned += Int32(206 * ((i + 10) % kElements));
  EXPECT_EQ(runner.output(0, 0), turned);
  ASSERT_TRUE(runner.Time({.warm_up = 0, .renewal = Renewal::kSame, .copy_outputs = 1}, kLong).ok());
  EXPECT_EQ(runner.output(0, 0), turned);
  ASSERT_TRUE(runner.Time({.warm_up = 0, .copy_outputs = 1, .turn = 123}, kLong).ok());
  EXPECT_EQ(runner.output(0, 0), Numbers(206));
}

struct Harm {
  const char* name;
  const char* code;
  const char* says;
};
constexpr Harm kHarms[] = {
    {"PastTheOutput", "y[1000] = 1;", "wrote past the end of output 0"},
    {"BeforeTheOutput", "y[-1] = 1;", "wrote before output 0"},
    {"WithinAnInput", "a[7] += 1;", "wrote within input 0"},
    {"PastAnInput", "a[1002] = 1;", "wrote past the end of input 0"},
    {"PastTheScratch", "((__global int*)sum)[1001] = 1;", "wrote past the end of scratch 0"},
};
TEST_F(DeviceRunner, FindsWhatWasHarmed) {
  for (const Harm& harm : kHarms) {
    SCOPED_TRACE(harm.name);
    RunnerClient runner = Start(Text(harm.code));
    const RunnerVerdict verdict = runner.Verify(0, kLong);
    EXPECT_EQ(verdict.kind, RunnerVerdict::kKernelFailed);
    EXPECT_THAT(verdict.message, HasSubstr(harm.says));
  }
}

// Who reads what was never written has another result on each set: both are not right.
TEST_F(DeviceRunner, PoisonsWhatWasNeverWritten) {
  KernelSet set = Launches();
  set.launches.erase(set.launches.begin());
  const std::string text = Text();
  RunnerJob job = Job(text);
  job.set = set;
  absl::StatusOr<RunnerClient> runner = RunnerClient::Start(job);
  ASSERT_TRUE(runner.ok()) << runner.status();
  ASSERT_TRUE(runner->Verify(0, kLong).ok());
  EXPECT_NE(runner->output(0, 0), Numbers(0));
  EXPECT_NE(runner->output(0, 0), Numbers(206));
}

// A kernel that hangs or faults costs its runner: one that was started before it goes on.
TEST_F(DeviceRunner, ThatHangsOrFaultsIsAlone) {
  RunnerClient bystander = Start(Text());
  ASSERT_TRUE(bystander.Verify(0, kLong).ok());
  const std::string text = Text("volatile __global int* p = y; while (p[0] != -1) {}");
  RunnerJob job = Job(text);
  job.start_timeout = absl::Seconds(10);
  const absl::StatusOr<RunnerClient> hangs = RunnerClient::Start(job);
  ASSERT_TRUE(hangs.ok()) << hangs.status();
  EXPECT_EQ(hangs->load_verdict().kind, RunnerVerdict::kTimedOut);
  EXPECT_FALSE(hangs->alive());
  if (OpenClDevice::List()->front().is_cpu) {  // others have their own ways to tell of it
    RunnerClient faults = Start(Text("y[(long)1 << 40] = 1;"));
    EXPECT_EQ(faults.load_verdict().kind, RunnerVerdict::kCrashed) << faults.load_verdict().message;
    EXPECT_FALSE(faults.alive());
  }
  ASSERT_TRUE(bystander.Verify(1, kLong).ok());
  EXPECT_EQ(bystander.output(1, 0), Numbers(2014));
}

TEST_F(DeviceRunner, SaysWhatItRefuses) {
  RunnerClient no_text = Start("__kernel void add(no_such_type a) {}");
  EXPECT_EQ(no_text.load_verdict().kind, RunnerVerdict::kRefused);
  EXPECT_THAT(no_text.load_verdict().message, HasSubstr("refused the kernels"));
  const std::string text = Text();
  RunnerJob of_cpu = Job(text);
  of_cpu.set.launches.clear();
  absl::StatusOr<RunnerClient> runner = RunnerClient::Start(of_cpu);
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_THAT(runner->load_verdict().message, HasSubstr("has no launches"));
  RunnerJob missing = Job(text);
  missing.set.launches[0].kernel = "subtract";
  absl::StatusOr<RunnerClient> started = RunnerClient::Start(missing);
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_THAT(started->load_verdict().message, HasSubstr("no kernel subtract"));
}

// The layers that every system gives hold with a driver, too, and nothing is left of it in the file system.
TEST_F(DeviceRunner, IsLockedInAndLeavesNothing) {
  std::string folder = testing::TempDir() + "device-runner-XXXXXX";  // others' runners have theirs elsewhere
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const char* const shared = std::getenv("TMPDIR");
  const std::string before = shared == nullptr ? "/tmp" : shared;
  ::setenv("TMPDIR", folder.c_str(), 1);
  {
    RunnerClient runner = Start(Text());
    ASSERT_TRUE(runner.Verify(0, kLong).ok());
    EXPECT_EQ(LayerNames(MissingLayers(runner.layers()) & ~LayersSomeSystemsLack()), "");
    EXPECT_FALSE(std::filesystem::is_empty(folder));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  ::setenv("TMPDIR", before.c_str(), 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hone
