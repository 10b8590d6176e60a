#include "compiler/sandbox/control_group.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// False also of one that has ended and that nobody has reaped.
bool Lives(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && line[name_end + 2] != 'Z' && line[name_end + 2] != 'X';
}

// A process in a group of its own, which waits there until it is let go.
class InAGroup : public testing::Test {
 protected:
  // It ends with what `work` returns. `stays`: it stays when its work is done, which is waited for.
  void Start(const ControlGroup::Limits& limits, bool stays, const std::function<int()>& work) {
    group_ = ControlGroup::Make(limits);
    if (!group_.has_value()) GTEST_SKIP() << "this machine gives no control group";
    int gate[2], ready[2];
    ASSERT_TRUE(::pipe(gate) == 0 && ::pipe(ready) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      char go;
      ::close(gate[1]);
      if (::read(gate[0], &go, 1) != 1) ::_exit(99);
      const int code = work();
      if (code >= 0) ::_exit(code);
      if (::write(ready[1], "r", 1) != 1) ::_exit(99);
      for (;;) ::pause();
    }
    ::close(gate[0]);
    ::close(ready[1]);
    ASSERT_TRUE(group_->Add(pid_));
    EXPECT_THAT(group_->Members(), testing::Contains(pid_));
    ASSERT_EQ(::write(gate[1], "g", 1), 1);
    char done;
    worked_ = stays && ::read(ready[0], &done, 1) == 1;
    ::close(gate[1]);
    ::close(ready[0]);
  }
  int Wait() {
    int status = -1;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    return status;
  }

  std::optional<ControlGroup> group_;
  pid_t pid_ = -1;
  bool worked_ = false;  // it came to the end of its work
};

TEST_F(InAGroup, MemoryIsLimitedForAllTogether) {
  // 48 MiB each of two processes, which no limit of the one or the other sees.
  Start({.memory_bytes = 64 * kMiB, .processes = 8}, /*stays=*/false, [] {
    const pid_t other = ::fork();
    char* bytes =
        static_cast<char*>(::mmap(nullptr, 48 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (int64_t at = 0; at < 48 * kMiB; at += 4096) bytes[at] = 1;
    if (other == 0) {
      for (;;) ::pause();
    }
    int status = 0;
    ::usleep(200'000);
    return ::waitpid(other, &status, WNOHANG) == other && WIFSIGNALED(status) ? 7 : 0;
  });
  if (IsSkipped()) return;
  const int status = Wait();
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 7) << "96 MiB were had of 64";
}

TEST_F(InAGroup, ProcessesAreLimited) {
  Start({.memory_bytes = 256 * kMiB, .processes = 5}, /*stays=*/false, [] {
    int made = 0;
    while (made < 50) {
      const pid_t pid = ::fork();
      if (pid < 0) return errno == EAGAIN ? made : 98;
      if (pid == 0) {
        for (;;) ::pause();
      }
      ++made;
    }
    return made;
  });
  if (IsSkipped()) return;
  const int status = Wait();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 4) << "beside the first";
}

TEST_F(InAGroup, NobodyOutlivesIt) {
  Start({.memory_bytes = 256 * kMiB, .processes = 8}, /*stays=*/true, [] {
    for (int i = 0; i < 3; ++i) {
      if (::fork() == 0) {
        ::setsid();
        for (;;) ::pause();
      }
    }
    return -1;
  });
  if (IsSkipped()) return;
  EXPECT_TRUE(worked_);
  const std::vector<pid_t> members = group_->Members();
  EXPECT_GE(members.size(), 4u);
  group_.reset();
  EXPECT_TRUE(WIFSIGNALED(Wait()));
  for (const pid_t pid : members) EXPECT_FALSE(Lives(pid)) << pid;
}

}  // namespace
}  // namespace hone
