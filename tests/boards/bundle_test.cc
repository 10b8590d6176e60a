// A bundle for another CPU: this machine says what it is made of and does not run it; that CPU runs it.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"

namespace hone::system_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(BoardBundle, RunsOnItsCpuAlone) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), bundle = folder / "tiny.hone";
  const TinyModel tiny;
  const std::vector<float> x = tiny.Input(1), want = tiny.Reference(x);
  WriteNpy(folder / "x.npy", {TinyModel::kRows, TinyModel::kIn}, x);
  const Arguments run = {"run", bundle, "--input", "x=" + (folder / "x.npy"), "--output", "y=" + (folder / "y.npy")};
  struct Board {
    const char *cpu, *arch;
  };
  for (const auto& [name, arch] :
       {Board{"cortex-a76", "AArch64"}, Board{"spacemit-x60-zicond", "RISC-V"}, Board{"neoverse-n2", "AArch64"}}) {
    const std::string cpu = name;
    SCOPED_TRACE(cpu);
    const Finished compile = Hone(folder, {"compile", model, "-o", bundle, "--untuned", "--target", "cpu:" + cpu});
    ASSERT_EQ(compile.code, 0) << compile.errors;
    const Finished there = RunProgram(folder, HONE_BIN "/" + cpu + "/hone", run);
    ASSERT_EQ(there.code, 0) << there.errors;
    const std::vector<float> got = ReadNpy(folder / "y.npy", {TinyModel::kRows, TinyModel::kOut});
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;

    const Finished here = Hone(folder, run);
    EXPECT_EQ(here.code, 10);
    EXPECT_THAT(here.errors, HasSubstr(absl::StrCat("its code is for ", arch, ", this machine is x86-64")));
    const Finished inspect = Hone(folder, {"inspect", bundle, "--json"});
    ASSERT_EQ(inspect.code, 0) << inspect.errors;
    EXPECT_THAT(JsonLines(inspect.output).at(0).at("target").get<std::string>(), StartsWith("cpu:" + cpu));
  }
  // The last of them, which uses SVE2, on a CPU without.
  const Finished lacking = RunProgram(folder, HONE_BIN "/cortex-a76/hone", run);
  EXPECT_EQ(lacking.code, 1);
  EXPECT_THAT(lacking.errors, HasSubstr("sve2"));
}

}  // namespace
}  // namespace hone::system_test
