// The five models of make_models.py, compiled here for other CPUs, run there (emulated) and held against ONNX Runtime,
// on one seeded input each: BERT-base takes two minutes of an emulator. tests/run says where the models (HONE_MODELS)
// and Python with ONNX Runtime (HONE_PYTHON) are.
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"

namespace hone::system_test {
namespace {

constexpr double kMostSeconds = 1500;  // of one program, on a machine that does other things as well

using ModelAndCpu = std::tuple<const char*, const char*>;
class BoardModel : public testing::TestWithParam<ModelAndCpu> {};

TEST_P(BoardModel, AgreesWithOnnxRuntime) {
  const auto& [name, cpu] = GetParam();
  const char *python = std::getenv("HONE_PYTHON"), *models = std::getenv("HONE_MODELS");
  if (python == nullptr || models == nullptr) {
    GTEST_SKIP() << "HONE_PYTHON and HONE_MODELS are not set; tests/run sets them";
  }
  const TempFolder folder;
  const std::string model = absl::StrCat(models, "/", name, ".onnx"), bundle = folder / "model.hone";
  const Finished compile = RunProgram(folder, "hone",
                                      {"compile", model, "-o", bundle, "--target",
                                       absl::StrCat("cpu:", cpu, ",cores=2"), "--threads", "2", "--untuned"},
                                      kMostSeconds);
  ASSERT_EQ(compile.code, 0) << compile.errors;
  const Finished check = RunProgram(folder, python,
                                    {HONE_TEST_DATA "/models/check_bundle.py", model, bundle, "--hone",
                                     absl::StrCat(HONE_BIN, "/", cpu, "/hone"), "--seeds", "1"},
                                    kMostSeconds);
  EXPECT_EQ(check.code, 0) << check.output << check.errors;
  EXPECT_THAT(check.output, testing::HasSubstr("seed 1: "));
}

std::string NameOf(const testing::TestParamInfo<ModelAndCpu>& info) {
  const std::string cpu = std::get<1>(info.param);
  return absl::StrCat(std::get<0>(info.param), "_", absl::StrReplaceAll(cpu.substr(cpu.find('-') + 1), {{"-", "_"}}));
}
INSTANTIATE_TEST_SUITE_P(Boards, BoardModel,
                         testing::Combine(testing::Values("resnet18", "mobilenetv2", "mlp"),
                                          testing::Values("cortex-a76", "neoverse-n2")),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(RiscV, BoardModel,
                         testing::Combine(testing::Values("resnet18", "mlp"),
                                          testing::Values("generic-rv64", "spacemit-x60-zicond")),
                         NameOf);
// A minute or two of emulation each, which one board is worth.
INSTANTIATE_TEST_SUITE_P(Larger, BoardModel,
                         testing::Values(ModelAndCpu{"resnet50", "cortex-a76"},
                                         ModelAndCpu{"bert_base", "neoverse-n2"}),
                         NameOf);

}  // namespace
}  // namespace hone::system_test
