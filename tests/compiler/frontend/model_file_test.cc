// What comes out of a model's file is what is in it, however it is taken, and so is the digest.
#include "compiler/frontend/model_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "compiler/support/file.h"
#include "compiler/support/random.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

class ModelFileTest : public testing::Test {
 protected:
  ModelFileTest() {
    Random random(7);
    content_.resize((9 << 20) + 13);  // more pieces than are held
    for (char& byte : content_) byte = static_cast<char>(random.Next());
    std::ofstream(path_, std::ios::binary) << content_;
  }
  ~ModelFileTest() override { std::filesystem::remove(path_); }
  int Open() const { return *OpenToRead(path_); }

  const std::string path_ = testing::TempDir() + "/model_file_" + std::to_string(::getpid());
  std::string content_;
};

TEST_F(ModelFileTest, IsReadOnceAndDigested) {
  ModelFile file(Open());
  std::string read;
  const void* data;
  int size, turn = 0;
  while (file.Next(&data, &size)) {
    const int back = ++turn % 3 == 0 ? size / 2 : 0;
    read.append(static_cast<const char*>(data), static_cast<size_t>(size - back));
    if (back > 0) file.BackUp(back);
    EXPECT_EQ(file.ByteCount(), static_cast<int64_t>(read.size()));
    if (turn % 4 == 0) {
      ASSERT_TRUE(file.Skip(1500000));
      read += content_.substr(read.size(), 1500000);
    }
  }
  EXPECT_TRUE(read == content_);
  EXPECT_EQ(file.error(), 0);
  EXPECT_FALSE(file.Skip(1));
  EXPECT_EQ(file.Digest(), Sha256(content_));
}

TEST_F(ModelFileTest, NeedNotBeReadToItsEnd) {
  ModelFile file(Open());
  ASSERT_TRUE(file.Skip(3 << 20));
}

TEST_F(ModelFileTest, AnErrorIsTold) {
  ModelFile file(::open(testing::TempDir().c_str(), O_RDONLY));
  const void* data;
  int size;
  EXPECT_FALSE(file.Next(&data, &size));
  EXPECT_EQ(file.error(), EISDIR);
}

}  // namespace
}  // namespace hone
