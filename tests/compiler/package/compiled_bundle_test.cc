// The whole way from a graph to a running bundle, with compiled kernels.
#include <cstring>

#include "compiler/driver/models/sandboxed_prepare.h"
#include "compiler/graph/plan/planner.h"
#include "compiler/package/bundle_writer.h"
#include "compiler/schedule/primitives/layout_constant.h"
#include "compiler/schedule/primitives/locate.h"
#include "compiler/schedule/schedule.h"
#include "compiler/support/random.h"
#include "deploy/runtime/bundle/archive.h"
#include "deploy/runtime/bundle/bundle.h"
#include "deploy/runtime/run/instance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/package/written_bundle.h"

namespace hone {
namespace {

NdArray Randoms(std::vector<int64_t> shape, uint64_t seed) {
  NdArray array(kFloat32, std::move(shape));
  Random random(seed);
  for (int64_t i = 0; i < array.NumElements(); ++i) array.As<float>()[i] = static_cast<float>(random.Uniform() - 0.5);
  return array;
}

// y = relu(x w1 + b) w2, where w1 and w2 are constants.
Graph Mlp() {
  Graph graph;
  graph.name = "mlp";
  const int x = graph.AddValue("x", {kFloat32, {3, 20}});
  graph.inputs = {x};
  const int w1 = graph.AddConstant("w1", Randoms({20, 37}, 1)), b = graph.AddConstant("b", Randoms({37}, 2));
  const int w2 = graph.AddConstant("w2", Randoms({37, 11}, 3));
  const int h = *graph.Add("dense", "h", {x, w1});
  const int hb = *graph.Add("add", "hb", {h, b});
  const int r = *graph.Add("relu", "r", {hb});
  graph.outputs = {*graph.Add("dense", "y", {r, w2})};
  graph.output_names = {"y"};
  return graph;
}

// The kernels of a plan, with every constant matrix stored in panels of eight columns.
absl::StatusOr<std::vector<PackagedKernel>> Compile(const Plan& plan, const Target& target) {
  std::vector<PackagedKernel> kernels;
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    Schedule schedule(plan.tasks[i].func);
    const absl::StatusOr<BlockRef> block = GetBlock(schedule, "dense");
    if (block.ok()) {
      const absl::StatusOr<IndexMap> panels = ParseIndexMap("lambda k, n: (n // 8, k, n % 8)");
      if (!panels.ok()) return panels.status();
      const absl::Status done = LayoutConstant(schedule, *block, 1, *panels);
      if (!done.ok()) return done;
    }
    PackagedKernel kernel;
    kernel.program = schedule.Program();
    absl::StatusOr<CompiledKernel> compiled =
        CompileKernel(*kernel.program, target, {.symbol = "task" + std::to_string(i), .threads = 2});
    if (!compiled.ok()) return compiled.status();
    kernel.kernel = *std::move(compiled);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

std::string Member(const std::string& bundle, const std::string& name) {
  const auto members = ReadArchive(bundle);
  for (const ArchiveMember& member : *members) {
    if (member.name == name) return std::string(member.bytes);
  }
  return "";
}

TEST(CompiledBundle, ComputesWhatThePlanMeans) {
  const absl::StatusOr<Plan> plan = MakePlan(Mlp());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Target host = HostTarget();
  const absl::StatusOr<std::vector<PackagedKernel>> kernels = Compile(*plan, host);
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  const absl::StatusOr<std::string> bytes =
      Written(*plan, *kernels, {.target = host, .threads = 2, .pack_threads = 2, .start_packer = StartSandboxedPacker});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto bundle = Bundle::FromMemory(*bytes);
  ASSERT_TRUE(bundle.ok()) << bundle.error().message();
  auto instance = Instance::Create(*bundle, {});
  ASSERT_TRUE(instance.ok()) << instance.error().message();

  const NdArray x = Randoms({3, 20}, 9);
  const absl::StatusOr<std::vector<NdArray>> expected = InterpretPlan(*plan, {&x, 1});
  ASSERT_TRUE(expected.ok()) << expected.status();
  std::memcpy((*instance)->OwnInput(0), x.data.data(), x.data.size());
  ASSERT_TRUE((*instance)->Run().ok());
  const auto* y = reinterpret_cast<const float*>((*instance)->output(0));
  for (int64_t i = 0; i < 33; ++i) EXPECT_NEAR(y[i], (*expected)[0].As<float>()[i], 1e-5) << i;
}

TEST(CompiledBundle, ForAnotherMachineConstantsArePackedHere) {
  const absl::StatusOr<Plan> plan = MakePlan(Mlp());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const absl::StatusOr<Target> arm = ParseTarget("cpu:cortex-a76");
  ASSERT_TRUE(arm.ok()) << arm.status();
  absl::StatusOr<std::vector<PackagedKernel>> here = Compile(*plan, HostTarget()), there = Compile(*plan, *arm);
  ASSERT_TRUE(here.ok()) << here.status();
  ASSERT_TRUE(there.ok()) << there.status();
  const absl::StatusOr<std::string> native =
      Written(*plan, *here, {.target = HostTarget(), .start_packer = StartSandboxedPacker});
  const absl::StatusOr<std::string> foreign =
      Written(*plan, *there, {.target = *arm, .start_packer = StartSandboxedPacker});
  ASSERT_TRUE(native.ok()) << native.status();
  ASSERT_TRUE(foreign.ok()) << foreign.status();
  EXPECT_EQ(Member(*foreign, "params"), Member(*native, "params"));
  const RuntimeError refused = Bundle::FromMemory(*foreign).error();
  EXPECT_EQ(refused.code(), RuntimeCode::kUnsupported);
  EXPECT_THAT(refused.message(), testing::HasSubstr("AArch64"));

  for (PackagedKernel& kernel : *there) kernel.program.reset();
  const absl::Status without = Written(*plan, *there, {.target = *arm, .start_packer = StartSandboxedPacker}).status();
  EXPECT_EQ(without.code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace hone
