// A candidate compiled here, measured there: the runner of a board with another CPU, which is emulated.
#include "compiler/codegen/compile.h"
#include "compiler/codegen/link_image.h"
#include "compiler/sandbox/layers.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/runner/runner_client.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kElements = 1000;
constexpr absl::Duration kLong = absl::Minutes(2);

// C[i] = A[i] + B[i + offset]; an offset reads past the end of B, by an index of which lowering does not know it, since
// A has it.
CompiledKernel Sum(const std::string& target, int offset = 0) {
  const std::string index = offset == 0 ? "v" : absl::StrCat("T.Cast(\"int32\", A[v]) + ", offset);
  const absl::StatusOr<PrimFunc> func = ParsePrimFunc(absl::StrCat(R"(
@T.prim_func
def main(A: T.Buffer((1000,), "float32"), B: T.Buffer((1000,), "float32"), C: T.Buffer((1000,), "float32")):
    for o in T.parallel(250):
        for i in T.vectorized(4):
            with T.block("C"):
                v = T.axis.spatial(1000, o * 4 + i)
                C[v] = A[v] + B[)",
                                                                   index, "]\n"));
  HONE_CHECK(func.ok()) << func.status();
  absl::StatusOr<CompiledKernel> kernel = CompileKernel(ScheduledProgram{*func, {}}, *ParseTarget(target));
  HONE_CHECK(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

std::string Floats(float factor) {
  std::string bytes;
  for (int i = 0; i < kElements; ++i) {
    const float value = factor * static_cast<float>(i);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return bytes;
}

struct Board {
  explicit Board(const CompiledKernel& compiled, const char* cpu = "cortex-a76") : kernel(compiled) {
    image = *LinkImage({&kernel.object, 1});
    const std::string a = Floats(1), b = Floats(100);
    inputs = *InputSets::Create(kernel.set, {{a, b}});
    job = {.image = image, .set = kernel.set, .inputs = &inputs, .threads = 2, .pin = false};
    job.program = absl::StrCat(HONE_BIN, "/", cpu, "/hone-runner");
    job.start_timeout = kLong;
    job.allowed_missing_layers = kLayerSystemCalls | kLayerMemoryLimit | LayersSomeSystemsLack();
  }
  RunnerClient Start() const {
    absl::StatusOr<RunnerClient> runner = RunnerClient::Start(job);
    HONE_CHECK(runner.ok()) << runner.status();
    return *std::move(runner);
  }

  CompiledKernel kernel;
  std::string image;
  InputSets inputs;
  RunnerJob job;
};

// An emulator takes a limit of address space for a success and sets none, and has no filter of system calls.
TEST(EmulatedRunner, IsRefusedForTheLayersAnEmulatorDoesNotGive) {
  Board board(Sum("cpu:cortex-a76"));
  board.job.allowed_missing_layers = LayersSomeSystemsLack();
  const absl::Status refused = RunnerClient::Start(board.job).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("memory-limit (a limit of address space), system-calls (a filter of system calls (seccomp)); use"));
  board.job.allowed_missing_layers |= kLayerSystemCalls;
  EXPECT_THAT(std::string(RunnerClient::Start(board.job).status().message()),
              HasSubstr("memory-limit (a limit of address space); use"));
}

TEST(EmulatedRunner, VerifiesAndTimes) {
  for (const char* cpu : {"cortex-a76", "neoverse-n2", "generic-rv64", "spacemit-x60-zicond"}) {
    SCOPED_TRACE(cpu);
    const Board board(Sum(absl::StrCat("cpu:", cpu)), cpu);
    RunnerClient runner = board.Start();
    ASSERT_TRUE(runner.load_verdict().ok()) << runner.load_verdict().message;
    EXPECT_NE(runner.layers() & kLayerNoNewPrivs, 0u);
    ASSERT_TRUE(runner.Verify(0, kLong).ok());
    EXPECT_EQ(runner.output(0, 0), Floats(101));
    EXPECT_TRUE(runner.OutputEdgesIntact(0));
    const RunnerVerdict timing = runner.Time({.samples = 3, .inner = 20, .copy_outputs = 1}, kLong);
    ASSERT_TRUE(timing.ok()) << timing.message;
    ASSERT_EQ(timing.samples.size(), 3u);
    for (const TimedSample& sample : timing.samples) EXPECT_GT(sample.us, 0.01);
    EXPECT_EQ(runner.output(0, 0), Floats(101));
  }
}

TEST(EmulatedRunner, AStepPastAnEndIsACrash) {
  const Board board(Sum("cpu:cortex-a76", 4096));
  RunnerClient runner = board.Start();
  ASSERT_TRUE(runner.load_verdict().ok()) << runner.load_verdict().message;
  const RunnerVerdict verdict = runner.Verify(0, kLong);
  EXPECT_EQ(verdict.kind, RunnerVerdict::kCrashed);
  EXPECT_THAT(verdict.message, HasSubstr("past the end of input 1"));
}

// What the CPU lacks, or is made for another one, is refused before any of it runs.
TEST(EmulatedRunner, RefusesCodeThatItsCpuCannotRun) {
  const Board sve(Sum("cpu:neoverse-n2"), "cortex-a76");
  const RunnerVerdict lacks = sve.Start().load_verdict();
  EXPECT_EQ(lacks.kind, RunnerVerdict::kRefused);
  EXPECT_THAT(lacks.message, HasSubstr("sve2"));
  const Board foreign(Sum("cpu:x86-64-v3"));
  const RunnerVerdict other = foreign.Start().load_verdict();
  EXPECT_EQ(other.kind, RunnerVerdict::kRefused);
  EXPECT_THAT(other.message, HasSubstr("its code is for x86-64, this machine is AArch64"));
  const Board wide(Sum("cpu:spacemit-x60-zicond"), "generic-rv64");
  const RunnerVerdict narrow = wide.Start().load_verdict();
  EXPECT_EQ(narrow.kind, RunnerVerdict::kRefused);
  EXPECT_THAT(narrow.message, HasSubstr("zvl256b"));
}

}  // namespace
}  // namespace hone
