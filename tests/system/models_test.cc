// Whole networks against ONNX Runtime, on a seeded input each (rtol 1e-3, atol 1e-4, in check_bundle.py): the five
// models of make_models.py untuned and after a short tuning, and what PyTorch's exporters write (tests/models/exported)
// untuned; with products of bfloat16; and quantised ones. An input has some million numbers, and another one has found
// nothing yet that it did not: HONE_THOROUGH=1 takes three, and more networks and trials. tests/run says where the
// models (HONE_MODELS) and Python with ONNX Runtime (HONE_PYTHON) are.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/system/harness.h"
#include "tests/system/tiny_model.h"
#include "tests/thorough.h"

namespace hone::system_test {
namespace {

constexpr double kMostSeconds = 280;  // of one program, on a machine that does other things as well

std::string Script(const std::string& name) { return HONE_TEST_DATA "/models/" + name; }

class Network : public testing::Test {
 protected:
  void SetUp() override {
    const char *python = std::getenv("HONE_PYTHON"), *models = std::getenv("HONE_MODELS");
    if (python == nullptr || models == nullptr) {
      GTEST_SKIP() << "HONE_PYTHON and HONE_MODELS are not set; tests/run sets them";
    }
    python_ = python;
    models_ = models;
  }

  void ExpectAgreesWithOnnxRuntime(const std::string& model, const std::string& bundle,
                                   const Arguments& how = {}) const {
    Arguments arguments{Script("check_bundle.py"), model, bundle, "--hone", HONE_BIN "/hone"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    arguments.insert(arguments.end(), {"--seeds", "1"});
    if (Thorough()) arguments.insert(arguments.end(), {"2", "3"});
    const Finished check = RunProgram(folder_, python_, arguments, kMostSeconds);
    EXPECT_EQ(check.code, 0) << check.output << check.errors;
    // A line for every output of every seed: nothing was left out.
    EXPECT_THAT(check.output, testing::HasSubstr("seed " + arguments.back() + ": "));
  }

  std::string Compile(const std::string& model, const Arguments& how) const {
    Arguments arguments{"compile", model, "-o", folder_ / "model.hone", "--threads", "2"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    const Finished compile = RunProgram(folder_, "hone", arguments, kMostSeconds);
    EXPECT_EQ(compile.code, 0) << compile.errors;
    return folder_ / "model.hone";
  }

  // The network with bytes of that type between its operators.
  std::string Quantise(const std::string& network, const std::string& activations) const {
    const std::string model = folder_ / "quantised.onnx";
    const Finished quantise = RunProgram(
        folder_, python_,
        {Script("quantise.py"), models_ + "/" + network + ".onnx", "-o", model, "--activations", activations},
        kMostSeconds);
    EXPECT_EQ(quantise.code, 0) << quantise.errors;
    return model;
  }

  // A graph of models/exported with weights.
  std::string Filled(const std::string& name) const {
    const Finished fill = RunProgram(
        folder_, python_, {Script("fill_weights.py"), Script("exported/" + name + ".onnx"), "-o", folder_.path()});
    EXPECT_EQ(fill.code, 0) << fill.errors;
    return folder_ / (name + ".onnx");
  }

  TempFolder folder_;
  std::string python_, models_;
};

class OfNetwork : public Network, public testing::WithParamInterface<const char*> {};

using Untuned = OfNetwork;
TEST_P(Untuned, AgreesWithOnnxRuntime) {
  const std::string model = models_ + "/" + GetParam() + ".onnx";
  ASSERT_TRUE(std::filesystem::exists(model)) << model;
  ExpectAgreesWithOnnxRuntime(model, Compile(model, {"--untuned"}));
}

// One bundle at many sizes of its dimensions.
struct OpenNetwork {
  const char* name;
  std::vector<const char*> dims, sizes;
};
class Open : public Network {
 protected:
  void ExpectAgreesAtEverySize(const OpenNetwork& network) const {
    const Finished made = RunProgram(folder_, python_, {Script("make_models.py"), network.name, "-o", folder_.path()});
    ASSERT_EQ(made.code, 0) << made.errors;
    const std::string model = folder_ / (std::string(network.name) + ".onnx");
    Arguments how{"--untuned"}, sizes;
    for (const char* dim : network.dims) how.insert(how.end(), {"--dim", dim});
    for (const char* of_dim : network.sizes) sizes.insert(sizes.end(), {"--sizes", of_dim});
    const std::string bundle = Compile(model, how);
    ExpectAgreesWithOnnxRuntime(model, bundle, sizes);
    const Finished inspect = RunProgram(folder_, "hone", {"inspect", bundle, "--json"});
    ASSERT_EQ(inspect.code, 0) << inspect.errors;
    for (const auto& kernel : nlohmann::json::parse(inspect.output).at("kernels"))
      EXPECT_NE(kernel.at("source"), "plain") << kernel;
  }
};
TEST_F(Open, MlpAgreesWithOnnxRuntime) {
  ExpectAgreesAtEverySize({"mlp_open", {"batch=1..64"}, {"batch=1,2,3,4,5,7,8,15,16,17,31,32,33,48,63,64"}});
}
TEST_F(Open, ResNetAgreesWithOnnxRuntime) {
  ExpectAgreesAtEverySize({"resnet18_open", {"batch=1..4"}, {"batch=1,2,3,4"}});
}
TEST_F(Open, BertAgreesWithOnnxRuntime) {
  ExpectAgreesAtEverySize({"bert_small_open",
                           {"batch=1..3", "seq=1..64"},
                           {"batch=1,2,3,1", "seq=1,2,3,4,5,7,8,9,15,16,17,31,32,33,48,63,64"}});
}
// The prompt without a past, tokens behind a past of every kind, several tokens at once, and the ends of both ranges.
TEST_F(Open, DecoderWithACacheAgreesWithOnnxRuntime) {
  ExpectAgreesAtEverySize({"gpt2_small",
                           {"past=0..48", "seq=1..16"},
                           {"past=0,0,1,2,7,8,15,16,17,31,47,48,48,5", "seq=16,1,1,1,1,1,1,1,1,1,1,1,16,7"}});
}

// Some tasks of a network, among them each kind of its operators, and so few trials that every task has one or two
// beyond its default. The job is watched: `hone tune` would time the model before and after, which takes longer than
// the trials. HONE_THOROUGH=1 tunes all of a network as a user does.
struct SomeTasks {
  const char *network, *tasks, *trials;
};
class Tuned : public Network, public testing::WithParamInterface<SomeTasks> {};
TEST_P(Tuned, AgreesWithOnnxRuntime) {
  const auto& [network, tasks, trials] = GetParam();
  const std::string model = models_ + "/" + network + ".onnx";
  ASSERT_TRUE(std::filesystem::exists(model)) << model;
  if (Thorough()) {
    const std::string database = folder_ / "tuning.db";
    const Finished tune = RunProgram(
        folder_, "hone", {"tune", model, "--db", database, "--threads", "2", "--trials", "40", "--json"}, kMostSeconds);
    ASSERT_EQ(tune.code, 0) << tune.errors;
    EXPECT_GT(JsonLines(tune.output).back().at("trials").get<int>(), 0);
    ExpectAgreesWithOnnxRuntime(model, Compile(model, {"--db", database}));
    return;
  }
  Service service(folder_);
  const Process& worker = service.StartWorker({"--threads", "2"});
  const Finished tune = Hone(folder_, {"tune", model, "--server", service.address(), "--threads", "2", "--tasks", tasks,
                                       "--trials", trials, "--detach"});
  ASSERT_EQ(tune.code, 0) << tune.errors;
  const Finished watch =
      RunProgram(folder_, "hone", {"jobs", "watch", "1", "--server", service.address()}, kMostSeconds);
  ASSERT_EQ(watch.code, 0) << watch.errors << worker.Errors();
  EXPECT_GT(service.Job(1).at("trials").get<int>(), 0);
  ExpectAgreesWithOnnxRuntime(model, Compile(model, {"--server", service.address()}));
}

using Exported = OfNetwork;
TEST_P(Exported, AgreesWithOnnxRuntime) {
  const std::string model = Filled(GetParam());
  ExpectAgreesWithOnnxRuntime(model, Compile(model, {"--untuned"}));
}

// An operand is off by at most u = 2^-8 of its size, and the errors of n products in a row add up as a random walk
// does, to about u sqrt(n) of the output's norm.
using Bfloat16 = OfNetwork;
TEST_P(Bfloat16, IsNearFloat32) {
  constexpr double kProductsInARow = 72;  // of BERT-base, which has most
  const std::string model = models_ + "/" + GetParam() + ".onnx";
  ASSERT_TRUE(std::filesystem::exists(model)) << model;
  const std::string bundle = Compile(model, {"--untuned", "--numeric", "bf16"});
  ExpectAgreesWithOnnxRuntime(model, bundle, {"--within-norm", std::to_string(std::sqrt(kProductsInARow) / 256)});
}

using WithoutBfloat16 = OfNetwork;
TEST_P(WithoutBfloat16, LevelBf16IsFloat32AndSaysSo) {
  const std::string model = models_ + "/" + GetParam() + ".onnx", bundle = folder_ / "model.hone";
  const Finished compile = RunProgram(folder_, "hone",
                                      {"compile", model, "-o", bundle, "--untuned", "--numeric", "bf16", "--target",
                                       "cpu:x86-64-v3", "--machine", "usual", "--threads", "2"},
                                      kMostSeconds);
  ASSERT_EQ(compile.code, 0) << compile.errors;
  EXPECT_THAT(compile.errors, testing::HasSubstr("no instruction that multiplies bfloat16"));
  ExpectAgreesWithOnnxRuntime(model, bundle);
}

// Through the C interface, with the kernels on a device.
class OnDevice : public OfNetwork {
 protected:
  void ExpectAgreesOnDevice(const std::string& model) const {
    const std::string bundle = Compile(model, {"--target", target_, "--untuned"});
    ExpectAgreesWithOnnxRuntime(model, bundle);
  }
  // Tuned by a worker that measures the device, with what it found: a trial beyond the default of each of two kernels.
  void ExpectTunesAndAgrees(const std::string& model) const {
    const std::string database = folder_ / "tuning.db";
    const Finished tune =
        RunProgram(folder_, "hone", {"tune", model, "--db", database, "--target", target_, "--trials", "4", "--json"},
                   kMostSeconds);
    ASSERT_EQ(tune.code, 0) << tune.errors;
    EXPECT_GT(JsonLines(tune.output).back().at("trials").get<int>(), 0);
    ExpectAgreesWithOnnxRuntime(model, Compile(model, {"--target", target_, "--db", database}));
  }

  std::string target_;
};

// The first OpenCL device: PoCL, where there is no other.
class OnOpenCl : public OnDevice {
 protected:
  void SetUp() override {
    Network::SetUp();
    if (IsSkipped()) return;
    target_ = "opencl:generic";
    setenv("POCL_CACHE_DIR", folder_.path().c_str(), 1);  // where it keeps what it compiled
    const Finished doctor = RunProgram(folder_, "hone", {"doctor", "--json"});
    for (const auto& row : JsonLines(doctor.output)) {
      if (row.value("check", "") == "opencl" && !row.value("ok", false)) GTEST_SKIP() << row.dump();
    }
  }
};
TEST_P(OnOpenCl, AgreesWithOnnxRuntime) { ExpectAgreesOnDevice(models_ + "/" + GetParam() + ".onnx"); }
using TunedOnOpenCl = OnOpenCl;
TEST_P(TunedOnOpenCl, AgreesWithOnnxRuntime) { ExpectTunesAndAgrees(models_ + "/" + GetParam() + ".onnx"); }
using ExportedOnOpenCl = OnOpenCl;
TEST_P(ExportedOnOpenCl, AgreesWithOnnxRuntime) { ExpectAgreesOnDevice(Filled(GetParam())); }

// A device of CUDA's driver, which is that of the tests' own, as is the compiler: what runs is the CUDA C++ that Hone
// prints (tests/deploy/runtime/fake_cuda/fake_cuda.h).
class OnFakeCuda : public OnDevice {
 protected:
  void SetUp() override {
    Network::SetUp();
    target_ = "cuda:sm_90a";
    UseFakeCuda();
  }
};
TEST_P(OnFakeCuda, AgreesWithOnnxRuntime) { ExpectAgreesOnDevice(models_ + "/" + GetParam() + ".onnx"); }
using TunedOnFakeCuda = OnFakeCuda;
TEST_P(TunedOnFakeCuda, AgreesWithOnnxRuntime) { ExpectTunesAndAgrees(models_ + "/" + GetParam() + ".onnx"); }

TEST(OpenClBundle, SaysWhatTheMachineLacks) {
  const TempFolder folder;
  const std::string model = SaveTiny(folder.path()), bundle = folder / "tiny.hone";
  const Finished compile =
      RunProgram(folder, "hone", {"compile", model, "-o", bundle, "--target", "opencl:generic", "--untuned"});
  ASSERT_EQ(compile.code, 0) << compile.errors;
  Process run(folder, "hone", {"run", bundle, "--random"}, {{"OCL_ICD_VENDORS", folder / "none/"}});
  EXPECT_EQ(run.Wait(), 10);
  EXPECT_THAT(run.Errors(), testing::HasSubstr("; install the device's OpenCL driver"));
  Process tune(folder, "hone", {"tune", model, "--target", "opencl:generic", "--db", folder / "tuning.db"},
               {{"OCL_ICD_VENDORS", folder / "none/"}});
  EXPECT_EQ(tune.Wait(), 5);
  EXPECT_THAT(tune.Errors(), testing::HasSubstr("; install the device's OpenCL driver"));
}

// The element type of a buffer in a program's text; "" where it has none of that name.
std::string TypeOf(const std::string& program, const std::string& buffer) {
  std::smatch found;
  const std::regex declared("\\b" + buffer + "(?:: T\\.Buffer| = T\\.alloc_buffer)\\(\\([0-9, ]*\\), \"(\\w+)\"");
  return std::regex_search(program, found, declared) ? found[1].str() : "";
}
// What the sum of products in a program's text is computed in, then the types of its operands in memory, sorted. Empty
// where there is no such sum.
std::vector<std::string> TypesOfProduct(const std::string& program) {
  static const std::regex* product = new std::regex(
      R"re((\w+)\[[^\n=]*\] = [^\n]*T\.Cast\("(\w+)", (\w+)\[[^\n]*\]\) \* T\.Cast\("(\w+)", (\w+)\[)re");
  std::smatch found;
  if (!std::regex_search(program, found, *product) || found[2] != found[4] || found[2] != TypeOf(program, found[1]))
    return {};
  std::vector<std::string> operands{TypeOf(program, found[3]), TypeOf(program, found[5])};
  std::ranges::sort(operands);
  return {found[2], operands[0], operands[1]};
}

// Activations of either sign: what the products multiply is bytes and what they sum int32, and the outputs are those of
// ONNX Runtime's integer kernels up to one quantisation step for 99.9 %.
using Quantised = OfNetwork;
TEST_P(Quantised, ComputesWithIntegers) {
  const std::string model = Quantise("resnet18", GetParam());
  const Finished inspect = RunProgram(folder_, "hone", {"inspect", model, "--json"}, kMostSeconds);
  ASSERT_EQ(inspect.code, 0) << inspect.errors;
  int products = 0;
  const auto lines = JsonLines(inspect.output);
  for (const auto& task : lines.back().at("tasks")) {
    const std::string name = task.at("name").get<std::string>();
    if (name.find("conv2d") == std::string::npos && name.find("dense") == std::string::npos) continue;
    ++products;
    const Finished program = RunProgram(folder_, "hone", {"inspect", model, "--task", name}, kMostSeconds);
    EXPECT_THAT(TypesOfProduct(program.output), testing::ElementsAre("int32", "int8", "uint8")) << name << ":\n"
                                                                                                << program.output;
  }
  EXPECT_EQ(products, 21);
  ExpectAgreesWithOnnxRuntime(model, Compile(model, {"--untuned"}), {"--within-step", "0.999"});
}

// .. and layer by layer those of the operators' definitions. The outputs of this network would say little: ONNX
// Runtime has 0.69 to 0.85 of them within a step of its own without optimisations.
using QuantisedLayers = OfNetwork;
TEST_P(QuantisedLayers, AreTheDefinitionsUpToRounding) {
  const Finished check =
      RunProgram(folder_, python_,
                 {Script("check_quantised_layers.py"), Quantise("mobilenetv2", GetParam()), "--hone", HONE_BIN "/hone"},
                 kMostSeconds);
  EXPECT_EQ(check.code, 0) << check.output << check.errors;
}

std::string Name(const testing::TestParamInfo<const char*>& info) { return info.param; }
std::vector<const char*> Chosen(std::vector<const char*> usual, const std::vector<const char*>& more) {
  if (Thorough()) usual.insert(usual.end(), more.begin(), more.end());
  return usual;
}
INSTANTIATE_TEST_SUITE_P(Models, Untuned, testing::Values("mlp", "resnet18", "resnet50", "mobilenetv2", "bert_base"),
                         Name);
INSTANTIATE_TEST_SUITE_P(Models, Tuned,
                         testing::Values(SomeTasks{"mlp", ".", "12"},
                                         SomeTasks{"resnet18",
                                                   "conv2d_3x3_s2_14x14|conv2d_1x1_s2_28x28|"
                                                   "conv2d_3x3_s1_28x28x128_add_add|pool|dense",
                                                   "12"},
                                         SomeTasks{"mobilenetv2", "s2_14x14|dense_196x384|s1_7x7x960.*x160x|mean",
                                                   "12"}),
                         [](const auto& info) { return info.param.network; });
INSTANTIATE_TEST_SUITE_P(Models, Bfloat16, testing::ValuesIn(Chosen({"resnet18", "bert_base"}, {"resnet50"})), Name);
INSTANTIATE_TEST_SUITE_P(Models, WithoutBfloat16, testing::Values("mlp"), Name);
INSTANTIATE_TEST_SUITE_P(Models, OnOpenCl, testing::Values("mlp", "resnet18"), Name);
INSTANTIATE_TEST_SUITE_P(Models, TunedOnOpenCl, testing::Values("mlp"), Name);
INSTANTIATE_TEST_SUITE_P(Models, ExportedOnOpenCl, testing::Values("bert"), Name);
INSTANTIATE_TEST_SUITE_P(Models, OnFakeCuda, testing::Values("mlp"), Name);
INSTANTIATE_TEST_SUITE_P(Models, TunedOnFakeCuda, testing::Values("mlp"), Name);
INSTANTIATE_TEST_SUITE_P(Models, Quantised, testing::Values("uint8", "int8"), Name);
INSTANTIATE_TEST_SUITE_P(Models, QuantisedLayers, testing::Values("uint8", "int8"), Name);
INSTANTIATE_TEST_SUITE_P(Models, Exported,
                         testing::Values("resnet18", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0",
                                         "densenet121", "shufflenet_v2", "lraspp", "vit", "swin", "bert", "gpt2"),
                         Name);

}  // namespace
}  // namespace hone::system_test
