// A disk that is full: said in one message, nothing lost, and work goes on when there is room again. The disk is a
// small one in memory, mounted where only a child process of the test sees it.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "database/sqlite/sqlite_store.h"
#include "gtest/gtest.h"
#include "tests/database/rows_for_tests.h"

namespace hone {
namespace {

constexpr int kNoMount = 77;

bool WriteText(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return written;
}

bool MountSmallDisk(const std::string& folder) {
  const uid_t user = getuid();
  const gid_t group = getgid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    WriteText("/proc/self/setgroups", "deny");
    if (!WriteText("/proc/self/uid_map", absl::StrCat("0 ", user, " 1"))) return false;
    if (!WriteText("/proc/self/gid_map", absl::StrCat("0 ", group, " 1"))) return false;
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("hone-test", folder.c_str(), "tmpfs", 0, "size=1m") == 0;
}

#define REQUIRE(condition)                                                                  \
  if (!(condition)) {                                                                       \
    std::fprintf(stderr, "full_disk_test.cc:%d: %s does not hold\n", __LINE__, #condition); \
    _exit(1);                                                                               \
  }

[[noreturn]] void FillTheDisk(const std::string& folder) {
  if (!MountSmallDisk(folder)) _exit(kNoMount);
  const std::string path = folder + "/t.db";
  int stored = 0;
  const auto add = [&](TuningStore& store, uint64_t epoch) {
    const Write next =
        PutRecord{TestRecord(TestKey("conv2d_1"), absl::StrCat("trace ", stored), 1 + stored, std::string(8000, 'x'))};
    return store.Commit(epoch, {&next, 1});
  };
  {
    auto store = OpenSqliteStore(path, StoreMode::kWrite);
    REQUIRE(store.ok());
    const uint64_t epoch = *(*store)->BeginEpoch();
    REQUIRE((*store)->Commit(epoch, TestGround()).ok());
    absl::Status status;
    while (stored < 10'000 && (status = add(**store, epoch)).ok()) ++stored;
    REQUIRE(stored > 5);
    REQUIRE(absl::IsResourceExhausted(status));
    const std::string message(status.message());
    std::fprintf(stderr, "%s\n", message.c_str());
    REQUIRE(message.find("full") != std::string::npos);
    REQUIRE(message.find(path) != std::string::npos);
    REQUIRE((*store)->Records(kLocalTenant, {})->rows.size() == static_cast<size_t>(stored));
    // The next try fails alike, and once there is room it succeeds on the same connection.
    REQUIRE(absl::IsResourceExhausted(add(**store, epoch)));
    REQUIRE(mount("hone-test", folder.c_str(), "tmpfs", MS_REMOUNT, "size=16m") == 0);
    REQUIRE(add(**store, epoch).ok());
    ++stored;
  }
  const auto again = OpenSqliteStore(path, StoreMode::kRead);
  REQUIRE(again.ok());
  const auto page = (*again)->Records(kLocalTenant, {});
  REQUIRE(page.ok() && page->corrupt == 0);
  REQUIRE(page->rows.size() == static_cast<size_t>(stored));
  _exit(0);
}

TEST(FullDisk, IsSaidAndLosesNothing) {
  char name[] = "/tmp/hone_full_disk_XXXXXX";
  const std::string folder = mkdtemp(name);
  const pid_t child = fork();
  if (child == 0) FillTheDisk(folder);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  std::filesystem::remove_all(folder);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMount) GTEST_SKIP() << "this machine lets tests mount nothing";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

}  // namespace
}  // namespace hone
