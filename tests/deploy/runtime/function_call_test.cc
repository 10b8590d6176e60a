// Bundles with steps that call functions of the program's.
#include "deploy/runtime/run/function_call.h"

#include <cstring>
#include <functional>
#include <thread>

#include "deploy/runtime/run/instance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/sample_bundle.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The sample, whose second step calls y, z = f(sum, w, a).
BundleGraph CallingGraph() {
  BundleGraph graph = SampleGraph();
  graph.kernels.pop_back();
  graph.copies.clear();
  graph.steps[1] = {
      .kernel = -1,
      .tensors = {2, 1, 0, 3, 4},
      .function = "env.f",
      .arguments = {{"int32", {16}}, {"uint8", {64}}, {"int32", {4, 4}}, {"int32", {16}}, {"bool", {2, 32}}},
      .outputs = 2};
  return graph;
}

std::string CallingArchive(const BundleGraph& graph = CallingGraph()) {
  SampleMembers members;
  members.graph = ToJson(graph);
  return members.Archive();
}

// What a call has seen; what it does besides, and gives back.
struct SeenCall {
  std::vector<std::string> types;
  std::thread::id thread;
  std::function<void()> also = nullptr;
  std::string error = {};
  int32_t result = 0;

  // y = sum + a, z untouched.
  static int32_t Call(void* context, const DLTensor* inputs, int32_t num_inputs, const DLTensor* outputs,
                      int32_t num_outputs, char* error) {
    auto& self = *static_cast<SeenCall*>(context);
    self.thread = std::this_thread::get_id();
    self.types.clear();
    for (int32_t i = 0; i < num_inputs + num_outputs; ++i) {
      const DLTensor& tensor = i < num_inputs ? inputs[i] : outputs[i - num_inputs];
      self.types.push_back(std::to_string(tensor.dtype.code) + ":" + std::to_string(tensor.dtype.bits) +
                           ShapeText({tensor.shape, static_cast<size_t>(tensor.ndim)}));
      EXPECT_EQ(tensor.device.device_type, kDLCPU);
      EXPECT_EQ(tensor.strides, nullptr);
      EXPECT_EQ(tensor.byte_offset, 0u);
    }
    if (self.also != nullptr) self.also();
    std::strcpy(error, self.error.c_str());
    const auto* sum = static_cast<const int32_t*>(inputs[0].data);
    const auto* a = static_cast<const int32_t*>(inputs[2].data);
    for (int i = 0; i < 16; ++i) static_cast<int32_t*>(outputs[0].data)[i] = sum[i] + a[i];
    return self.result;
  }
  ProgramFunctions functions() { return {{"env.f", {&Call, this}}, {"env.more", {&Call, nullptr}}}; }
};

std::unique_ptr<Instance> CallingInstance(Instance::Options options) {
  auto bundle = Bundle::FromMemory(CallingArchive());
  EXPECT_TRUE(bundle.ok()) << bundle.error().message();
  auto instance = Instance::Create(*bundle, options);
  EXPECT_TRUE(instance.ok()) << instance.error().message();
  auto* a = reinterpret_cast<int32_t*>((*instance)->OwnInput(0));
  for (int i = 0; i < 16; ++i) a[i] = i;
  return *std::move(instance);
}

void ExpectSampleOutput(const int32_t* y) {
  for (int i = 0; i < 16; ++i) EXPECT_EQ(y[i], 102 * i);
}

TEST(FunctionCall, SeesItsTensorsWhereverTheyAreBound) {
  SeenCall seen;
  const std::unique_ptr<Instance> instance = CallingInstance({.threads = 1, .functions = seen.functions()});
  ASSERT_TRUE(instance->Run().ok());
  ExpectSampleOutput(reinterpret_cast<const int32_t*>(instance->output(0)));
  EXPECT_THAT(seen.types, ElementsAre("0:32(16)", "1:8(64)", "0:32(4, 4)", "0:32(16)", "6:8(2, 32)"));
  EXPECT_EQ(seen.thread, std::this_thread::get_id());

  alignas(64) int32_t y[16] = {};
  instance->BindOutput(0, reinterpret_cast<char*>(y));
  instance->set_profiling(true);
  ASSERT_TRUE(instance->StartRun(nullptr).ok());
  ASSERT_TRUE(instance->Wait().ok());
  ExpectSampleOutput(y);
  EXPECT_NE(seen.thread, std::this_thread::get_id()) << "of a run that nobody waits for";
  EXPECT_GT(instance->step_us(1), 0);
}

TEST(FunctionCall, FailsTheRunWithItsName) {
  SeenCall seen;
  const std::unique_ptr<Instance> instance = CallingInstance({.threads = 1, .functions = seen.functions()});
  seen.result = 7;
  EXPECT_EQ(instance->Run().message(), "step 1, function `env.f`, returned 7");
  seen.error = "no room";
  const RuntimeError error = instance->Run();
  EXPECT_EQ(error.code(), RuntimeCode::kKernelFailed);
  EXPECT_EQ(error.message(), "step 1, function `env.f`: no room");
}

TEST(FunctionCall, AnInstanceNeedsEveryOne) {
  BundleGraph graph = CallingGraph();
  graph.steps.push_back(graph.steps[1]);
  graph.steps[2].function = "env.g";
  const auto bundle = Bundle::FromMemory(CallingArchive(graph));
  ASSERT_TRUE(bundle.ok()) << bundle.error().message();
  SeenCall seen;
  EXPECT_THAT(Instance::Create(*bundle, {.functions = seen.functions()}).error().message(),
              HasSubstr("instance: `env.g`;"));
  const RuntimeError error = Instance::Create(*bundle, {}).error();
  EXPECT_EQ(error.code(), RuntimeCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("the program has to give the instance: `env.f`, `env.g`; name them in "
                                         "HoneInstanceOptions::functions"));
}

TEST(FunctionCall, MayRunAnotherInstanceOnTheSameThreads) {
  auto pool = KernelThreads::OfPool({.threads = 2}, KernelThreads::Users::kMany);
  ASSERT_TRUE(pool.ok());
  SeenCall seen, inner_seen;
  const std::unique_ptr<Instance> inner = CallingInstance({.pool = *pool, .functions = inner_seen.functions()});
  seen.also = [&] { EXPECT_TRUE(inner->Run().ok()); };
  const std::unique_ptr<Instance> instance = CallingInstance({.pool = *pool, .functions = seen.functions()});
  ASSERT_TRUE(instance->Run().ok());
  ExpectSampleOutput(reinterpret_cast<const int32_t*>(instance->output(0)));
  ExpectSampleOutput(reinterpret_cast<const int32_t*>(inner->output(0)));
}

TEST(FunctionCall, IsGivenThroughTheCInterface) {
  const std::string bytes = CallingArchive();
  HoneModule* module = nullptr;
  ASSERT_EQ(hone_module_load_memory(bytes.data(), bytes.size(), &module), HONE_OK) << hone_last_error();
  struct LaterFunction {  // as a later release may have it
    HoneFunction known;
    int64_t later = 0;
  };
  SeenCall seen;
  LaterFunction functions[2] = {{{sizeof(LaterFunction), "env.more", SeenCall::Call, nullptr}},
                                {{sizeof(LaterFunction), "env.f", SeenCall::Call, &seen}}};
  HoneInstanceOptions options{};
  options.struct_size = sizeof(options);
  options.num_functions = 2;
  HoneInstance* instance = nullptr;
  const auto expect_refused = [&](const char* says) {
    EXPECT_EQ(hone_instance_create(module, &options, &instance), HONE_INVALID_ARGUMENT);
    EXPECT_THAT(hone_last_error(), HasSubstr(says));
  };
  expect_refused("functions is NULL");
  options.functions = &functions[0].known;
  functions[0].known.name = "env.f";
  expect_refused("the function `env.f` is given twice");
  functions[0].known.name = nullptr;
  expect_refused("it needs both name and call");
  functions[0].known = {sizeof(LaterFunction), "env.more", nullptr, nullptr};
  expect_refused("it needs both name and call");
  functions[0].known.struct_size = 8;
  expect_refused("set it to sizeof(HoneFunction)");
  functions[0].known = {sizeof(LaterFunction), "env.more", SeenCall::Call, nullptr};
  functions[1].later = 1;
  expect_refused("HoneFunction: it sets options of a later release");
  functions[1].later = 0;
  ASSERT_EQ(hone_instance_create(module, &options, &instance), HONE_OK) << hone_last_error();

  int32_t a[16];
  for (int i = 0; i < 16; ++i) a[i] = i;
  int64_t shape[] = {4, 4};
  const DLTensor tensor{a, {kDLCPU, 0}, 2, {kDLInt, 32, 1}, shape, nullptr, 0};
  ASSERT_EQ(hone_instance_set_input(instance, "a", &tensor), HONE_OK) << hone_last_error();
  hone_instance_set_profiling(instance, 1);
  ASSERT_EQ(hone_instance_run(instance), HONE_OK) << hone_last_error();
  HoneStepProfile profile{};
  profile.struct_size = sizeof(profile);
  ASSERT_EQ(hone_instance_step_profile(instance, 1, &profile), HONE_OK);
  EXPECT_STREQ(profile.name, "env.f");
  EXPECT_STREQ(profile.symbol, "");
  EXPECT_STREQ(profile.record, "");
  EXPECT_GT(profile.us, 0);
  hone_instance_free(instance);
  hone_module_free(module);
}

TEST(FunctionCall, SurvivesJsonInAVersionOfItsOwn) {
  const std::string json = ToJson(CallingGraph());
  EXPECT_THAT(json, HasSubstr("\"version\":4")) << "older runtimes have to refuse it";
  const auto graph = ParseGraph(json, 64, 2);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(ToJson(*graph), json);
}

struct HostileCallCase {
  const char* name;
  void (*damage)(BundleGraph&);
  const char* error;
};
class HostileCall : public ::testing::TestWithParam<HostileCallCase> {};
TEST_P(HostileCall, IsRefusedWithTheReason) {
  BundleGraph graph = CallingGraph();
  GetParam().damage(graph);
  const auto read = ParseGraph(ToJson(graph), 64, 2);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), RuntimeCode::kCorrupt);
  EXPECT_THAT(read.error().message(), HasSubstr(GetParam().error));
}
constexpr HostileCallCase kHostileCalls[] = {
    {"NoName", [](BundleGraph& g) { g.steps[1].function = ""; }, "steps[1]: function has no name"},
    {"NoSuchTensor", [](BundleGraph& g) { g.steps[1].tensors[0] = 5; }, "steps[1]: tensors is 5"},
    {"NoOutputs", [](BundleGraph& g) { g.steps[1].outputs = 0; }, "steps[1]: outputs is 0"},
    {"ManyOutputs", [](BundleGraph& g) { g.steps[1].outputs = 6; }, "steps[1]: outputs is 6"},
    {"FewArguments", [](BundleGraph& g) { g.steps[1].arguments.pop_back(); }, "not as many as tensors"},
    {"OtherShape", [](BundleGraph& g) { g.steps[1].arguments[1].shape = {65}; }, "tensor 1 has another size"},
    {"UnknownType", [](BundleGraph& g) { g.steps[1].arguments[0].dtype = "int31"; }, "tensor 0 has another size"},
    {"WritesAConstant", [](BundleGraph& g) { g.steps[1].outputs = 4; }, "tensor 1 is a constant"},
    {"OnADevice",
     [](BundleGraph& g) {
       g.device = "opencl";
       g.target = "opencl:generic";
       for (BundleTensor& tensor : g.tensors) tensor.offset = 0;
       g.kernels.clear();
       g.steps.erase(g.steps.begin());
     },
     "bundles for devices"},
    {"OfSymbolicSizes",
     [](BundleGraph& g) {
       g.sizes = {{"n", 2, 4}};
       g.inputs[0].extents = {{{{1, {0}}}}, {{{4, {}}}}};
     },
     "with symbolic sizes"},
};
INSTANTIATE_TEST_SUITE_P(Cases, HostileCall, ::testing::ValuesIn(kHostileCalls),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone
