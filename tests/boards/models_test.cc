// Models of make_models.py and graphs of models/exported, compiled here for other CPUs, run there (emulated) and held
// against ONNX Runtime, on one seeded input each. A network takes an emulator half a minute and BERT-base two, so that
// every board runs one with convolutions, and one an encoder of two layers; HONE_THOROUGH=1 runs all five models of
// make_models.py. tests/run says where the models (HONE_MODELS) and Python with ONNX Runtime (HONE_PYTHON) are.
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/thorough.h"

namespace hone::system_test {
namespace {

constexpr double kMostSeconds = 500;  // of one program, on a machine that does other things as well

using ModelAndCpu = std::tuple<const char*, const char*>;
class BoardModel : public testing::TestWithParam<ModelAndCpu> {};

TEST_P(BoardModel, AgreesWithOnnxRuntime) {
  const auto& [name, cpu] = GetParam();
  const char *python = std::getenv("HONE_PYTHON"), *models = std::getenv("HONE_MODELS");
  if (python == nullptr || models == nullptr) {
    GTEST_SKIP() << "HONE_PYTHON and HONE_MODELS are not set; tests/run sets them";
  }
  const TempFolder folder;
  std::string model = absl::StrCat(models, "/", name, ".onnx");
  const std::string bundle = folder / "model.hone";
  if (const std::string graph = absl::StrCat(HONE_TEST_DATA "/models/exported/", name, ".onnx");
      !std::filesystem::exists(model) && std::filesystem::exists(graph)) {
    const Finished fill =
        RunProgram(folder, python, {HONE_TEST_DATA "/models/fill_weights.py", graph, "-o", folder.path()});
    ASSERT_EQ(fill.code, 0) << fill.errors;
    model = folder / absl::StrCat(name, ".onnx");
  }
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

std::vector<ModelAndCpu> Chosen(std::vector<ModelAndCpu> usual, const std::vector<ModelAndCpu>& more) {
  if (Thorough()) usual.insert(usual.end(), more.begin(), more.end());
  return usual;
}
INSTANTIATE_TEST_SUITE_P(Boards, BoardModel,
                         testing::ValuesIn(Chosen({{"mlp", "cortex-a76"},
                                                   {"mlp", "neoverse-n2"},
                                                   {"resnet18", "cortex-a76"},
                                                   {"mobilenetv2", "neoverse-n2"},
                                                   {"bert", "neoverse-n2"}},
                                                  {{"mobilenetv2", "cortex-a76"},
                                                   {"resnet18", "neoverse-n2"},
                                                   {"resnet50", "cortex-a76"},
                                                   {"bert_base", "neoverse-n2"}})),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(RiscV, BoardModel,
                         testing::ValuesIn(Chosen({{"mlp", "generic-rv64"},
                                                   {"mlp", "spacemit-x60-zicond"},
                                                   {"mobilenet_v3_small", "generic-rv64"},
                                                   {"resnet18", "spacemit-x60-zicond"}},
                                                  {{"resnet18", "generic-rv64"}})),
                         NameOf);

}  // namespace
}  // namespace hone::system_test
