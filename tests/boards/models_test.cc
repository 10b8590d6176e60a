// The five models of make_models.py (the ResNets for an image of 96x96 and BERT-base for 16 tokens) and graphs of
// models/exported, compiled here for other CPUs, run there (emulated) and held against ONNX Runtime, on one seeded
// input each; and a quantised one, by the dot products that its CPU has. A network takes an emulator some ten seconds.
// HONE_THOROUGH=1 runs one more on RISC-V. tests/run says where the models (HONE_MODELS) and Python with ONNX Runtime
// (HONE_PYTHON) are.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
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

class OnBoard : public testing::Test {
 protected:
  void SetUp() override {
    const char *python = std::getenv("HONE_PYTHON"), *models = std::getenv("HONE_MODELS");
    if (python == nullptr || models == nullptr) {
      GTEST_SKIP() << "HONE_PYTHON and HONE_MODELS are not set; tests/run sets them";
    }
    python_ = python;
    models_ = models;
  }

  void CompileFor(const std::string& cpu, const std::string& model) const {
    const Finished compile = RunProgram(folder_, "hone",
                                        {"compile", model, "-o", bundle_, "--target",
                                         absl::StrCat("cpu:", cpu, ",cores=2"), "--threads", "2", "--untuned"},
                                        kMostSeconds);
    ASSERT_EQ(compile.code, 0) << compile.errors;
  }
  void ExpectAgreesOn(const std::string& cpu, const std::string& model, const Arguments& how = {}) const {
    Arguments arguments{HONE_TEST_DATA "/models/check_bundle.py",  model,     bundle_, "--hone",
                        absl::StrCat(HONE_BIN, "/", cpu, "/hone"), "--seeds", "1"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    const Finished check = RunProgram(folder_, python_, arguments, kMostSeconds);
    EXPECT_EQ(check.code, 0) << check.output << check.errors;
    EXPECT_THAT(check.output, testing::HasSubstr("seed 1: "));
  }

  TempFolder folder_;
  const std::string bundle_ = folder_ / "model.hone";
  std::string python_, models_;
};

using ModelAndCpu = std::tuple<const char*, const char*>;
class BoardModel : public OnBoard, public testing::WithParamInterface<ModelAndCpu> {};

TEST_P(BoardModel, AgreesWithOnnxRuntime) {
  const auto& [name, cpu] = GetParam();
  std::string model = absl::StrCat(models_, "/", name, ".onnx");
  if (const std::string graph = absl::StrCat(HONE_TEST_DATA "/models/exported/", name, ".onnx");
      !std::filesystem::exists(model) && std::filesystem::exists(graph)) {
    const Finished fill =
        RunProgram(folder_, python_, {HONE_TEST_DATA "/models/fill_weights.py", graph, "-o", folder_.path()});
    ASSERT_EQ(fill.code, 0) << fill.errors;
    model = folder_ / absl::StrCat(name, ".onnx");
  }
  ASSERT_NO_FATAL_FAILURE(CompileFor(cpu, model));
  ExpectAgreesOn(cpu, model);
}

// Instructions in a file that these bits tell, whatever their registers.
struct InstructionBits {
  uint32_t bits = 0, registers = 0x001F03FF;
  size_t alignment = 4;
};
// Arm ARM, "SDOT (vector)", "USDOT (vector)" and "SMLAL (vector)", of four sums; RISC-V "V" 1.0, chapter 11.14,
// VWMACC.VX.
constexpr InstructionBits kSdot{0x4E809400}, kUsdot{0x4E809C00}, kSmlal{0x0E608000}, kVwmacc{0xF4006057, 0x03FF8F80, 2};

int CountInstructions(const std::string& file, const InstructionBits& instruction) {
  const std::string bytes = ReadAll(file);
  int count = 0;
  for (size_t at = 0; at + 4 <= bytes.size(); at += instruction.alignment) {
    uint32_t word;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    count += (word & ~instruction.registers) == instruction.bits ? 1 : 0;
  }
  return count;
}

// Graphs multiply uint8 by int8, for which these cores have no instruction.
class QuantisedOnBoard : public OnBoard {
 protected:
  static constexpr int kInConstants = 20;  // instructions of a file whose other words are anything

  void CompileQuantised(const std::string& name, const std::string& cpu) {
    model_ = folder_ / "quantised.onnx";
    const Finished quantise = RunProgram(
        folder_, python_, {HONE_TEST_DATA "/models/quantise.py", models_ + "/" + name, "-o", model_, "--samples", "1"});
    ASSERT_EQ(quantise.code, 0) << quantise.errors;
    CompileFor(cpu, model_);
  }

  std::string model_;
};
TEST_F(QuantisedOnBoard, MultipliesBytesOfOneSign) {
  ASSERT_NO_FATAL_FAILURE(CompileQuantised("resnet18_96.onnx", "cortex-a76"));
  EXPECT_GT(CountInstructions(bundle_, kSdot), 21 * 4 * kInConstants) << "a tile and more in each of 21 products";
  EXPECT_LT(CountInstructions(bundle_, kUsdot), kInConstants);
  ExpectAgreesOn("cortex-a76", model_, {"--within-step", "0.999"});
}

// Without dot products: int16, that an instruction widens itself.
TEST_F(QuantisedOnBoard, WidensInt16OnRiscV) {
  ASSERT_NO_FATAL_FAILURE(CompileQuantised("mlp.onnx", "generic-rv64"));
  EXPECT_GT(CountInstructions(bundle_, kVwmacc), 2 * kInConstants);
  ExpectAgreesOn("generic-rv64", model_, {"--within-step", "0.999"});
}
TEST_F(QuantisedOnBoard, WidensInt16OnNeon) {
  ASSERT_NO_FATAL_FAILURE(CompileQuantised("mlp.onnx", "cortex-a72"));
  EXPECT_GT(CountInstructions(bundle_, kSmlal), 2 * kInConstants);
  ExpectAgreesOn("cortex-a76", model_, {"--within-step", "0.999"});
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
                         testing::Combine(testing::Values("mlp", "resnet18_96", "resnet50_96", "mobilenetv2",
                                                          "bert_base_16"),
                                          testing::Values("cortex-a76", "neoverse-n2")),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(RiscV, BoardModel,
                         testing::ValuesIn(Chosen({{"mlp", "generic-rv64"},
                                                   {"mlp", "spacemit-x60-zicond"},
                                                   {"mobilenet_v3_small", "generic-rv64"},
                                                   {"resnet18_96", "spacemit-x60-zicond"}},
                                                  {{"resnet18_96", "generic-rv64"}})),
                         NameOf);

}  // namespace
}  // namespace hone::system_test
