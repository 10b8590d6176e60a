#include "tests/compiler/sandbox/locked_in.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "compiler/sandbox/control_group.h"
#include "compiler/sandbox/enter.h"
#include "compiler/sandbox/layers.h"
#include "compiler/sandbox/policy.h"
#include "compiler/support/child_process.h"
#include "compiler/support/sanitized.h"
#include "tests/compiler/sandbox/outside.h"

namespace hone {
namespace {

// As SandboxedProcess starts one and its main locks it in, without a program.
[[noreturn]] void MakeAttempt(ProcessKind kind, uint32_t wanted, int namespaces, const Attempt& attempt, Tried* tried) {
  ::alarm(20);
  const SandboxPolicy& policy = SandboxPolicyOf(kind);
  SandboxLimits limits;
  limits.wanted = wanted;
  limits.cpu_seconds = policy.cpu_seconds;
  limits.memory_bytes = policy.memory_bytes;
  limits.max_descriptors = policy.max_descriptors;
  if (kind == ProcessKind::kDeviceRunner) {
    limits.folders = DriverFolders();
    limits.file_bytes = 256 << 20;
  }
  uint32_t layers = EnterSandbox(limits, {}) | LayersOfNamespaces(namespaces);
  layers |= LockSystemCalls(policy.system_calls, wanted);
  tried->layers |= layers;
  tried->ready = true;
  const bool made = (tried->layers & attempt.walls) != 0 || attempt.anyway;
  ::syscall(SYS_exit_group, made && attempt.succeeds() ? kEscaped : kRefused);
  __builtin_unreachable();
}

bool WriteUserMap(const std::string& map) {
  const int file = ::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
  const bool written = ::write(file, map.data(), map.size()) >= 0;
  ::close(file);
  return written;
}

}  // namespace

void LockedInTest::SetUp() {
  if (kSanitized) GTEST_SKIP() << "a program with a sanitizer has no filter of system calls";
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // whom an attempt leaves behind is waited for
  MakeOutside();
  shared_ =
      static_cast<Tried*>(::mmap(nullptr, sizeof(Tried), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shared_, MAP_FAILED);
  std::optional<Tried> all = Try(~GetParam().never, Attempt{.walls = kLayerControlGroup});
  if (!all.has_value()) {
    all = Try(~(GetParam().never | LayersOfNamespaces(kAllNamespaces)), Attempt{.walls = kLayerControlGroup});
  }
  ASSERT_TRUE(all.has_value());
  available_ = all->layers;
  const uint32_t missing = MissingLayers(available_ | GetParam().never);
  if (missing != 0) std::printf("this machine does not give: %s\n", LayerNames(missing).c_str());
}

void LockedInTest::TearDown() {
  TakeOutsideAway();
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Tried));
}

std::optional<Tried> LockedInTest::Try(uint32_t wanted, const Attempt& attempt) {
  int namespaces = 0;
  for (const int flag : {CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWNET}) {
    if ((LayersOfNamespaces(flag) & wanted) != 0) namespaces |= flag;
  }
  namespaces &= SandboxPolicyOf(GetParam().kind).namespaces;
  *shared_ = {};
  int gate[2];
  EXPECT_EQ(::pipe2(gate, O_CLOEXEC), 0);
  const std::string map = "0 " + std::to_string(::geteuid()) + " 1";
  const pid_t pid = static_cast<pid_t>(::syscall(SYS_clone, namespaces | SIGCHLD, nullptr, nullptr, nullptr, 0));
  if (pid == 0) {
    char go;
    const rlimit few{1 << 10, 1 << 10};  // of what it has no use for, and may not raise
    const bool mapped = (namespaces & CLONE_NEWUSER) == 0 || WriteUserMap(map);
    if (!mapped || ::setrlimit(RLIMIT_MSGQUEUE, &few) != 0 || ::read(gate[0], &go, 1) != 1) ::_exit(1);
    MakeAttempt(GetParam().kind, wanted, namespaces, attempt, shared_);
  }
  if (pid > 0) WaitForAttempt(pid, gate[1], (attempt.walls & wanted & kLayerControlGroup) != 0);
  ::close(gate[0]);
  ::close(gate[1]);
  return pid > 0 ? std::optional<Tried>(*shared_) : std::nullopt;
}

void LockedInTest::WaitForAttempt(pid_t pid, int gate, bool in_group) {
  std::optional<ControlGroup> group;
  if (in_group) {
    group = ControlGroup::Make(
        {.memory_bytes = SandboxPolicyOf(GetParam().kind).memory_bytes, .processes = kMostProcesses});
    if (group.has_value() && group->Add(pid)) shared_->layers |= kLayerControlGroup;
  }
  EXPECT_EQ(::write(gate, "g", 1), 1);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  EXPECT_TRUE(shared_->ready) << "could not be locked in";
  EXPECT_TRUE(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM) << "took too long";
  shared_->escaped = WIFEXITED(status) && WEXITSTATUS(status) == kEscaped;
  while (::waitpid(-1, nullptr, 0) > 0) {}  // whom it left behind, who has the test's sockets too
}

}  // namespace hone
