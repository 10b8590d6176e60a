// Kernels printed as CUDA C++ and compiled by NVRTC, without a GPU: all of them compile for both architectures, none
// spills, and the machine code has the instructions that the programs imply.
//   HONE_NVRTC=/path/to/libnvrtc.so.13 HONE_SEEDS=500 compiler_codegen_gpu_tests --gtest_filter=Cuda*
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/codegen/cuda/cubin.h"
#include "compiler/codegen/cuda/cuda_cpp.h"
#include "compiler/codegen/cuda/nvrtc.h"
#include "compiler/codegen/gpu/print_kernels.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/gpu_target.h"
#include "compiler/text/text.h"
#include "compiler/tile/tile_intrinsic.h"
#include "tests/compiler/codegen/gpu/run_on_device.h"
#include "tests/compiler/lower/thread_schedules.h"
#include "tests/compiler/schedule/campaign.h"

namespace hone::testing {
namespace {

constexpr const char* kArchitectures[] = {"sm_80", "sm_90a"};

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<const Nvrtc*> loaded = Nvrtc::Load();
    if (!loaded.ok()) GTEST_SKIP() << loaded.status().message();
    nvrtc_ = *loaded;
  }

  absl::StatusOr<std::vector<CudaKernel>> Compile(const PrimFunc& scheduled, const std::string& architecture,
                                                  const std::set<std::string>& features = CudaFeatures()) {
    HONE_ASSIGN_OR_RETURN(const DeviceProgram program, LowerToDevice(scheduled));
    HONE_ASSIGN_OR_RETURN(const std::string source, PrintKernels(program, CudaCpp(), features));
    const auto start = std::chrono::steady_clock::now();
    const absl::StatusOr<CudaImage> image = nvrtc_->Compile(source, architecture);
    milliseconds_.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (!image.ok()) return Annotate(image.status(), source);
    return ReadCubin(*image);
  }

  // The program of a golden file.
  static PrimFunc Golden(const std::string& name) {
    std::stringstream text;
    text << std::ifstream(std::filesystem::path(HONE_TEST_DATA) / "compiler/codegen/gpu/golden" / (name + ".txt"))
                .rdbuf();
    const absl::StatusOr<PrimFunc> func = ParsePrimFunc(text.str().substr(0, text.str().find("----")));
    HONE_CHECK(func.ok()) << name << ": " << func.status();
    return *func;
  }

  void PrintMedian() {
    std::ranges::sort(milliseconds_);
    if (milliseconds_.empty()) return;
    std::printf("NVRTC %s: %zu kernels, median %.0f ms\n", nvrtc_->version().c_str(), milliseconds_.size(),
                milliseconds_[milliseconds_.size() / 2]);
  }

  const Nvrtc* nvrtc_ = nullptr;
  std::vector<double> milliseconds_;
};

std::string CheckNoSpills(const std::vector<CudaKernel>& kernels) {
  for (const CudaKernel& kernel : kernels) {
    const bool spills = kernel.spill_stores + kernel.spill_loads > 0 || kernel.instructions.contains("STL");
    if (kernel.registers == 0 || spills || kernel.stack_bytes > 0) return ToJson(kernel);
  }
  return kernels.empty() ? "no kernels" : "";
}

TEST_F(Cuda, RandomSchedulesCompile) {
  const auto first = static_cast<uint64_t>(FromEnvironment("HONE_FIRST_SEED", 0));
  const auto seeds = static_cast<uint64_t>(FromEnvironment("HONE_SEEDS", 20));
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    Random random(seed);
    const PrimFunc scheduled =
        seed % 3 == 2 ? DrawWarpProduct(random).program : DrawThreadSchedule(random).schedule.Program().main;
    const absl::StatusOr<std::vector<CudaKernel>> kernels = Compile(scheduled, kArchitectures[seed % 2]);
    ASSERT_TRUE(kernels.ok()) << "seed " << seed << ": " << kernels.status();
    EXPECT_EQ(CheckNoSpills(*kernels), "") << "seed " << seed;
  }
  PrintMedian();
}

// What the machine code of a golden program has, on either architecture.
struct Expected {
  const char* program;
  int64_t shared_bytes;
  std::vector<std::pair<const char*, int64_t>> instructions;
};

TEST_F(Cuda, MachineCodeHasTheInstructionsOfTheProgram) {
  const std::vector<Expected> rows = {
      // 6 steps of 8 multiply-adds for each of 4 sums, two barriers a step; each fetch is a load and a store.
      {"tiled_product", 1536, {{"FFMA", 6 * 8 * 4}, {"BAR", 12}, {"LDG", 12}, {"STS", 12}, {"STG", 2}}},
      // Two copies for each of five steps, a barrier a step, four multiply-adds.
      {"asynchronous_pipeline", 768, {{"LDGSTS", 10}, {"BAR", 5}, {"FFMA", 20}, {"LDG", 0}, {"STG", 1}}},
      // A row is four copies, and an element of the other operand one, for each of four steps. Two
      // versions of 8 rows of 64 bytes, behind 128 for the other operand.
      {"vector_copies", 1152, {{"LDGSTS", 4 * 5}, {"LDG", 0}, {"STS", 0}}},
      {"reduction_across_threads", 20, {{"BAR", 1}, {"STG", 1}}},
      // Two steps of two products.
      {"warp_product", 0, {{"HMMA", 4}}},
  };
  for (const Expected& row : rows) {
    for (const char* architecture : kArchitectures) {
      SCOPED_TRACE(absl::StrCat(row.program, " ", architecture));
      absl::StatusOr<std::vector<CudaKernel>> kernels = Compile(Golden(row.program), architecture);
      ASSERT_TRUE(kernels.ok()) << kernels.status();
      ASSERT_EQ(kernels->size(), 1u);
      CudaKernel& kernel = kernels->front();
      std::printf("%s %s\n", architecture, ToJson(kernel).c_str());
      EXPECT_EQ(CheckNoSpills(*kernels), "");
      EXPECT_EQ(kernel.shared_bytes, row.shared_bytes);
      for (const auto& [name, count] : row.instructions) EXPECT_EQ(kernel.instructions[name], count) << name;
    }
  }
  PrintMedian();
}

// The helper of a row is its one instruction, with its bytes: of 16, as the assembler forbids fewer, past the
// first-level cache.
TEST_F(Cuda, EveryAsynchronousCopyIsTheInstructionOfItsRow) {
  const std::map<int64_t, const TileIntrinsic*> copies = FindAsyncCopies(CudaFeatures());
  EXPECT_EQ(copies.size(), 3u);
  for (const auto& [bytes, row] : copies) {
    SCOPED_TRACE(row->name);
    const std::string helper = CudaCpp().intrinsic_helper(*row);
    const std::string operands = absl::StrCat(" [%0], [%1], ", bytes, ", %2;");
    EXPECT_NE(helper.find(row->instructions[0].function + operands), std::string::npos) << helper;
    EXPECT_EQ(helper.find("cp.async.cg") != std::string::npos, bytes == 16) << helper;
    for (const char* architecture : kArchitectures) {
      const absl::StatusOr<CudaImage> image = nvrtc_->Compile(
          absl::StrCat(CudaCpp().helper, helper, "\nextern \"C\" __global__ void copy(const int* from, int* to) {\n",
                       "  __shared__ __align__(128) int shared[4];\n  ", row->name, "(shared, from, ", bytes,
                       ");\n}\n"),
          architecture);
      ASSERT_TRUE(image.ok()) << image.status();
      absl::StatusOr<std::vector<CudaKernel>> kernels = ReadCubin(*image);
      ASSERT_TRUE(kernels.ok()) << kernels.status();
      EXPECT_EQ(kernels->front().instructions["LDGSTS"], 1) << ToJson(kernels->front());
    }
  }
}

// An architecture before asynchronous copies, which its features say: what the text with them is refused for.
TEST_F(Cuda, CopiesArePlainWhereTheTargetHasNoOthers) {
  const char* const before = "sm_75";
  const std::set<std::string> features = FeaturesOf({.language = "cuda", .arch = before, .lanes = 32});
  for (const char* program : {"asynchronous_pipeline", "vector_copies"}) {
    SCOPED_TRACE(program);
    absl::StatusOr<std::vector<CudaKernel>> kernels = Compile(Golden(program), before, features);
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    EXPECT_EQ(kernels->front().instructions["LDGSTS"], 0);
    EXPECT_GT(kernels->front().instructions["STS"], 0);
    EXPECT_FALSE(Compile(Golden(program), before, CudaFeatures()).ok());
  }
}

// What every helper of the dialect says to the assembler.
TEST_F(Cuda, ElementTypesCompile) {
  for (const char* architecture : kArchitectures) {
    const absl::StatusOr<std::vector<CudaKernel>> kernels = Compile(Golden("element_types"), architecture);
    ASSERT_TRUE(kernels.ok()) << kernels.status();
    EXPECT_EQ(CheckNoSpills(*kernels), "");
  }
}

TEST_F(Cuda, ARefusedTextIsSaidWithItsLine) {
  const absl::StatusOr<CudaImage> image =
      nvrtc_->Compile("extern \"C\" __global__ void k(float* a) {\n  a[0] = b;\n}\n", "sm_80");
  ASSERT_FALSE(image.ok());
  EXPECT_NE(image.status().message().find("kernels.cu(2)"), std::string::npos) << image.status();
}

// Sixty-four sums that are all in use at once do not fit in 32 registers.
TEST_F(Cuda, SpillsAreRead) {
  std::string sums, uses;
  for (int i = 0; i < 64; ++i) {
    absl::StrAppend(&sums, "  float s", i, " = a[threadIdx.x + ", 1024 * i, "];\n");
    absl::StrAppend(&uses, "  b[threadIdx.x + ", 1024 * i, "] = s", i, " * s", 63 - i, ";\n");
  }
  const absl::StatusOr<CudaImage> image = nvrtc_->Compile(
      absl::StrCat("extern \"C\" __global__ void __launch_bounds__(1024, 2)\nk(const float* a, float* b) {\n", sums,
                   "  __syncthreads();\n", uses, "}\n"),
      "sm_80");
  ASSERT_TRUE(image.ok()) << image.status();
  const absl::StatusOr<std::vector<CudaKernel>> kernels = ReadCubin(*image);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const CudaKernel& kernel = kernels->front();
  EXPECT_GT(kernel.spill_stores, 0) << ToJson(kernel) << image->log;
  EXPECT_GT(kernel.stack_bytes, 0) << ToJson(kernel);
  EXPECT_EQ(kernel.registers, 32) << ToJson(kernel);
}

TEST(Cubin, DamagedBytesAreRefused) {
  for (const std::string& bytes : {std::string(), std::string("no ELF"), std::string(100, '\0')})
    EXPECT_FALSE(ReadCubin({bytes, ""}).ok());
}

}  // namespace
}  // namespace hone::testing
