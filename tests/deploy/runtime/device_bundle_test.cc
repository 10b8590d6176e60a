// A bundle for a device, made by hand: y = 2 * (a + w), the sum in the kernel's scratch, and z a copy of the input.
// What it computes is skipped, which is said, where there is no OpenCL device; what is refused is refused everywhere.
#include <cstring>
#include <functional>

#include "deploy/runtime/instance.h"
#include "deploy/runtime/opencl_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/archive_of.h"
#include "tests/deploy/runtime/machine_code.h"
#include "tests/deploy/runtime/pocl_cache.h"

namespace hone {
namespace {

using testing::HasSubstr;

constexpr char kSource[] = R"(
__kernel void add(__global const int* a, __global const int* w, __global int* sum) {
  sum[get_global_id(0)] = a[get_global_id(0)] + w[get_global_id(0)];
}
__kernel void twice(__global const int* sum, __global int* y) { y[get_global_id(0)] = 2 * sum[get_global_id(0)]; }
)";

BundleGraph DeviceGraph() {
  BundleGraph graph;
  graph.model = "sample";
  graph.target = "opencl:generic";
  graph.device = "opencl";
  graph.arena_bytes = 3 * kDeviceAlignment;
  graph.tensors = {{"a", BundleTensor::kArena, 0, 64},
                   {"w", BundleTensor::kParams, 0, 64},
                   {"y", BundleTensor::kArena, kDeviceAlignment, 64},
                   {"z", BundleTensor::kArena, 2 * kDeviceAlignment, 64}};
  graph.inputs = {{"a", "int32", {16}, 0}};
  graph.outputs = {{"y", "int32", {16}, 2}, {"z", "int32", {16}, 3}};
  BundleKernel kernel{.name = "add_twice", .symbol = "add_twice", .tensor_bytes = {64, 64, 64}};
  kernel.scratch_bytes = 2 * kDeviceAlignment;
  kernel.scratch = {{kDeviceAlignment, 64}};
  kernel.launches = {{"add", {4, 1, 1}, {4, 1, 1}, {0, 1, 3}}, {"twice", {2, 1, 1}, {8, 1, 1}, {3, 2}}};
  graph.kernels = {kernel};
  graph.steps = {{0, {0, 1, 2}}};
  graph.copies = {{0, 3}};
  return graph;
}

std::string ArchiveWith(const std::string& graph, const std::string& source = kSource) {
  std::string params;
  for (int i = 0; i < 16; ++i) params += Int32(100 * i);
  const std::vector<ArchiveMember> members = {
      {"manifest.json", "{}"}, {"graph.json", graph}, {"source", source}, {"params", params}};
  return ArchiveOf(members);
}

class DeviceBundle : public testing::Test {
 protected:
  void SetUp() override {
    const auto device = OpenClDevice::Open();
    if (!device.ok()) GTEST_SKIP() << "no device: " << device.error().message();
  }
  static RuntimeResult<std::unique_ptr<Instance>> Create(const std::string& archive) {
    const auto bundle = Bundle::FromMemory(archive);
    EXPECT_TRUE(bundle.ok()) << bundle.error().message();
    return Instance::Create(*bundle, {});
  }
};

TEST_F(DeviceBundle, RunsItsLaunches) {
  auto instance = Create(ArchiveWith(ToJson(DeviceGraph())));
  ASSERT_TRUE(instance.ok()) << instance.error().message();
  EXPECT_THAT((*instance)->Run().message(), HasSubstr("input `a` has not been set"));
  (*instance)->set_profiling(true);
  for (int run = 0; run < 2; ++run) {
    int values[16], bound[16];
    for (int i = 0; i < 16; ++i) values[i] = i + run;
    std::memcpy((*instance)->OwnInput(0), values, sizeof(values));
    if (run == 1) (*instance)->BindOutput(0, reinterpret_cast<char*>(bound));
    const RuntimeError error = (*instance)->Run();
    ASSERT_TRUE(error.ok()) << error.message();
    const auto* y = reinterpret_cast<const int*>((*instance)->output(0));
    const auto* z = reinterpret_cast<const int*>((*instance)->output(1));
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(y[i], 2 * (i + run + 100 * i));
      EXPECT_EQ(z[i], i + run);
    }
    EXPECT_GT((*instance)->step_us(0), 0);
  }
}

TEST_F(DeviceBundle, SaysWhatTheDeviceRefuses) {
  const auto refused = Create(ArchiveWith(ToJson(DeviceGraph()), "__kernel void add(no_such_type a) {}"));
  EXPECT_EQ(refused.error().code(), RuntimeCode::kUnsupported);
  EXPECT_THAT(refused.error().message(), HasSubstr("no_such_type"));
  BundleGraph graph = DeviceGraph();
  graph.kernels[0].launches[1].kernel = "thrice";
  auto missing = Create(ArchiveWith(ToJson(graph)));
  ASSERT_TRUE(missing.ok()) << missing.error().message();
  (*missing)->OwnInput(0);
  EXPECT_EQ((*missing)->Run().message(), "step 0, kernel `add_twice`: the program has no kernel thrice");
}

struct DamagedCase {
  const char* name;
  std::function<void(BundleGraph&)> damage;
  const char* error;
};
class DamagedDeviceBundle : public testing::TestWithParam<DamagedCase> {};
TEST_P(DamagedDeviceBundle, IsRefusedWithTheReason) {
  BundleGraph graph = DeviceGraph();
  GetParam().damage(graph);
  const auto bundle = Bundle::FromMemory(ArchiveWith(ToJson(graph)));
  ASSERT_FALSE(bundle.ok());
  EXPECT_THAT(bundle.error().message(), HasSubstr(GetParam().error));
}
const DamagedCase kDamaged[] = {
    {"OtherDevice", [](BundleGraph& g) { g.device = "abacus"; }, "device is `abacus`"},
    {"NoDevice",
     [](BundleGraph& g) {
       g.device = "";
       g.kernels[0].launches.clear();
     },
     "sources of kernels, but names no device"},
    {"Unaligned", [](BundleGraph& g) { g.tensors[0].offset = 64; }, "tensors[0]: offset is no multiple of 1024"},
    {"UnalignedScratch", [](BundleGraph& g) { g.kernels[0].scratch[0].offset = 64; }, "offset is no multiple of 1024"},
    {"OutsideScratch", [](BundleGraph& g) { g.kernels[0].scratch[0].bytes = 4096; }, "kernels[0]: bytes is 4096"},
    {"NoSuchArgument", [](BundleGraph& g) { g.kernels[0].launches[0].arguments[2] = 4; }, "arguments is 4"},
    {"EmptyGrid", [](BundleGraph& g) { g.kernels[0].launches[0].grid[1] = 0; }, "grid is 0"},
};
INSTANTIATE_TEST_SUITE_P(Cases, DamagedDeviceBundle, testing::ValuesIn(kDamaged),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hone
