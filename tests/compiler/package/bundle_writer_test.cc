#include "compiler/package/bundle_writer.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "compiler/driver/models/sandboxed_prepare.h"
#include "compiler/support/sha256.h"
#include "deploy/runtime/bundle/bundle.h"
#include "deploy/runtime/run/instance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/package/hand_object.h"
#include "tests/compiler/package/written_bundle.h"
#include "tests/deploy/runtime/machine_code.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

constexpr int kElements = 64;
const KernelTensor kTensor{"int32", {kElements}, 4 * kElements};

std::shared_ptr<const NdArray> Data(int factor) {
  auto array = std::make_shared<NdArray>(kInt32, std::vector<int64_t>{kElements});
  for (int i = 0; i < kElements; ++i) array->As<int32_t>()[i] = factor * i;
  return array;
}

// Plans by hand over int32[64].
struct PlanBuilder {
  PlanBuilder() {
    plan.model_name = "by hand";
    for (const char* name : {"add", "add_packed"}) {
      PlanTask task;
      task.name = name;
      task.flop = kElements;
      plan.tasks.push_back(task);
    }
  }
  int Tensor(const char* name, PlanTensor::Kind kind, int alias_of = -1, std::vector<int64_t> shape = {kElements}) {
    plan.tensors.push_back({name, kInt32, std::move(shape), kind, nullptr, "", alias_of});
    const int index = static_cast<int>(plan.tensors.size()) - 1;
    if (kind == PlanTensor::kInput) plan.inputs.push_back(index);
    if (kind == PlanTensor::kOutput) plan.outputs.push_back(index);
    return index;
  }
  int Constant(const char* name, int factor) {
    const int index = Tensor(name, PlanTensor::kConstant);
    plan.tensors[index].data = Data(factor);
    return index;
  }
  void Add(int a, int b, int out) { plan.steps.push_back({0, {a, b, out}}); }
  void AddPacked(int a, int constant, int out) { plan.steps.push_back({1, {a, constant, out}}); }
  Plan plan;
};

// out = a + b, and the same with b copied into a packed form beforehand.
std::vector<PackagedKernel> Kernels(const std::string& add = "k0", const std::string& packed = "k1",
                                    const std::string& features = "sse2") {
  std::vector<PackagedKernel> kernels(2);
  KernelSet& first = kernels[0].kernel.set;
  first.symbol = add;
  first.params = {kTensor, kTensor, kTensor};
  kernels[0].kernel.object = HandObject({{add, AddKernel(kElements)}}, features);
  kernels[0].provenance = {"record", "r-1", 12.5, ""};
  KernelSet& second = kernels[1].kernel.set;
  second.symbol = packed;
  second.params = {kTensor, kTensor, kTensor};
  second.prepared = {{1, packed + "_prepare0", kTensor, 0, 0}};
  second.scratch_bytes = 1000;
  kernels[1].kernel.object =
      HandObject({{packed, AddKernel(kElements)}, {packed + "_prepare0", CopyKernel(0, 1, kTensor.bytes)}});
  kernels[1].provenance = {"default", "", 0, "abc"};
  return kernels;
}

BundleOptions Options() {
  BundleOptions options;
  options.target.text = "cpu:test";
  options.threads = 2;
  options.start_packer = StartSandboxedPacker;
  return options;
}

std::shared_ptr<const Bundle> Made(const Plan& plan, std::span<const PackagedKernel> kernels) {
  const absl::StatusOr<std::string> bytes = Written(plan, kernels, Options());
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (!bytes.ok()) return nullptr;
  auto bundle = Bundle::FromMemory(*bytes);
  EXPECT_TRUE(bundle.ok()) << bundle.error().message();
  return bundle.ok() ? *bundle : nullptr;
}

// Sets input i to (i + 1) * (position), runs twice, gives the factors of the outputs: every output is some factor *
// position.
std::vector<int> Factors(const std::shared_ptr<const Bundle>& bundle) {
  auto instance = Instance::Create(bundle, {});
  EXPECT_TRUE(instance.ok()) << instance.error().message();
  const BundleGraph& graph = bundle->graph();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    auto* data = reinterpret_cast<int32_t*>((*instance)->OwnInput(static_cast<int>(i)));
    for (int p = 0; p < kElements; ++p) data[p] = static_cast<int>(i + 1) * p;
  }
  std::vector<int> factors;
  for (int run = 0; run < 2; ++run) {  // the second with what the first left in the arena
    const RuntimeError error = (*instance)->Run();
    EXPECT_TRUE(error.ok()) << error.message();
    factors.clear();
    for (size_t o = 0; o < graph.outputs.size(); ++o) {
      const auto* data = reinterpret_cast<const int32_t*>((*instance)->output(static_cast<int>(o)));
      factors.push_back(data[1]);
      for (int p = 0; p < kElements; ++p) EXPECT_EQ(data[p], data[1] * p);
    }
  }
  return factors;
}

TEST(Bundle, ChainReusesMemoryAndComputes) {
  PlanBuilder b;
  const int x = b.Tensor("x", PlanTensor::kInput), w = b.Constant("w", 100), v = b.Constant("v", 1000);
  int last = x;
  for (int i = 0; i < 6; ++i) {
    const int next = b.Tensor("t", i == 5 ? PlanTensor::kOutput : PlanTensor::kIntermediate);
    i % 2 == 0 ? b.Add(last, w, next) : b.AddPacked(last, v, next);
    last = next;
  }
  const auto bundle = Made(b.plan, Kernels());
  ASSERT_NE(bundle, nullptr);
  EXPECT_EQ(Factors(bundle), (std::vector<int>{1 + 3 * 100 + 3 * 1000}));
  EXPECT_EQ(bundle->graph().arena_bytes, 4 * kTensor.bytes);  // input, output, two in turn
  EXPECT_EQ(bundle->graph().features, "sse2");
  EXPECT_EQ(bundle->graph().kernels[1].scratch_bytes, 1000);
}

TEST(Bundle, EqualConstantsAreStoredOnce) {
  PlanBuilder b;
  const int x = b.Tensor("x", PlanTensor::kInput), w = b.Constant("w", 5), same = b.Constant("same", 5);
  const int t = b.Tensor("t", PlanTensor::kIntermediate), y = b.Tensor("y", PlanTensor::kOutput);
  b.AddPacked(x, w, t);
  b.Add(t, same, y);
  const absl::StatusOr<std::string> bytes = Written(b.plan, Kernels(), Options());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto bundle = *Bundle::FromMemory(*bytes);
  EXPECT_EQ(Factors(bundle), (std::vector<int>{11}));
  EXPECT_EQ(nlohmann::json::parse(bundle->manifest())["params_bytes"], kTensor.bytes);
}

TEST(Bundle, OutputsThatAreViewsInputsConstantsOrTheSame) {
  PlanBuilder b;
  const int x = b.Tensor("x", PlanTensor::kInput), z = b.Tensor("z", PlanTensor::kInput), w = b.Constant("w", 50);
  const int t = b.Tensor("t", PlanTensor::kIntermediate), u = b.Tensor("u", PlanTensor::kIntermediate);
  const int view = b.Tensor("t_view", PlanTensor::kIntermediate, t, {8, 8});
  b.Add(x, z, t);
  b.AddPacked(view, w, u);
  b.Tensor("t_out", PlanTensor::kOutput, t, {8, 8});     // a view of an intermediate that is also read
  b.Tensor("t_again", PlanTensor::kOutput, t, {4, 16});  // and once more
  b.Tensor("u_out", PlanTensor::kOutput, u);
  b.Tensor("z_out", PlanTensor::kOutput, z);           // an input
  b.Tensor("w_out", PlanTensor::kOutput, w, {2, 32});  // a constant
  b.plan.outputs.push_back(x);                         // an input, without a view
  const auto bundle = Made(b.plan, Kernels());
  ASSERT_NE(bundle, nullptr);
  EXPECT_EQ(Factors(bundle), (std::vector<int>{3, 3, 53, 2, 50, 1}));
  EXPECT_EQ(bundle->graph().outputs[0].shape, (std::vector<int64_t>{8, 8}));
}

TEST(Bundle, BranchesKeepWhatIsReadLater) {
  PlanBuilder b;
  std::vector<int> values = {b.Tensor("x", PlanTensor::kInput)}, expected = {1};
  for (int i = 1; i < 12; ++i) {  // each the sum of the one before and one from far back
    values.push_back(b.Tensor("t", i == 11 ? PlanTensor::kOutput : PlanTensor::kIntermediate));
    b.Add(values[i - 1], values[i / 3], values[i]);
    expected.push_back(expected[i - 1] + expected[i / 3]);
  }
  const auto bundle = Made(b.plan, Kernels());
  ASSERT_NE(bundle, nullptr);
  EXPECT_EQ(Factors(bundle), (std::vector<int>{expected[11]}));
}

TEST(Bundle, KernelsThatShareASymbolGetImagesOfTheirOwn) {
  PlanBuilder b;
  const int x = b.Tensor("x", PlanTensor::kInput), w = b.Constant("w", 7);
  const int t = b.Tensor("t", PlanTensor::kIntermediate), y = b.Tensor("y", PlanTensor::kOutput);
  b.AddPacked(x, w, t);
  b.Add(t, x, y);
  const auto bundle = Made(b.plan, Kernels("kernel", "kernel"));
  ASSERT_NE(bundle, nullptr);
  EXPECT_EQ(Factors(bundle), (std::vector<int>{9}));
  EXPECT_EQ(bundle->graph().kernels[1].image, 1);
}

TEST(Bundle, ManifestSaysWhereKernelsCameFrom) {
  PlanBuilder b;
  const int x = b.Tensor("x", PlanTensor::kInput), y = b.Tensor("y", PlanTensor::kOutput);
  b.Add(x, x, y);
  std::vector<PackagedKernel> kernels = Kernels();
  kernels[1].kernel.serial_loops = {"loop v is not vectorised: why"};
  const auto bundle = Made(b.plan, kernels);
  ASSERT_NE(bundle, nullptr);
  const nlohmann::json manifest = nlohmann::json::parse(bundle->manifest());
  EXPECT_EQ(manifest["model"], "by hand");
  EXPECT_EQ(manifest["target"], "cpu:test");
  EXPECT_EQ(manifest["numeric"], "default");
  EXPECT_EQ(manifest["threads"], 2);
  EXPECT_EQ(manifest["inputs"][0]["name"], "x");
  EXPECT_EQ(manifest["kernels"][0]["record"], "r-1");
  EXPECT_EQ(manifest["kernels"][0]["measured_us"], 12.5);
  EXPECT_EQ(manifest["kernels"][0]["object_digest"], ToHex(Sha256(kernels[0].kernel.object)));
  EXPECT_EQ(manifest["kernels"][1]["object_digest"], "abc");
  EXPECT_FALSE(manifest["kernels"][1].contains("measured_us"));
  EXPECT_FALSE(manifest["kernels"][0].contains("serial_loops"));
  EXPECT_EQ(manifest["kernels"][1]["serial_loops"], nlohmann::json(kernels[1].kernel.serial_loops));
}

TEST(Bundle, SameInputsSameBytes) {
  PlanBuilder b;
  const int x = b.Tensor("x", PlanTensor::kInput), w = b.Constant("w", 7), y = b.Tensor("y", PlanTensor::kOutput);
  b.AddPacked(x, w, y);
  EXPECT_EQ(*Written(b.plan, Kernels(), Options()), *Written(b.plan, Kernels(), Options()));
}

// A packer for each thread packs all constants of a kernel, since it ends with its thread, and none is left when the
// last is packed.
TEST(Bundle, PackersAreUsedAgain) {
  PlanBuilder b;
  int last = b.Tensor("x", PlanTensor::kInput);
  for (int i = 0; i < 9; ++i) {
    const int next = b.Tensor("t", i == 8 ? PlanTensor::kOutput : PlanTensor::kIntermediate);
    b.AddPacked(last, b.Constant("w", 10 + i), next);
    last = next;
  }
  struct Counted : ConstantPacker {
    Counted(std::unique_ptr<ConstantPacker> packer, std::atomic<int>& open) : packer(std::move(packer)), open(open) {
      ++open;
    }
    ~Counted() override { --open; }
    absl::StatusOr<std::string_view> Pack(std::span<const char> value) override {
      EXPECT_TRUE(std::this_thread::get_id() == thread);
      return packer->Pack(value);
    }
    const std::thread::id thread = std::this_thread::get_id();
    std::unique_ptr<ConstantPacker> packer;
    std::atomic<int>& open;
  };
  std::atomic<int> started = 0, open = 0;
  BundleOptions options = Options();
  options.pack_threads = 2;
  options.start_packer = [&](const PrepareKernel& kernel) -> absl::StatusOr<std::unique_ptr<ConstantPacker>> {
    EXPECT_EQ(kernel.constants, 9);
    ++started;
    auto packer = StartSandboxedPacker(kernel);
    if (!packer.ok()) return packer.status();
    return std::make_unique<Counted>(*std::move(packer), open);
  };
  const absl::StatusOr<std::string> bytes = Written(b.plan, Kernels(), options);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_LE(started, 2);
  EXPECT_EQ(open, 0);
  const auto bundle = Bundle::FromMemory(*bytes);
  ASSERT_TRUE(bundle.ok()) << bundle.error().message();
  EXPECT_EQ(Factors(*bundle), (std::vector<int>{1 + 9 * 10 + 36}));
}

// A model's constants and their packed forms are not in memory at the same time.
TEST(Bundle, ConstantsThatArePackedAreLetGoOf) {
  PlanBuilder b;
  const int x = b.Tensor("x", PlanTensor::kInput), t0 = b.Tensor("t", PlanTensor::kIntermediate),
            t1 = b.Tensor("t", PlanTensor::kIntermediate), t2 = b.Tensor("t", PlanTensor::kIntermediate),
            y = b.Tensor("y", PlanTensor::kOutput);
  const std::vector<int> constants = {b.Constant("w", 10), b.Constant("w", 100), b.Constant("w", 1000)};
  b.AddPacked(x, constants[0], t0);
  b.AddPacked(t0, constants[1], t1);
  b.AddPacked(t1, constants[2], t2);
  b.Add(t2, constants[1], y);  // as it is
  std::vector<std::weak_ptr<const NdArray>> data;
  for (const int constant : constants) data.push_back(b.plan.tensors[constant].data);
  struct Watching : ConstantPacker {
    absl::StatusOr<std::string_view> Pack(std::span<const char> value) override {
      gone.push_back("");
      for (const auto& one : data) gone.back() += one.expired() ? "gone " : "here ";
      return packer->Pack(value);
    }
    Watching(std::unique_ptr<ConstantPacker> packer, std::vector<std::weak_ptr<const NdArray>>& data,
             std::vector<std::string>& gone)
        : packer(std::move(packer)), data(data), gone(gone) {}
    std::unique_ptr<ConstantPacker> packer;
    std::vector<std::weak_ptr<const NdArray>>& data;
    std::vector<std::string>& gone;
  };
  std::vector<std::string> gone;
  BundleOptions options = Options();
  options.start_packer = [&](const PrepareKernel& kernel) -> absl::StatusOr<std::unique_ptr<ConstantPacker>> {
    absl::StatusOr<std::unique_ptr<ConstantPacker>> packer = StartSandboxedPacker(kernel);
    if (!packer.ok()) return packer.status();
    return std::make_unique<Watching>(*std::move(packer), data, gone);
  };
  const std::string path = testing::TempDir() + "/lets_go_" + std::to_string(getpid());
  ASSERT_EQ(WriteBundle(std::move(b.plan), Kernels(), options, path), absl::OkStatus());
  std::filesystem::remove(path);
  EXPECT_EQ(gone, (std::vector<std::string>{"here here here ", "gone here here ", "gone here here "}));
}

TEST(Bundle, ModelWithoutKernels) {
  PlanBuilder b;
  b.plan.tasks.clear();
  const int x = b.Tensor("x", PlanTensor::kInput);
  b.Tensor("y", PlanTensor::kOutput, x);
  const auto bundle = Made(b.plan, {});
  ASSERT_NE(bundle, nullptr);
  EXPECT_EQ(Factors(bundle), (std::vector<int>{1}));
}

// ---- refusals ----

struct RefusalCase {
  const char* name;
  void (*damage)(Plan&, std::vector<PackagedKernel>&);
  const char* error;
};
class Refusal : public testing::TestWithParam<RefusalCase> {};
TEST_P(Refusal, SaysWhyAndWritesNothing) {
  PlanBuilder b;
  const int x = b.Tensor("x", PlanTensor::kInput), w = b.Constant("w", 7), y = b.Tensor("y", PlanTensor::kOutput);
  b.AddPacked(x, w, y);
  std::vector<PackagedKernel> kernels = Kernels();
  GetParam().damage(b.plan, kernels);
  const std::string folder = testing::TempDir() + "/refusal_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const absl::Status status = WriteBundle(b.plan, kernels, Options(), folder + "/model.hone");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(GetParam().error));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}
constexpr RefusalCase kRefusals[] = {
    {"FewKernels", [](Plan&, std::vector<PackagedKernel>& k) { k.pop_back(); }, "2 tasks, but 1 kernels"},
    {"FewTensors", [](Plan& p, std::vector<PackagedKernel>&) { p.steps[0].tensors.pop_back(); },
     "takes 3 tensors, the plan has 2"},
    {"OtherShape", [](Plan& p, std::vector<PackagedKernel>&) { p.tensors[0].shape = {63}; }, "tensor `x` has 252"},
    {"PacksAnInput", [](Plan&, std::vector<PackagedKernel>& k) { k[1].kernel.set.prepared[0].param = 0; },
     "`x` is no constant"},
    {"NoData", [](Plan& p, std::vector<PackagedKernel>&) { p.tensors[1].data = nullptr; },
     "constant `w` of the plan has no data"},
    {"NoObject", [](Plan&, std::vector<PackagedKernel>& k) { k[0].kernel.object = "no object"; }, "object"},
    {"PrepareFails",
     [](Plan&, std::vector<PackagedKernel>& k) {
       k[1].kernel.object = HandObject({{"k1", AddKernel(kElements)}, {"k1_prepare0", ReturnKernel(4)}});
     },
     "prepare kernel `k1_prepare0`: the kernel returned 4"},
    {"PrepareMissing",
     [](Plan&, std::vector<PackagedKernel>& k) {
       k[1].kernel.object = HandObject({{"k1", AddKernel(kElements)}});
     },
     "no symbol `k1_prepare0`"},
    {"OtherMachine",
     [](Plan&, std::vector<PackagedKernel>& k) {
       k[1].kernel.object = HandObject({{"k1", AddKernel(kElements)}, {"k1_prepare0", CopyKernel(0, 1, kTensor.bytes)}},
                                       "amx-int8,avx-later");
     },
     "cannot be packed on this machine"},
};
INSTANTIATE_TEST_SUITE_P(Cases, Refusal, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return info.param.name; });

TEST(Bundle, FileAppearsWholeAndReplacesTheOldOne) {
  PlanBuilder b;
  const int x = b.Tensor("x", PlanTensor::kInput), y = b.Tensor("y", PlanTensor::kOutput);
  b.Add(x, x, y);
  const std::string folder = testing::TempDir() + "/writes_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/model.hone";
  std::ofstream(path) << "an older file";
  ASSERT_TRUE(WriteBundle(b.plan, Kernels(), Options(), path).ok());
  const auto bundle = Bundle::Open(path);
  ASSERT_TRUE(bundle.ok()) << bundle.error().message();
  EXPECT_EQ(Factors(*bundle), (std::vector<int>{2}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_FALSE(WriteBundle(b.plan, Kernels(), Options(), folder + "/no/such/folder/model.hone").ok());

  BundleOptions of_another = Options();
  of_another.digest = Sha256("another bundle");
  EXPECT_EQ(WriteBundle(b.plan, Kernels(), of_another, path).code(), absl::StatusCode::kFailedPrecondition);
  of_another.digest = *Sha256OfFile(path);
  EXPECT_TRUE(WriteBundle(b.plan, Kernels(), of_another, path).ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hone
