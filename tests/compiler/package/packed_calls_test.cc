// From a graph that calls a function of the program's to a running bundle.
#include <cstdio>
#include <fstream>

#include "compiler/driver/bundles/bundle_session.h"
#include "compiler/driver/exit_code.h"
#include "compiler/graph/calls.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/package/bundle_writer.h"
#include "compiler/schedule/schedule.h"
#include "deploy/runtime/hone_runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/compiler/package/written_bundle.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

// y = relu(env.scale(relu(x), factor)) over float32[2, 3].
absl::StatusOr<Plan> PlanThatCalls() {
  Graph graph;
  graph.name = "calls";
  const int x = graph.AddValue("x", {kFloat32, {2, 3}});
  graph.inputs = {x};
  NdArray factor(kFloat32, {1});
  factor.Set(0, 3);
  const int relu = *graph.Add("relu", "r", {x});
  const int scaled = *graph.Add("call_packed", "s", {relu, graph.AddConstant("factor", std::move(factor))},
                                CallAttrs("env.scale", std::vector{graph.type(relu)}));
  graph.outputs = {*graph.Add("relu", "y", {scaled})};
  graph.output_names = {"y"};
  return MakePlan(std::move(graph));
}

absl::StatusOr<std::string> BundleThatCalls() {
  HONE_ASSIGN_OR_RETURN(const Plan plan, PlanThatCalls());
  std::vector<PackagedKernel> kernels;
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const Schedule schedule(plan.tasks[i].func);
    HONE_ASSIGN_OR_RETURN(kernels.emplace_back().kernel,
                          CompileKernel(schedule.Program(), HostTarget(), {.symbol = "task" + std::to_string(i)}));
  }
  return Written(plan, kernels, {.target = HostTarget(), .threads = 1});
}

// output = input * factor + what `context` points to; refuses a negative one.
int32_t ScaleAndAdd(void* context, const DLTensor* inputs, int32_t num_inputs, const DLTensor* outputs,
                    int32_t num_outputs, char* error) {
  EXPECT_EQ(num_inputs, 2);
  EXPECT_EQ(num_outputs, 1);
  EXPECT_EQ(outputs[0].ndim, 2);
  EXPECT_EQ(outputs[0].shape[1], 3);
  const float more = *static_cast<const float*>(context);
  if (more < 0) {
    std::snprintf(error, HONE_FUNCTION_ERROR_BYTES, "%g is negative", static_cast<double>(more));
    return 1;
  }
  const auto* x = static_cast<const float*>(inputs[0].data);
  const float factor = *static_cast<const float*>(inputs[1].data);
  for (int i = 0; i < 6; ++i) static_cast<float*>(outputs[0].data)[i] = x[i] * factor + more;
  return 0;
}

class PackedCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<std::string> bytes = BundleThatCalls();
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    bytes_ = *bytes;
    ASSERT_EQ(hone_module_load_memory(bytes_.data(), bytes_.size(), &module_), HONE_OK) << hone_last_error();
  }
  void TearDown() override { hone_module_free(module_); }

  HoneInstance* InstanceWith(float* more) {
    const HoneFunction function{sizeof(function), "env.scale", ScaleAndAdd, more};
    HoneInstanceOptions options{};
    options.struct_size = sizeof(options);
    options.functions = &function;
    options.num_functions = 1;
    HoneInstance* instance = nullptr;
    EXPECT_EQ(hone_instance_create(module_, &options, &instance), HONE_OK) << hone_last_error();
    float x[6] = {-1, 1, 2, 3, 4, 5};
    int64_t shape[] = {2, 3};
    DLTensor tensor{x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
    EXPECT_EQ(hone_instance_set_input(instance, "x", &tensor), HONE_OK) << hone_last_error();
    return instance;
  }
  static std::vector<float> OutputOf(HoneInstance* instance) {
    EXPECT_EQ(hone_instance_run(instance), HONE_OK) << hone_last_error();
    DLTensor view;
    EXPECT_EQ(hone_instance_view_output(instance, "y", &view), HONE_OK);
    const auto* y = static_cast<const float*>(view.data);
    return {y, y + 6};
  }

  std::string bytes_;
  HoneModule* module_ = nullptr;
};

TEST_F(PackedCalls, EachInstanceCallsItsOwnFunction) {
  float none = 0, ten = 10;
  HoneInstance* first = InstanceWith(&none);
  HoneInstance* second = InstanceWith(&ten);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(OutputOf(first), (std::vector<float>{0, 3, 6, 9, 12, 15}));
    EXPECT_EQ(OutputOf(second), (std::vector<float>{10, 13, 16, 19, 22, 25}));
  }
  hone_instance_free(first);
  hone_instance_free(second);
}

TEST_F(PackedCalls, WhatTheFunctionSaysIsTheErrorOfTheRun) {
  float more = -2;
  HoneInstance* instance = InstanceWith(&more);
  EXPECT_EQ(hone_instance_run(instance), HONE_KERNEL_FAILED);
  EXPECT_STREQ(hone_last_error(), "step 1, function `env.scale`: -2 is negative");
  more = 1;
  EXPECT_EQ(OutputOf(instance), (std::vector<float>{1, 4, 7, 10, 13, 16}));
  hone_instance_free(instance);
}

TEST_F(PackedCalls, AreListedInTheManifestAndRefusedByProgramsWithoutThem) {
  const nlohmann::json manifest = nlohmann::json::parse(hone_module_manifest(module_));
  EXPECT_EQ(manifest["functions"], nlohmann::json({"env.scale"}));

  const std::string path = ::testing::TempDir() + "/calls_" + std::to_string(getpid()) + ".hone";
  std::ofstream(path, std::ios::binary) << bytes_;
  const absl::Status refused = BundleSession::Load(path, 1).status();
  std::remove(path.c_str());
  EXPECT_EQ(ExitCodeOf(refused), static_cast<int>(ExitCode::kWrongMachine));
  EXPECT_THAT(refused.message(),
              HasSubstr("calls functions that only a program of yours has: env.scale; run it there"));
}

TEST(PackedCallsOnDevices, AreRefused) {
  const absl::StatusOr<Plan> plan = PlanThatCalls();
  ASSERT_TRUE(plan.ok()) << plan.status();
  const absl::StatusOr<GpuTarget> gpu = ParseGpuTarget("opencl:generic");
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const absl::Status refused = Written(*plan, {}, {.gpu = *gpu}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(),
              HasSubstr("the model calls \"env.scale\", a function of the program that runs it: only "
                        "bundles for CPUs"));
}

}  // namespace
}  // namespace hone
