#include "compiler/codegen/link_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "compiler/codegen/compile.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"
#include "deploy/runtime/image/image.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

PrimFunc Exponential() {
  return *ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for o in T.parallel(4):
        for i in T.vectorized(16):
            with T.block("C"):
                v = T.axis.spatial(64, o * 16 + i)
                C[v] = T.exp(A[v])
)");
}

CompiledKernel Compile(const std::string& symbol, const std::string& target = "cpu:native") {
  absl::StatusOr<CompiledKernel> kernel =
      CompileKernel(ScheduledProgram{Exponential(), {}}, *ParseTarget(target), {.symbol = symbol});
  HONE_CHECK(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

TEST(LinkImage, ExportsTheKernelsOfAllObjects) {
  const std::string objects[] = {Compile("first").object, Compile("second").object};
  const absl::StatusOr<std::string> bytes = LinkImage(objects);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const RuntimeResult<Image> image = Image::Load(*bytes);
  ASSERT_TRUE(image.ok()) << image.error().message();
  EXPECT_NE(image->Find("first"), nullptr);
  EXPECT_NE(image->Find("second"), nullptr);
  EXPECT_EQ(image->Find("third"), nullptr);
  EXPECT_EQ(image->symbols().size(), 2u);  // what a kernel is made of inside stays inside
  EXPECT_THAT(image->features(), HasSubstr("avx2"));
}

TEST(LinkImage, BothKernelsCompute) {
  const std::string objects[] = {Compile("first").object, Compile("second").object};
  const RuntimeResult<Image> image = Image::Load(*LinkImage(objects));
  ASSERT_TRUE(image.ok());
  for (const char* symbol : {"first", "second"}) {
    alignas(64) float in[64], out[64];
    for (int i = 0; i < 64; ++i) in[i] = 0.1f * static_cast<float>(i), out[i] = 0;
    void* tensors[] = {in, out};
    const HoneCall call{.tensors = tensors, .num_threads = 1};
    ASSERT_EQ(image->Find(symbol)(&call), 0);
    EXPECT_NEAR(out[10], std::exp(1.0f), 1e-6);
  }
}

TEST(LinkImage, AArch64) {
  const std::string object = Compile("kernel", "cpu:cortex-a76").object;
  const absl::StatusOr<std::string> bytes = LinkImage({&object, 1});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const RuntimeResult<ImageParts> parts = ReadImage(*bytes);
  ASSERT_TRUE(parts.ok()) << parts.error().message();
  EXPECT_EQ(parts->arch, ImageArch::kAArch64);
  EXPECT_FALSE(parts->code.empty());
  EXPECT_THAT(parts->features, HasSubstr("dotprod"));
}

TEST(LinkImage, RiscV) {
  const std::string object = Compile("kernel", "cpu:generic-rv64").object;
  const absl::StatusOr<std::string> bytes = LinkImage({&object, 1});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const RuntimeResult<ImageParts> parts = ReadImage(*bytes);
  ASSERT_TRUE(parts.ok()) << parts.error().message();
  EXPECT_EQ(parts->arch, ImageArch::kRiscV64);
  EXPECT_EQ(parts->features, "v,zba,zbb,zbs,zfhmin");
}

TEST(LinkImage, TheSameProgramGivesTheSameBytes) { EXPECT_EQ(Compile("kernel").object, Compile("kernel").object); }

TEST(LinkImage, Refusals) {
  const std::string good = Compile("kernel").object;
  const auto says = [](std::vector<std::string> objects, const std::string& text) {
    const absl::StatusOr<std::string> image = LinkImage(objects);
    ASSERT_FALSE(image.ok());
    EXPECT_EQ(image.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(image.status().message()), HasSubstr(text));
  };
  says({}, "an image needs at least one object");
  says({"not an object"}, "object 0: ");
  says({""}, "object 0: ");
  says({good, good}, "object 1: symbol kernel is defined twice");
  says({good, Compile("other", "cpu:cortex-a76").object}, "object 1: made for another architecture");
}

// Whatever is cut off or flipped: a message, not a crash.
TEST(LinkImage, DamagedObjects) {
  const std::string good = Compile("kernel").object;
  for (size_t length = 0; length < good.size(); length += 37) {
    const std::string cut = good.substr(0, length);
    EXPECT_FALSE(LinkImage({&cut, 1}).ok()) << length;
  }
  for (size_t at = 0; at < good.size(); at += 5) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 0xFF);
    (void)LinkImage({&flipped, 1});
  }
}

TEST(Compile, DescribesTheKernelSet) {
  const CompiledKernel kernel = Compile("abc");
  EXPECT_EQ(kernel.set.symbol, "abc");
  ASSERT_EQ(kernel.set.params.size(), 2u);
  EXPECT_EQ(kernel.set.params[0].dtype, "float32");
  EXPECT_EQ(kernel.set.params[0].shape, std::vector<int64_t>{64});
  EXPECT_EQ(kernel.set.params[0].bytes, 256);
  EXPECT_EQ(kernel.set.num_outputs, 1);
  EXPECT_TRUE(kernel.set.prepared.empty());
  EXPECT_NE(kernel.program_hash, 0u);
  EXPECT_THAT(GeneratorFingerprint(), HasSubstr("llvm-19"));
}

TEST(Compile, ManyThreadsAtOnceGiveTheSameBytes) {
  const std::string want = Compile("kernel").object;
  std::vector<std::string> got(8);
  std::vector<std::thread> threads;
  for (std::string& object : got) threads.emplace_back([&object] { object = Compile("kernel").object; });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& object : got) EXPECT_EQ(object, want);
}

TEST(Compile, RefusesAFunctionWithoutCode) {
  const absl::StatusOr<CompiledKernel> kernel = CompilePlain(*ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
    for i in range(64):
        C[i] = T.exp(A[i])
)"),
                                                             HostTarget());
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().message(),
            "lowering main: there is no code for exp of int32; cast the argument to another type");
}

TEST(Compile, RefusesWhatACpuCannotDo) {
  const absl::StatusOr<CompiledKernel> kernel = CompileKernel(ScheduledProgram{*ParsePrimFunc(R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("C"):
            v = T.axis.spatial(64, i)
            C[v] = A[v]
)"),
                                                                               {}},
                                                              HostTarget());
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(kernel.status().message(),
            "lowering main: loop i is bound to threadIdx.x, which a CPU does not have; use parallel");
}

}  // namespace
}  // namespace hone
