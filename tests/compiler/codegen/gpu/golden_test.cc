// Golden files: a comment saying which case it is, a scheduled program, and behind lines of dashes what it becomes: the
// list of launches, then the kernels in each language. HONE_UPDATE_GOLDEN=1 rewrites what is behind the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/codegen/cuda/cuda_cpp.h"
#include "compiler/codegen/gpu/print_kernels.h"
#include "compiler/codegen/opencl/opencl_c.h"
#include "compiler/lower/threads/device_program.h"
#include "compiler/support/check.h"
#include "compiler/text/text.h"
#include "tests/compiler/codegen/gpu/run_on_device.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

fs::path Folder() { return fs::path(HONE_TEST_DATA) / "compiler/codegen/gpu/golden"; }

std::vector<std::string> GoldenFiles() {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(Folder())) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string Printed(const DeviceProgram& program, const Dialect& dialect, const std::set<std::string>& features) {
  const absl::StatusOr<std::string> source = PrintKernels(program, dialect, features);
  return absl::StrCat("---- ", dialect.name, "\n",
                      source.ok() ? *source : absl::StrCat(source.status().message(), "\n"));
}

class KernelGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(KernelGolden, Matches) {
  const fs::path path = Folder() / GetParam();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string whole = text.str();
  const size_t line = whole.find("---- launches\n");
  ASSERT_NE(line, std::string::npos) << path << " has no line of dashes";
  const absl::StatusOr<PrimFunc> scheduled = ParsePrimFunc(whole.substr(0, line));
  ASSERT_TRUE(scheduled.ok()) << scheduled.status();
  const absl::StatusOr<DeviceProgram> program = LowerToDevice(*scheduled);
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string printed = absl::StrCat("---- launches\n", ToText(*program), Printed(*program, OpenClC(), {}),
                                           Printed(*program, CudaCpp(), testing::CudaFeatures()));
  if (std::getenv("HONE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << whole.substr(0, line) << printed;
    return;
  }
  EXPECT_EQ(printed, whole.substr(line));
}

INSTANTIATE_TEST_SUITE_P(Files, KernelGolden, ::testing::ValuesIn(GoldenFiles()),
                         [](const auto& info) { return fs::path(info.param).stem().string(); });

constexpr char kCast[] = R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "TYPE")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.spatial(8, t)
            B[vi] = T.Cast("TYPE", A[vi])
)";

TEST(Kernels, ElementsOfFewerBitsAreRefusedByName) {
  for (const char* type : {"float8_e4m3fn", "float8_e5m2", "int4", "uint4"}) {
    const absl::StatusOr<PrimFunc> scheduled = ParsePrimFunc(absl::StrReplaceAll(kCast, {{"TYPE", type}}));
    ASSERT_TRUE(scheduled.ok()) << scheduled.status();
    const absl::StatusOr<DeviceProgram> program = LowerToDevice(*scheduled);
    ASSERT_TRUE(program.ok()) << program.status();
    for (const Dialect* dialect : {&OpenClC(), &CudaCpp()}) {
      EXPECT_EQ(PrintKernels(*program, *dialect, {}).status().message(),
                absl::StrCat("there is no ", dialect->name, " for this kernel: elements of type ", type,
                             ", which it has no arithmetic for; cast them to a wider type before"));
    }
  }
}

}  // namespace
}  // namespace hone
