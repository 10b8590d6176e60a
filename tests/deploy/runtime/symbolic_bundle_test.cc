// Bundles whose inputs choose sizes: shapes, what is refused, and which kernel runs.
#include <cstring>
#include <functional>

#include "deploy/runtime/run/instance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/sample_bundle.h"

namespace hone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

BundleExtent Times(int64_t factor, std::vector<int> sizes) { return {{{factor, std::move(sizes)}}}; }

// The sample with n rows, 2 to 4, and a second input b of n that no kernel reads.
BundleGraph SymbolicGraph() {
  BundleGraph graph = SampleGraph();
  graph.sizes = {{"n", 2, 4}};
  graph.arena_bytes = 320;
  graph.tensors.push_back({"b", BundleTensor::kArena, 256, 32});
  graph.inputs[0].extents = {Times(1, {0}), Times(4, {})};
  graph.inputs.push_back({"b", "int64", {4}, 5, {Times(1, {0})}});
  graph.outputs[0].extents = {Times(4, {0})};
  graph.outputs[1] = {"z", "int32", {4, 4}, 4, {Times(1, {0}), Times(4, {})}};
  return graph;
}

std::unique_ptr<Instance> InstanceOf(const BundleGraph& graph, const std::string& image1 = SampleMembers().image1) {
  SampleMembers members;
  members.graph = ToJson(graph);
  members.image1 = image1;
  auto bundle = Bundle::FromMemory(members.Archive());
  EXPECT_TRUE(bundle.ok()) << bundle.error().message();
  auto instance = Instance::Create(*bundle, {.threads = 1});
  EXPECT_TRUE(instance.ok()) << instance.error().message();
  return *std::move(instance);
}

void SetInputs(Instance& instance, int64_t a_rows, int64_t b_rows) {
  const int64_t a_shape[] = {a_rows, 4}, b_shape[] = {b_rows};
  auto* a = reinterpret_cast<int32_t*>(instance.OwnInput(0, a_shape));
  for (int i = 0; i < 4 * a_rows; ++i) a[i] = i;
  instance.OwnInput(1, b_shape);
}

TEST(SymbolicBundle, OutputsHaveTheShapeThatFollowsFromTheInputs) {
  const std::unique_ptr<Instance> instance = InstanceOf(SymbolicGraph());
  for (const int64_t n : {4, 2, 3}) {
    SetInputs(*instance, n, n);
    ASSERT_TRUE(instance->Run().ok());
    EXPECT_THAT(instance->output_shape(0), ElementsAre(4 * n));
    EXPECT_THAT(instance->output_shape(1), ElementsAre(n, 4));
    int32_t y[16];
    std::memcpy(y, instance->output(0), sizeof(y));
    for (int i = 0; i < 4 * n; ++i) EXPECT_EQ(y[i], 102 * i);
  }
}

TEST(SymbolicBundle, WhatIsOutOfRangeOrDisagreesIsNamed) {
  const std::unique_ptr<Instance> instance = InstanceOf(SymbolicGraph());
  const int64_t least[] = {2, 4}, few[] = {1, 4}, many[] = {5, 4}, wide[] = {3, 5}, flat[] = {12};
  EXPECT_EQ(instance->InputMismatch(0, least), "");
  for (const std::span<const int64_t> shape : {std::span<const int64_t>(few), {many}, {wide}, {flat}}) {
    EXPECT_THAT(instance->InputMismatch(0, shape),
                HasSubstr("the model has shape (n, 4) with n from 2 to 4, the tensor"));
  }
  EXPECT_THAT(instance->Run().message(), HasSubstr("input `a` has not been set"));
  SetInputs(*instance, 3, 4);
  const RuntimeError error = instance->Run();
  EXPECT_EQ(error.code(), RuntimeCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("input `b` has shape (4) where the model has (n): the other inputs make "
                                         "dimension 0 3"));
}

TEST(SymbolicBundle, MemoryBoundForAnotherSizeIsNotWritten) {
  const std::unique_ptr<Instance> instance = InstanceOf(SymbolicGraph());
  alignas(64) int32_t y[16], z[16] = {};
  SetInputs(*instance, 3, 3);
  ASSERT_TRUE(instance->Resolve().ok());
  instance->BindOutput(0, reinterpret_cast<char*>(y));
  instance->BindOutput(1, reinterpret_cast<char*>(z));
  ASSERT_TRUE(instance->Run().ok());
  EXPECT_EQ(z[11], 11);
  EXPECT_EQ(z[12], 0) << "of a copy only the rows of this run are written";
  SetInputs(*instance, 4, 4);
  EXPECT_THAT(instance->Run().message(), HasSubstr("output `y` is bound to memory of shape (12), the inputs give it "
                                                   "shape (16)"));
}

TEST(SymbolicBundle, TheFirstCaseThatFitsRuns) {
  BundleGraph graph = SymbolicGraph();
  graph.kernels.push_back({"fails", 1, "k9", {64, 64, 64}, 0, 0, "", 0});
  graph.kernels.back().sizes = {0};
  graph.steps[1].cases = {{{2}, 2, {2, 0, 3}}, {{3}, 1, {2, 0, 3}}, {{3}, 2, {2, 0, 3}}};
  const std::unique_ptr<Instance> instance =
      InstanceOf(graph, ImageOf({{"k0", AddKernel(16)}, {"k9", ReturnKernel(9)}}));
  SetInputs(*instance, 2, 2);
  EXPECT_THAT(instance->Run().message(), HasSubstr("step 1, kernel `fails`, returned 9"));
  EXPECT_EQ(instance->step_kernel(1), 2);
  for (const int64_t n : {3, 4}) {
    SetInputs(*instance, n, n);
    EXPECT_TRUE(instance->Run().ok());
    EXPECT_EQ(instance->step_kernel(1), 1);
  }
}

TEST(SymbolicBundle, SurvivesJson) {
  BundleGraph graph = SymbolicGraph();
  graph.kernels[0].sizes = {0};
  graph.steps[0].cases = {{{3}, 1, {0, 1, 2}}};
  graph.outputs[0].extents = {{{{1, {0, 0}}, {2, {}}, {-2, {}}}}};
  const std::string json = ToJson(graph);
  const auto read = ParseGraph(json, 64, 2);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(ToJson(*read), json);
}

struct HostileCase {
  const char* name;
  std::function<void(BundleGraph&)> damage;
  const char* error;
};
class HostileSymbolicBundle : public testing::TestWithParam<HostileCase> {};
TEST_P(HostileSymbolicBundle, IsRefusedWithTheReason) {
  BundleGraph graph = SymbolicGraph();
  GetParam().damage(graph);
  const auto read = ParseGraph(ToJson(graph), 64, 2);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message(), HasSubstr(GetParam().error));
}
const HostileCase kHostile[] = {
    {"EmptyRange", [](BundleGraph& g) { g.sizes[0].max = 1; }, "sizes[0]: max is 1, outside"},
    {"NegativeSize", [](BundleGraph& g) { g.sizes[0].min = -1; }, "sizes[0]: min is -1, outside"},
    {"NoSuchSize", [](BundleGraph& g) { g.inputs[0].extents[0].terms[0].sizes = {1}; },
     "inputs[0]: a term of extents has a number out of range"},
    {"OtherShape", [](BundleGraph& g) { g.outputs[0].extents[0].terms[0].factor = 5; },
     "outputs[0]: extents are not its shape at the greatest sizes"},
    {"FewExtents", [](BundleGraph& g) { g.inputs[0].extents.pop_back(); }, "inputs[0]: extents are not its shape"},
    {"Overflow",
     [](BundleGraph& g) {
       g.sizes[0].max = (int64_t{1} << 31) - 1;
       g.inputs[0].extents[0].terms[0].sizes = {0, 0, 0, 0};
     },
     "inputs[0]: extents are not its shape"},
    {"SizeOfNoInput",
     [](BundleGraph& g) {
       g.sizes.push_back({"m", 1, 9});
     },
     "no input gives the size `m`"},
    {"KernelSize", [](BundleGraph& g) { g.kernels[1].sizes = {1}; }, "kernels[1]: sizes is 1, outside"},
    {"CaseSizes",
     [](BundleGraph& g) {
       g.steps[0].cases = {{{1, 1}, 0, {0, 1, 2}}};
     },
     "steps[0]: most has not one number for each size"},
    {"CaseTensors",
     [](BundleGraph& g) {
       g.steps[0].cases = {{{1}, 0, {0, 1}}};
     },
     "steps[0]: 2 tensors, its kernel takes 3"},
    {"Device", [](BundleGraph& g) { g.device = "opencl"; }, "bundles for devices have no symbolic sizes"},
};
INSTANTIATE_TEST_SUITE_P(Cases, HostileSymbolicBundle, testing::ValuesIn(kHostile),
                         [](const auto& info) { return info.param.name; });

// An extent that shrinks as its size grows can be larger than its memory: found when the sizes are known.
TEST(SymbolicBundle, OutputsLargerThanTheirMemoryAreRefused) {
  BundleGraph graph = SymbolicGraph();
  graph.outputs[0].extents = {{{{-4, {0}}, {32, {}}}}};
  const std::unique_ptr<Instance> instance = InstanceOf(graph);
  SetInputs(*instance, 3, 3);
  EXPECT_EQ(instance->Run().code(), RuntimeCode::kCorrupt);
}

}  // namespace
}  // namespace hone
