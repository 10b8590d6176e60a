// Signed bundles, by keys that `openssl genpkey` made for these tests.
#include "deploy/runtime/bundle/signature.h"

#include <functional>
#include <string>
#include <vector>

#include "deploy/runtime/bundle/bundle.h"
#include "deploy/runtime/hone_runtime.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/deploy/runtime/sample_bundle.h"

namespace hone {
namespace {

using testing::HasSubstr;

constexpr char kPrivate[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEII1GCVHqHNHq8d3UHvesUhIBSi3FxrJSaaXk+KkenNgq\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kPublic[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA3MeaR1Ypgs34+1D3+RGN+7g5+BIOfIVIJSNhGsm4ojY=\n"
    "-----END PUBLIC KEY-----\n";
constexpr char kOtherPrivate[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIOiXWBx6yWlk5DJpxh7EsXIj/qA6BjXOtjpxC9qpl5Es\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kOtherPublic[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEA2Ncw/LyLGLIgxb3WzlajwJypp3XzEuWh1BvJC3ZL8rQ=\n"
    "-----END PUBLIC KEY-----\n";
constexpr char kExchangeKey[] =  // X25519: no key to sign with
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VuBCIEIMjsD/AT6U9cszwrd3KLmcHkw4jqT2s2j4x0f1cA4bVB\n"
    "-----END PRIVATE KEY-----\n";

std::string Signed(const std::string& bundle, const char* key = kPrivate) {
  std::vector<ArchiveMember> members = *ReadArchive(bundle);
  std::erase_if(members, [](const ArchiveMember& member) { return member.name == kSignatureMember; });
  const RuntimeResult<std::string> signature = Signature(members, key);
  EXPECT_TRUE(signature.ok()) << signature.error().message();
  if (!signature.ok()) return "";
  members.push_back({kSignatureMember, *signature});
  return ArchiveOf(members);
}

// "": it is loaded.
std::string Refusal(const std::string& bundle, const char* key) {
  const auto loaded = Bundle::FromMemory(bundle, key);
  if (loaded.ok()) return "";
  EXPECT_EQ(loaded.error().code(), RuntimeCode::kCorrupt) << loaded.error().message();
  return loaded.error().message();
}

TEST(Signature, IsOfTheKeyAndOfEveryMember) {
  const SampleMembers sample;
  const std::string bundle = Signed(sample.Archive());
  EXPECT_EQ(Refusal(bundle, kPublic), "");
  EXPECT_TRUE(Bundle::FromMemory(bundle).ok()) << "who has no key takes it as any other";
  EXPECT_THAT(Refusal(bundle, kOtherPublic), HasSubstr("it was altered, or another key signed it"));
  EXPECT_THAT(Refusal(sample.Archive(), kPublic), HasSubstr("it has no signature"));
  EXPECT_EQ(Signed(sample.Archive()), bundle) << "the same bytes each time";
}

// With checksums that are right: what was altered is no accident.
TEST(Signature, OfOneBundleIsNoneOfAnother) {
  const std::string bundle = Signed(SampleMembers().Archive());
  const auto alter = [&](const std::function<void(std::vector<ArchiveMember>&)>& change) {
    std::vector<ArchiveMember> members = *ReadArchive(bundle);
    change(members);
    return ArchiveOf(members);
  };
  EXPECT_EQ(alter([](auto&) {}), bundle);
  const std::string params = SampleMembers::Params().replace(4, 1, "x"), cut = SampleMembers::Params().substr(1);
  EXPECT_THAT(Refusal(alter([&](auto& members) { members[4].bytes = params; }), kPublic), HasSubstr("altered"));
  EXPECT_THAT(Refusal(alter([&](auto& members) { members[4].bytes = cut; }), kPublic), HasSubstr("altered"));
  EXPECT_THAT(Refusal(alter([](auto& members) { members[0].name = "manifest"; }), kPublic), HasSubstr("altered"));
  EXPECT_THAT(Refusal(alter([](auto& members) { std::swap(members[2], members[3]); }), kPublic), HasSubstr("altered"));
  EXPECT_THAT(Refusal(alter([](auto& members) { members.erase(members.begin() + 3); }), kPublic), HasSubstr("altered"));
  EXPECT_THAT(Refusal(alter([](auto& members) {
                        members.push_back({"more", "bytes"});
                      }),
                      kPublic),
              HasSubstr("altered"));
  EXPECT_THAT(Refusal(alter([](auto& members) { members.push_back(members.back()); }), kPublic), HasSubstr("altered"));
  EXPECT_THAT(Refusal(alter([](auto& members) { members.back().bytes.remove_suffix(1); }), kPublic),
              HasSubstr("altered"));
}

TEST(Signature, IsReplacedByThatOfTheNextKey) {
  const std::string bundle = Signed(Signed(SampleMembers().Archive()), kOtherPrivate);
  EXPECT_EQ(Refusal(bundle, kOtherPublic), "");
  EXPECT_THAT(Refusal(bundle, kPublic), HasSubstr("another key signed it"));
}

TEST(Signature, WantsAnEd25519Key) {
  const std::string bundle = Signed(SampleMembers().Archive());
  for (const char* key : {"", "nonsense", kPublic, kExchangeKey}) {
    const auto made = Signature(*ReadArchive(bundle), key);
    ASSERT_FALSE(made.ok()) << key;
    EXPECT_EQ(made.error().code(), RuntimeCode::kInvalidArgument);
    EXPECT_THAT(made.error().message(), HasSubstr("openssl genpkey -algorithm ed25519"));
  }
  for (const char* key : {"nonsense", kPrivate, kExchangeKey}) {
    const auto loaded = Bundle::FromMemory(bundle, key);
    ASSERT_FALSE(loaded.ok()) << key;
    EXPECT_EQ(loaded.error().code(), RuntimeCode::kInvalidArgument);
    EXPECT_THAT(loaded.error().message(), HasSubstr("-pubout"));
  }
}

TEST(Signature, IsCheckedByTheCInterface) {
  const std::string bundle = Signed(SampleMembers().Archive());
  HoneModule* module = nullptr;
  EXPECT_EQ(hone_module_load_memory_signed(bundle.data(), bundle.size(), kOtherPublic, &module), HONE_CORRUPT);
  EXPECT_THAT(hone_last_error(), HasSubstr("is not what the holder of the key signed"));
  ASSERT_EQ(hone_module_load_memory_signed(bundle.data(), bundle.size(), kPublic, &module), HONE_OK);
  EXPECT_EQ(hone_module_num_inputs(module), 1);
  hone_module_free(module);
}

}  // namespace
}  // namespace hone
