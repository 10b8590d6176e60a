#include "deploy/runtime/bundle/bundle.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "deploy/runtime/bundle/json.h"
#include "deploy/runtime/hash.h"
#include "deploy/runtime/run/instance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/sample_bundle.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const Bundle> Sample() {
  auto bundle = Bundle::FromMemory(SampleMembers().Archive());
  EXPECT_TRUE(bundle.ok()) << bundle.error().message();
  return *bundle;
}

TEST(Bundle, RunsFromMemory) {
  auto instance = Instance::Create(Sample(), {});
  ASSERT_TRUE(instance.ok()) << instance.error().message();
  Instance& self = **instance;
  EXPECT_THAT(self.Run().message(), HasSubstr("input `a` has not been set"));
  for (int round = 0; round < 3; ++round) {
    auto* a = reinterpret_cast<int32_t*>(self.OwnInput(0));
    for (int i = 0; i < 16; ++i) a[i] = i + round;
    ASSERT_TRUE(self.Run().ok());
    int32_t y[16], z[16];
    std::memcpy(y, self.output(0), sizeof(y));
    std::memcpy(z, self.output(1), sizeof(z));
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(y[i], 2 * (i + round) + 100 * i);
      EXPECT_EQ(z[i], i + round);
    }
  }
}

TEST(Bundle, NeedsItsFileNoMoreOnceItIsOpen) {
  const std::string path = testing::TempDir() + "/sample.hone";
  std::ofstream(path, std::ios::binary) << SampleMembers().Archive();
  const auto bundle = Bundle::Open(path);
  ASSERT_TRUE(bundle.ok()) << bundle.error().message();
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  auto instance = Instance::Create(*bundle, {});
  ASSERT_TRUE(instance.ok()) << instance.error().message();
  auto* a = reinterpret_cast<int32_t*>((*instance)->OwnInput(0));
  for (int i = 0; i < 16; ++i) a[i] = i;
  ASSERT_TRUE((*instance)->Run().ok());
  int32_t y[16];
  std::memcpy(y, (*instance)->output(0), sizeof(y));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(y[i], 102 * i);
}

TEST(Bundle, BoundMemoryIsUsedInPlace) {
  auto instance = Instance::Create(Sample(), {.threads = 1});
  ASSERT_TRUE(instance.ok());
  alignas(64) int32_t a[16], y[16];
  for (int i = 0; i < 16; ++i) a[i] = i;
  (*instance)->BindInput(0, reinterpret_cast<char*>(a));
  (*instance)->BindOutput(0, reinterpret_cast<char*>(y));
  ASSERT_TRUE((*instance)->Run().ok());
  for (int i = 0; i < 16; ++i) EXPECT_EQ(y[i], 102 * i);
  EXPECT_EQ((*instance)->output(0), reinterpret_cast<char*>(y));
}

TEST(Bundle, FailingKernelIsNamed) {
  SampleMembers members;
  members.image1 = ImageOf({{"k0", ReturnKernel(9)}});
  auto instance = Instance::Create(*Bundle::FromMemory(members.Archive()), {});
  ASSERT_TRUE(instance.ok());
  (*instance)->OwnInput(0);
  const RuntimeError error = (*instance)->Run();
  EXPECT_EQ(error.code(), RuntimeCode::kKernelFailed);
  EXPECT_THAT(error.message(), HasSubstr("step 1, kernel `add_a`, returned 9"));
}

TEST(Bundle, EveryTruncationIsRefused) {
  const std::string bytes = SampleMembers().Archive();
  for (size_t size = 0; size < bytes.size(); size += size < 600 ? 1 : 97) {
    const auto bundle = Bundle::FromMemory(std::string_view(bytes).substr(0, size));
    EXPECT_EQ(bundle.error().code(), RuntimeCode::kCorrupt) << size;
  }
  EXPECT_EQ(Bundle::FromMemory(bytes + '\0').error().code(), RuntimeCode::kCorrupt);
}

TEST(Bundle, EveryFlippedBitIsRefused) {
  const std::string bytes = SampleMembers().Archive();
  ASSERT_TRUE(ReadArchive(bytes).ok());
  for (size_t at = 0; at < bytes.size(); at += at < 600 ? 1 : 13) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    EXPECT_FALSE(Bundle::FromMemory(damaged).ok()) << at;
  }
}

// Documents that contradict themselves, under right checksums.
struct HostileCase {
  const char* name;
  std::function<void(SampleMembers&)> damage;
  const char* error;
};
void ChangeGraph(SampleMembers& members, const std::function<void(BundleGraph&)>& change) {
  BundleGraph graph = SampleGraph();
  change(graph);
  members.graph = ToJson(graph);
}
std::function<void(SampleMembers&)> Graph(std::function<void(BundleGraph&)> change) {
  return [change](SampleMembers& members) { ChangeGraph(members, change); };
}
std::function<void(SampleMembers&)> Replace(std::string from, std::string to) {
  return [from, to](SampleMembers& members) { members.graph.replace(members.graph.find(from), from.size(), to); };
}

class HostileBundle : public testing::TestWithParam<HostileCase> {};
TEST_P(HostileBundle, IsRefusedWithTheReason) {
  SampleMembers members;
  GetParam().damage(members);
  const auto bundle = Bundle::FromMemory(members.Archive());
  ASSERT_FALSE(bundle.ok());
  EXPECT_THAT(bundle.error().message(), HasSubstr(GetParam().error));
}
const HostileCase kHostile[] = {
    {"NoJson", [](SampleMembers& m) { m.graph = "not json"; }, "graph.json: JSON, byte 0"},
    {"Deep", [](SampleMembers& m) { m.graph = std::string(100000, '['); }, "nested too deeply"},
    {"Empty", [](SampleMembers& m) { m.graph = ""; }, "ends too early"},
    {"NoObject", [](SampleMembers& m) { m.graph = "[]"; }, "version is missing"},
    {"NewerGraph", Replace("\"version\":1", "\"version\":5"), "version 5, this runtime reads versions up to 4"},
    {"FractionalArena", Replace("\"arena_bytes\":256", "\"arena_bytes\":256.5"),
     "arena_bytes is missing or no whole number"},
    {"HugeArena", Replace("\"arena_bytes\":256", "\"arena_bytes\":99999999999999999999"), "arena_bytes"},
    {"Region", Replace("\"params\"", "\"moon\""), "region is `moon`"},
    {"OutsideArena", Graph([](BundleGraph& g) { g.tensors[0].offset = 256; }), "tensors[0]: bytes is 64"},
    {"FarOutside", Graph([](BundleGraph& g) { g.tensors[0].offset = int64_t{1} << 62; }), "tensors[0]: offset"},
    {"Negative", Graph([](BundleGraph& g) { g.tensors[2].offset = -64; }), "tensors[2]: offset is -64"},
    {"OutsideParams", Graph([](BundleGraph& g) { g.tensors[1].bytes = 128; }), "tensors[1]: bytes is 128"},
    {"Unaligned", Graph([](BundleGraph& g) { g.tensors[0].offset = 4; }), "no multiple of 64"},
    {"NoSuchTensor", Graph([](BundleGraph& g) { g.inputs[0].tensor = 5; }), "inputs[0]: tensor is 5"},
    {"UnknownType", Graph([](BundleGraph& g) { g.inputs[0].dtype = "float31"; }), "inputs[0]: type and shape"},
    {"OverflowingShape", Graph([](BundleGraph& g) {
       g.inputs[0].shape = {1 << 30, 1 << 30, 1 << 30};
     }),
     "inputs[0]: type and shape"},
    {"SameName", Graph([](BundleGraph& g) { g.outputs[1].name = "y"; }), "the name `y` occurs twice"},
    {"ConstantInput", Graph([](BundleGraph& g) { g.inputs[0].tensor = 1; }), "inputs[0]: its tensor is a constant"},
    {"NoSuchImage", Graph([](BundleGraph& g) { g.kernels[0].image = 2; }), "kernels[0]: image is 2"},
    {"NoSuchSymbol", Graph([](BundleGraph& g) { g.kernels[0].symbol = "k9"; }), "no symbol `k9`, which `add_w` needs"},
    {"NegativeScratch", Graph([](BundleGraph& g) { g.kernels[0].scratch_bytes = -1; }),
     "kernels[0]: scratch_bytes is -1"},
    {"NoSuchKernel", Graph([](BundleGraph& g) { g.steps[1].kernel = 2; }), "steps[1]: kernel is 2"},
    {"FewTensors", Graph([](BundleGraph& g) { g.steps[1].tensors.pop_back(); }),
     "steps[1]: 2 tensors, its kernel takes 3"},
    {"OtherSize", Graph([](BundleGraph& g) { g.kernels[0].tensor_bytes[1] = 128; }),
     "steps[0]: tensor 1 has another size"},
    {"CopyToConstant", Graph([](BundleGraph& g) {
       g.copies = {{0, 1}};
     }),
     "copies[0]"},
    {"CopyToItself", Graph([](BundleGraph& g) {
       g.copies = {{0, 0}};
     }),
     "copies[0]"},
    {"Feature", Graph([](BundleGraph& g) { g.features = "sse2,avx9"; }), "does not know: avx9"},
    {"NoImage", [](SampleMembers& m) { m.image = ""; }, "too few for a header"},
    {"NoParams", [](SampleMembers& m) { m.params = ""; }, "tensors[1]: bytes"},
};
INSTANTIATE_TEST_SUITE_P(Cases, HostileBundle, testing::ValuesIn(kHostile),
                         [](const auto& info) { return info.param.name; });

TEST(Bundle, MissingMembersAndNewerArchive) {
  const std::vector<ArchiveMember> none;
  EXPECT_THAT(Bundle::FromMemory(ArchiveOf(none)).error().message(), HasSubstr("graph.json"));
  std::string newer = SampleMembers().Archive();
  newer[8] = 2;
  EXPECT_EQ(Bundle::FromMemory(newer).error().code(), RuntimeCode::kUnsupported);
  EXPECT_EQ(Bundle::FromMemory("").error().code(), RuntimeCode::kCorrupt);
  EXPECT_THAT(Bundle::FromMemory(std::string(5000, 'x')).error().message(), HasSubstr("does not start as a bundle"));
}

TEST(Bundle, FilesThatAreNone) {
  EXPECT_EQ(Bundle::Open("/no/such/file.hone").error().code(), RuntimeCode::kNotFound);
  EXPECT_EQ(Bundle::Open("/").error().code(), RuntimeCode::kCorrupt);
  const std::string path = testing::TempDir() + "/empty_" + std::to_string(getpid()) + ".hone";
  std::ofstream(path).close();
  EXPECT_THAT(Bundle::Open(path).error().message(), HasSubstr("is empty"));
  std::ofstream(path) << SampleMembers().Archive();
  const auto bundle = Bundle::Open(path);
  EXPECT_TRUE(bundle.ok()) << bundle.error().message();
  unlink(path.c_str());
}

TEST(Graph, SurvivesJson) {
  const std::string json = ToJson(SampleGraph());
  const auto graph = ParseGraph(json, 64, 2);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(ToJson(*graph), json);
}

TEST(Json, ReadsEveryKind) {
  const auto json = Json::Parse(R"( {"a": [1, -2.5e1, true, false, null, "x\n\u00e9\ud83d\ude00\"\\"], "b": {}} )");
  ASSERT_TRUE(json.ok()) << json.error().message();
  const Json::Array& a = *json->Find("a")->array();
  EXPECT_EQ(*a[0].integer(), 1);
  EXPECT_EQ(a[1].number(), -25.0);
  EXPECT_TRUE(*a[2].boolean());
  EXPECT_FALSE(*a[3].boolean());
  EXPECT_FALSE(a[4].is_number());
  EXPECT_EQ(*a[5].string(), "x\n\xC3\xA9\xF0\x9F\x98\x80\"\\");
  EXPECT_TRUE(json->Find("b")->object()->empty());
  EXPECT_EQ(json->Find("c"), nullptr);
  EXPECT_EQ(*Json::Parse(JsonQuote("a\"\\\n\x01z"))->string(), "a\"\\\n\x01z");
}

TEST(Json, RefusesWhatIsNone) {
  for (const char* text : {"",
                           "{",
                           "[1,]",
                           "{\"a\"}",
                           "{\"a\":1,\"a\":2}",
                           "tru",
                           "1 2",
                           "\"x",
                           "\"\\q\"",
                           "\"\\u12\"",
                           "\"\\ud800x\"",
                           "-",
                           "1.",
                           "1e",
                           "nul",
                           "{1:2}",
                           "[1 2]",
                           "\"\x01\"",
                           "1e999",
                           "+1"}) {
    EXPECT_FALSE(Json::Parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace hone
