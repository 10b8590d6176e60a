// A bundle for a device, made by hand: y = 2 * (a + w), the sum in the kernel's scratch, and z a copy of the input; for
// an OpenCL device, and for one of NVIDIA's driver, which is that of the tests' own. What it computes is skipped, which
// is said, where there is no OpenCL device; what is refused is refused everywhere.
#include <cstring>
#include <functional>

#include "deploy/runtime/devices/device_drivers.h"
#include "deploy/runtime/run/instance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/archive_of.h"
#include "tests/deploy/runtime/fake_cuda.h"
#include "tests/deploy/runtime/machine_code.h"
#include "tests/deploy/runtime/pocl_cache.h"

namespace hone {
namespace {

using testing::HasSubstr;

// A language of devices, its target, and the kernels as its driver takes them.
struct Kind {
  const char *name, *device, *target;
  std::string source;
  const char* refused;  // what the driver refuses
  const char* why;      // and how it says so
};

constexpr char kOpenClSource[] = R"(
__kernel void add(__global const int* a, __global const int* w, __global int* sum) {
  sum[get_global_id(0)] = a[get_global_id(0)] + w[get_global_id(0)];
}
__kernel void twice(__global const int* sum, __global int* y) { y[get_global_id(0)] = 2 * sum[get_global_id(0)]; }
)";

constexpr char kCudaSource[] = R"(
extern "C" __global__ void __launch_bounds__(4)
add(const int* __restrict__ a, const int* __restrict__ w, int* __restrict__ sum) {
  const int i = blockIdx.x * 4 + threadIdx.x;
  sum[i] = a[i] + w[i];
}
extern "C" __global__ void __launch_bounds__(8)
twice(const int* __restrict__ sum, int* __restrict__ y) {
  const int i = blockIdx.x * 8 + threadIdx.x;
  y[i] = 2 * sum[i];
}
)";

const Kind kKinds[] = {
    {"OpenCl", "opencl", "opencl:generic", kOpenClSource, "__kernel void add(no_such_type a) {}", "no_such_type"},
    {"Cuda", "cuda", "cuda:sm_90a", FakeCuda::Image(kCudaSource, "sm_90a"), "no image", "CUDA_ERROR_INVALID_IMAGE"},
};
const Kind& kAny = kKinds[0];

BundleGraph DeviceGraph(const Kind& kind = kAny) {
  BundleGraph graph;
  graph.model = "sample";
  graph.target = kind.target;
  graph.device = kind.device;
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

std::string ArchiveWith(const std::string& graph, const std::string& source = kOpenClSource) {
  std::string params;
  for (int i = 0; i < 16; ++i) params += Int32(100 * i);
  const std::vector<ArchiveMember> members = {
      {"manifest.json", "{}"}, {"graph.json", graph}, {"source", source}, {"params", params}};
  return ArchiveOf(members);
}

class DeviceBundle : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    FakeCuda::Reset();
    const auto devices = FindDeviceDriver(GetParam().device)->list();
    if (!devices.ok()) GTEST_SKIP() << "no device: " << devices.error().message();
  }
  static std::string Archive(const BundleGraph& graph) { return ArchiveWith(ToJson(graph), GetParam().source); }
  static RuntimeResult<std::unique_ptr<Instance>> Create(const std::string& archive) {
    const auto bundle = Bundle::FromMemory(archive);
    EXPECT_TRUE(bundle.ok()) << bundle.error().message();
    return Instance::Create(*bundle, {});
  }
};

TEST_P(DeviceBundle, RunsOnAThreadOfItsOwn) {
  auto instance = Create(Archive(DeviceGraph(GetParam())));
  ASSERT_TRUE(instance.ok()) << instance.error().message();
  for (int run = 0; run < 4; ++run) {  // the first steps are handed over otherwise than later ones
    int values[16];
    for (int i = 0; i < 16; ++i) values[i] = i + run;
    std::memcpy((*instance)->OwnInput(0), values, sizeof(values));
    ASSERT_TRUE((*instance)->StartRun(nullptr).ok());
    const RuntimeError error = (*instance)->Wait();
    ASSERT_TRUE(error.ok()) << error.message();
    const auto* y = reinterpret_cast<const int*>((*instance)->output(0));
    for (int i = 0; i < 16; ++i) EXPECT_EQ(y[i], 2 * (i + run + 100 * i));
  }
}

TEST_P(DeviceBundle, LeavesASharedPoolAlone) {
  const auto pool = KernelThreads::OfPool({.threads = 3}, KernelThreads::Users::kMany);
  ASSERT_TRUE(pool.ok());
  const auto bundle = Bundle::FromMemory(Archive(DeviceGraph(GetParam())));
  ASSERT_TRUE(bundle.ok()) << bundle.error().message();
  auto instance = Instance::Create(*bundle, {.pool = *pool});
  ASSERT_TRUE(instance.ok()) << instance.error().message();
  EXPECT_EQ((*instance)->threads(), 1);
  std::memset((*instance)->OwnInput(0), 0, 64);
  const KernelThreads::Turn turn(**pool);  // a run that waited for its turn would wait for ever
  EXPECT_TRUE((*instance)->Run().ok());
}

TEST_P(DeviceBundle, RunsItsLaunches) {
  auto instance = Create(Archive(DeviceGraph(GetParam())));
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

TEST_P(DeviceBundle, SaysWhatTheDeviceRefuses) {
  const auto refused = Create(ArchiveWith(ToJson(DeviceGraph(GetParam())), GetParam().refused));
  EXPECT_EQ(refused.error().code(), RuntimeCode::kUnsupported);
  EXPECT_THAT(refused.error().message(), HasSubstr(GetParam().why));
  BundleGraph graph = DeviceGraph(GetParam());
  graph.kernels[0].launches[1].kernel = "thrice";
  auto missing = Create(Archive(graph));
  ASSERT_TRUE(missing.ok()) << missing.error().message();
  (*missing)->OwnInput(0);
  EXPECT_EQ((*missing)->Run().message(), "step 0, kernel `add_twice`: the program has no kernel thrice");
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceBundle, testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

// The driver's calls of a bundle's life: device, kernels, memory and constants; for each run inputs, launches, copies
// and outputs; at the end everything is given back.
class CudaBundle : public testing::Test {
 protected:
  void SetUp() override { FakeCuda::Reset(); }
  static std::unique_ptr<Instance> Created(const BundleGraph& graph) {
    const auto bundle = Bundle::FromMemory(ArchiveWith(ToJson(graph), kKinds[1].source));
    EXPECT_TRUE(bundle.ok()) << bundle.error().message();
    auto instance = Instance::Create(*bundle, {});
    EXPECT_TRUE(instance.ok()) << instance.error().message();
    (*instance)->OwnInput(0);
    return *std::move(instance);
  }
};

TEST_F(CudaBundle, CallsTheDriverInThisOrder) {
  std::unique_ptr<Instance> instance = Created(DeviceGraph(kKinds[1]));
  EXPECT_EQ(FakeCuda::Calls(),
            "cuDeviceGetCount cuDeviceGet cuDeviceGetCount cuDeviceGet cuDevicePrimaryCtxRetain cuStreamCreate "
            "cuModuleLoadData cuMemAlloc_v2 cuMemAlloc_v2 cuMemAlloc_v2 "
            "cuMemcpyHtoDAsync_v2 cuStreamSynchronize");
  constexpr char kFound[] =  // by the first run
      "cuModuleGetFunction cuLaunchKernel cuModuleGetFunction cuLaunchKernel cuMemcpyDtoDAsync_v2 ";
  constexpr char kKept[] =  // by the second one
      "cuStreamBeginCapture_v2 cuLaunchKernel cuLaunchKernel cuMemcpyDtoDAsync_v2 cuStreamEndCapture "
      "cuGraphInstantiateWithFlags cuGraphDestroy cuGraphLaunch ";
  for (const std::string steps : {kFound, kKept, "cuGraphLaunch ", "cuGraphLaunch "}) {
    const size_t before = FakeCuda::Calls().size();
    ASSERT_TRUE(instance->Run().ok());
    EXPECT_EQ(FakeCuda::Calls().substr(before),
              " cuMemcpyHtoDAsync_v2 cuStreamSynchronize " + steps +
                  "cuStreamSynchronize cuMemcpyDtoHAsync_v2 cuStreamSynchronize cuMemcpyDtoHAsync_v2 "
                  "cuStreamSynchronize");
  }
  EXPECT_EQ(FakeCuda::Live(), 7);  // the context, a stream, a module, three buffers, what is kept
  instance.reset();
  EXPECT_EQ(FakeCuda::Live(), 0);
}

TEST_F(CudaBundle, ALostDeviceIsSaidWithWhereItWas) {
  FakeCuda::Reset("fail=cuLaunchKernel:4:719");
  const std::unique_ptr<Instance> instance = Created(DeviceGraph(kKinds[1]));
  ASSERT_TRUE(instance->Run().ok());
  const RuntimeError lost = instance->Run();
  EXPECT_EQ(lost.code(), RuntimeCode::kDeviceLost);
  EXPECT_EQ(lost.message(),
            "step 0, kernel `add_twice`: twice: cuLaunchKernel returned CUDA_ERROR_LAUNCH_FAILED (unspecified launch "
            "failure): Fake GPU 0 takes no more work of this process, which has to be started again");
  EXPECT_EQ(instance->Run().code(), RuntimeCode::kDeviceLost);
}

TEST_F(CudaBundle, OfAnotherArchitectureIsRefused) {
  FakeCuda::Reset("capability=8.0");
  const auto bundle = Bundle::FromMemory(ArchiveWith(ToJson(DeviceGraph(kKinds[1])), kKinds[1].source));
  ASSERT_TRUE(bundle.ok()) << bundle.error().message();
  const auto refused = Instance::Create(*bundle, {});
  EXPECT_EQ(refused.error().code(), RuntimeCode::kUnsupported);
  EXPECT_EQ(refused.error().message(),
            "made for cuda:sm_90a: no CUDA device here runs code for sm_90a: there is 0, Fake GPU 0 (sm_80); compile "
            "for that one's architecture");
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
    {"TargetOfAnother", [](BundleGraph& g) { g.target = "cuda:sm_80"; }, "none of the device `opencl`"},
    {"EndlessShared", [](BundleGraph& g) { g.kernels[0].launches[0].shared_bytes = int64_t{1} << 40; },
     "shared is 1099"},
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
