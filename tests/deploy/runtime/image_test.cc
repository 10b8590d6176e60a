#include "deploy/runtime/image/image.h"

#include <cstring>
#include <thread>

#include "deploy/runtime/hash.h"
#include "deploy/runtime/image/cpu_features.h"
#include "deploy/runtime/image/kernel_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/machine_code.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

int32_t Call(HoneKernelFn fn) {
  const HoneCall call{};
  return fn(&call);
}

// `mov eax, [rip + x]; ret`, and the number in the data it reads.
ImageParts CodeThatReadsData() {
  ImageParts parts;
  const int32_t distance = static_cast<int32_t>(DataOffset(ImageArch::kX86_64, 7)) - 6 + 8;
  parts.code = Bytes({0x8B, 0x05}) + Int32(distance) + Bytes({0xC3});
  parts.data = std::string(8, '\0') + Int32(4711);
  parts.symbols = {{"read", 0}};
  return parts;
}

TEST(Image, RunsCodeFoundBySymbol) {
  const RuntimeResult<Image> image = Image::Load(ImageOf({{"seven", ReturnKernel(7)}, {"eight", ReturnKernel(8)}}));
  ASSERT_TRUE(image.ok()) << image.error().message();
  EXPECT_EQ(Call(image->Find("seven")), 7);
  EXPECT_EQ(Call(image->Find("eight")), 8);
  EXPECT_EQ(image->Find("nine"), nullptr);
  EXPECT_EQ(image->Find(""), nullptr);
}

TEST(Image, CodeReachesItsData) {
  const RuntimeResult<Image> image = Image::Load(WriteImage(CodeThatReadsData()));
  ASSERT_TRUE(image.ok()) << image.error().message();
  EXPECT_EQ(Call(image->Find("read")), 4711);
}

TEST(Image, ManyLiveTogetherAndSurviveAMove) {
  std::vector<Image> images;
  for (int i = 0; i < 100; ++i) images.push_back(*Image::Load(ImageOf({{"k", ReturnKernel(i)}})));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Call(images[i].Find("k")), i);
}

TEST(Image, ReadGivesBackWhatWasWritten) {
  ImageParts parts = CodeThatReadsData();
  parts.features = "sse2,fma";
  const RuntimeResult<ImageParts> read = ReadImage(WriteImage(parts));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->code, parts.code);
  EXPECT_EQ(read->data, parts.data);
  EXPECT_EQ(read->features, "sse2,fma");
  ASSERT_EQ(read->symbols.size(), 1u);
  EXPECT_EQ(read->symbols[0].name, "read");
}

TEST(Image, EveryTruncationIsRefused) {
  const std::string image = WriteImage(CodeThatReadsData());
  for (size_t size = 0; size < image.size(); size += size < 300 ? 1 : 61) {
    EXPECT_EQ(Image::Load(image.substr(0, size)).error().code(), RuntimeCode::kCorrupt) << size;
  }
}

TEST(Image, EveryFlippedBitIsRefused) {
  const std::string image = WriteImage(CodeThatReadsData());
  for (size_t at = 0; at < image.size(); at += at < 300 ? 1 : 61) {
    std::string damaged = image;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    EXPECT_FALSE(Image::Load(damaged).ok()) << at;
  }
}

// Numbers that contradict each other are refused although the checksum is right.
struct HostileCase {
  const char* name;
  void (*damage)(ImageHeader&);
};
class HostileImage : public testing::TestWithParam<HostileCase> {};

TEST_P(HostileImage, IsRefused) {
  std::string image = WriteImage(CodeThatReadsData());
  ImageHeader header;
  std::memcpy(&header, image.data(), sizeof(header));
  GetParam().damage(header);
  header.checksum = 0;
  header.checksum = Hash64(std::string_view(image).substr(sizeof(header)), Hash64(&header, sizeof(header)));
  std::memcpy(image.data(), &header, sizeof(header));
  const RuntimeResult<Image> loaded = Image::Load(image);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message(), HasSubstr("kernel image: "));
}

constexpr HostileCase kHostile[] = {
    {"MoreSymbols", [](ImageHeader& h) { h.symbol_count = 5000; }},
    {"AllSymbols", [](ImageHeader& h) { h.symbol_count = ~0u; }},
    {"LongStrings", [](ImageHeader& h) { h.strings_bytes = ~0ull; }},
    {"FeaturesOutside", [](ImageHeader& h) { h.features_at = 1 << 30; }},
    {"LongFeatures", [](ImageHeader& h) { h.features_bytes = ~0u; }},
    {"PayloadAtZero", [](ImageHeader& h) { h.payload_at = 0; }},
    {"PayloadOutside", [](ImageHeader& h) { h.payload_at = 1ull << 40; }},
    {"NoCode", [](ImageHeader& h) { h.code_bytes = 0; }},
    {"LongCode", [](ImageHeader& h) { h.code_bytes = ~0ull; }},
    {"DataElsewhere", [](ImageHeader& h) { h.data_at += 4096; }},
    {"LongData", [](ImageHeader& h) { h.data_bytes = ~0ull - 4096; }},
    {"OddPage", [](ImageHeader& h) { h.page_bytes = 4097; }},
    {"SmallPage", [](ImageHeader& h) { h.page_bytes = 1; }},
    {"HugePage", [](ImageHeader& h) { h.page_bytes = 1u << 31; }},
    {"OtherVersion", [](ImageHeader& h) { h.version = 2; }},
    {"OtherArch", [](ImageHeader& h) { h.arch = 183; }},
    {"UnknownArch", [](ImageHeader& h) { h.arch = 9999; }},
};
INSTANTIATE_TEST_SUITE_P(Cases, HostileImage, testing::ValuesIn(kHostile),
                         [](const auto& info) { return info.param.name; });

TEST(Image, SymbolOutsideTheCodeIsRefused) {
  ImageParts parts = PartsOf({{"k", ReturnKernel(0)}});
  parts.symbols[0].code_offset = parts.code.size();
  EXPECT_THAT(Image::Load(WriteImage(parts)).error().message(), HasSubstr("outside the code"));
}

TEST(Image, MissingCpuFeatureIsNamed) {
  ImageParts parts = PartsOf({{"k", ReturnKernel(0)}});
  parts.features = "sse2,amx-int8,avx-from-the-future";
  const RuntimeError error = Image::Load(WriteImage(parts)).error();
  EXPECT_EQ(error.code(), RuntimeCode::kUnsupported);
  if (!HostHasCpuFeature("amx-int8")) { EXPECT_THAT(error.message(), HasSubstr("amx-int8")); }
  parts.features = "avx-from-the-future";
  EXPECT_THAT(Image::Load(WriteImage(parts)).error().message(), HasSubstr("avx-from-the-future"));
}

TEST(CpuFeatures, HostHasWhatItLists) {
  EXPECT_TRUE(HostHasCpuFeature("sse2"));
  EXPECT_FALSE(HostHasCpuFeature("no-such"));
  std::string all;
  for (const std::string& name : HostCpuFeatures()) all += (all.empty() ? "+" : ",+") + name;
  EXPECT_TRUE(CheckCpuFeatures(all).ok()) << CheckCpuFeatures(all).message();
  EXPECT_TRUE(CheckCpuFeatures("").ok());
}

#if defined(__x86_64__)
// What the feature check lets through may be executed: a process that was refused the tile registers has none.
TEST(CpuFeatures, TileRegistersArePermittedWhereTheyAreListed) {
  if (!HostHasCpuFeature("amx-tile")) GTEST_SKIP() << "this machine has no amx-tile, or its system refuses it";
  std::thread([] {
    alignas(64) unsigned char shapes[64] = {1};
    shapes[16] = 64;  // bytes of a row of the first register
    shapes[48] = 1;   // its rows
    asm volatile("ldtilecfg %0\n\ttilezero %%tmm0\n\ttilerelease" : : "m"(shapes));
  }).join();
}
#endif

TEST(Hash, EveryByteAndTheLengthCount) {
  std::string text(100, 'x');
  const uint64_t whole = Hash64(text);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] ^= 1;
    EXPECT_NE(Hash64(other), whole) << i;
    EXPECT_NE(Hash64(std::string_view(text).substr(0, i)), whole) << i;
  }
  EXPECT_NE(Hash64(std::string(1, '\0')), Hash64(std::string(2, '\0')));
}

KernelSet SomeSet() {
  KernelSet set;
  set.symbol = "dense";
  set.params = {{"float32", {1, 784}, 3136}, {"float32", {784, 256}, 802816}, {"float32", {1, 256}, 1024}};
  set.prepared = {{1, "dense_prepare0", {"float32", {8, 784, 32}, 802816}, 64, 128}};
  set.scratch_bytes = 4096;
  set.thread_scratch_bytes = 512;
  return set;
}

TEST(KernelSet, SurvivesSerialization) {
  KernelSet set;
  std::string error;
  ASSERT_TRUE(Parse(Serialize(SomeSet()), &set, &error)) << error;
  EXPECT_EQ(Serialize(set), Serialize(SomeSet()));
  EXPECT_EQ(set.prepared[0].packed.shape, (std::vector<int64_t>{8, 784, 32}));
  EXPECT_EQ(set.thread_scratch_bytes, 512);
}

TEST(KernelSet, TruncatedOrDamagedBytesNeverCrash) {
  const std::string bytes = Serialize(SomeSet());
  KernelSet set;
  std::string error;
  for (size_t size = 0; size < bytes.size(); ++size) {
    error.clear();
    EXPECT_FALSE(Parse(bytes.substr(0, size), &set, &error)) << size;
    EXPECT_THAT(error, HasSubstr("kernel set"));
  }
  EXPECT_FALSE(Parse(bytes + "x", &set, &error));
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int value : {0x00, 0x7F, 0xFF}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(value);
      Parse(damaged, &set, &error);  // either way, but in bounds
    }
  }
}

}  // namespace
}  // namespace hone
