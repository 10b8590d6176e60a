// What whoever got the descriptor of a memory file can do to it: not change its size, and nothing once it is sealed.
#include "worker/runner/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace hone {
namespace {

constexpr size_t kBytes = 8192;

bool CanBeWritten(int fd) { return ::pwrite(fd, "x", 1, 0) == 1; }
bool CanBeMappedToWrite(int fd) {
  void* mapping = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapping == MAP_FAILED) return false;
  ::munmap(mapping, kBytes);
  return true;
}

TEST(MemoryFile, NobodyChangesItsSize) {
  absl::StatusOr<MemoryFile> file = MemoryFile::Create("test", kBytes);
  ASSERT_TRUE(file.ok()) << file.status();
  std::memset(file->data(), 1, kBytes);
  EXPECT_NE(::ftruncate(file->fd(), 0), 0);
  EXPECT_NE(::ftruncate(file->fd(), 2 * kBytes), 0);
  EXPECT_TRUE(CanBeWritten(file->fd()));
  EXPECT_TRUE(CanBeMappedToWrite(file->fd()));
  EXPECT_EQ(file->data()[kBytes - 1], 1);
}

TEST(MemoryFile, ASealedOneIsNotChanged) {
  absl::StatusOr<MemoryFile> file = MemoryFile::CreateSealed("test", std::string(kBytes, 'a'));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(CanBeWritten(file->fd()));
  EXPECT_FALSE(CanBeMappedToWrite(file->fd()));
  EXPECT_NE(::ftruncate(file->fd(), 0), 0);
  EXPECT_EQ(::fcntl(file->fd(), F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
}

TEST(MemoryFile, OneThatIsSealedForOthersIsWrittenByItsOwnerAlone) {
  absl::StatusOr<MemoryFile> file = MemoryFile::Create("test", kBytes);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->SealForOthers().ok());
  const void* theirs = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, file->fd(), 0);
  ASSERT_NE(theirs, MAP_FAILED);
  std::memset(file->data(), 'b', kBytes);
  EXPECT_EQ(std::string(static_cast<const char*>(theirs), kBytes), std::string(kBytes, 'b'));
  EXPECT_FALSE(CanBeWritten(file->fd()));
  EXPECT_FALSE(CanBeMappedToWrite(file->fd()));
  EXPECT_NE(::fcntl(file->fd(), F_ADD_SEALS, F_SEAL_GROW), 0);
  ::munmap(const_cast<void*>(theirs), kBytes);
}

// One that somebody holds mapped to write cannot be handed on as if nobody did.
TEST(MemoryFile, OneThatIsStillWrittenIsNotSealed) {
  absl::StatusOr<MemoryFile> file = MemoryFile::Create("test", kBytes);
  ASSERT_TRUE(file.ok()) << file.status();
  void* theirs = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd(), 0);
  ASSERT_NE(theirs, MAP_FAILED);
  EXPECT_EQ(file->Seal().code(), absl::StatusCode::kInternal);
  ::munmap(theirs, kBytes);
}

}  // namespace
}  // namespace hone
