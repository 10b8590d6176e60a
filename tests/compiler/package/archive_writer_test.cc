// Archives written in pieces, and signed.
#include "compiler/package/archive_writer.h"

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "compiler/package/constant_pool.h"
#include "compiler/package/sign_bundle.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

constexpr char kPrivate[] =  // made by `openssl genpkey -algorithm ed25519` for these tests
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEII1GCVHqHNHq8d3UHvesUhIBSi3FxrJSaaXk+KkenNgq\n"
    "-----END PRIVATE KEY-----\n";

class ArchiveFile : public testing::Test {
 protected:
  ArchiveFile() : folder_(testing::TempDir() + "/archive_" + std::to_string(getpid())), path_(folder_ + "/archive") {
    std::filesystem::create_directory(folder_);
  }
  ~ArchiveFile() override { std::filesystem::remove_all(folder_); }
  ArchiveWriter Create(size_t members) {
    absl::StatusOr<ArchiveWriter> writer = ArchiveWriter::Create(path_, members);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }
  // Name and bytes of each member; none when it cannot be read.
  std::vector<std::pair<std::string, std::string>> Members() {
    const absl::StatusOr<std::string> bytes = ReadFile(path_);
    std::vector<std::pair<std::string, std::string>> found;
    if (!bytes.ok()) return found;
    const RuntimeResult<std::vector<ArchiveMember>> members = ReadArchive(*bytes);
    EXPECT_TRUE(members.ok()) << members.error().message();
    if (!members.ok()) return found;
    for (const ArchiveMember& member : *members) found.emplace_back(member.name, member.bytes);
    return found;
  }
  const std::string folder_, path_;
};

TEST_F(ArchiveFile, PiecesOfEverySizeAreTheMember) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>(i * i % 251);
  for (const size_t piece : {1, 7, 31, 32, 33, 100, 3000}) {
    ArchiveWriter writer = Create(3);
    ASSERT_TRUE(writer.Add("first", "1").ok());
    ASSERT_TRUE(writer.Begin("pieces").ok());
    for (size_t at = 0; at < text.size(); at += piece) ASSERT_TRUE(writer.Append(text.substr(at, piece)).ok());
    std::string back(50, '\0');
    ASSERT_TRUE(writer.ReadBack(100, back).ok());
    EXPECT_EQ(back, text.substr(100, 50));
    EXPECT_FALSE(writer.ReadBack(text.size() - 10, back).ok()) << "beyond its end";
    ASSERT_TRUE(writer.Add("empty", "").ok());
    ASSERT_TRUE(writer.Finish().ok());
    ASSERT_TRUE(writer.Commit().ok());
    EXPECT_THAT(Members(), testing::ElementsAre(testing::Pair("first", "1"), testing::Pair("pieces", text),
                                                testing::Pair("empty", "")))
        << piece;
  }
}

TEST_F(ArchiveFile, WithoutCommitNothingIsLeft) {
  {
    ArchiveWriter writer = Create(1);
    ASSERT_TRUE(writer.Add("only", "bytes").ok());
    ASSERT_TRUE(writer.Finish().ok());
    EXPECT_TRUE(std::filesystem::exists(writer.temporary_path()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(ArchiveFile, PoolHoldsEqualConstantsOnce) {
  ArchiveWriter writer = Create(1);
  ASSERT_TRUE(writer.Begin("params").ok());
  ConstantPool pool(writer);
  const std::string large(3 << 20, 'a');
  std::string other = large;
  other.back() = 'b';
  EXPECT_EQ(*pool.Add("abc"), 0);
  EXPECT_EQ(*pool.Add(large), 64);
  EXPECT_EQ(*pool.Add("abc"), 0);
  EXPECT_EQ(*pool.Add(other), 64 + (3 << 20));
  EXPECT_EQ(*pool.Add(large), 64);
  EXPECT_EQ(writer.member_bytes(), 64 + 2 * (3 << 20));
}

TEST_F(ArchiveFile, SigningPutsOneSignatureBehindTheMembers) {
  ArchiveWriter writer = Create(2);
  ASSERT_TRUE(writer.Add("manifest.json", "{}").ok());
  ASSERT_TRUE(writer.Add("params", std::string(10000, 'p')).ok());
  ASSERT_TRUE(writer.Finish().ok());
  ASSERT_TRUE(writer.Commit().ok());
  ASSERT_TRUE(SignBundle(path_, kPrivate).ok());
  const auto once = Members();
  ASSERT_EQ(once.size(), 3u);
  EXPECT_EQ(once[1].second, std::string(10000, 'p'));
  EXPECT_EQ(once[2].first, "signature");
  ASSERT_TRUE(SignBundle(path_, kPrivate).ok());
  EXPECT_EQ(Members(), once);
  EXPECT_EQ(SignBundle(path_, "no key").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Members(), once);
  EXPECT_TRUE(CheckSigningKey(kPrivate).ok());
  EXPECT_EQ(CheckSigningKey("no key").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hone
