#include "compiler/sandbox/enter.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "compiler/sandbox/layer_bits.h"
#include "compiler/sandbox/system_calls.h"
#include "compiler/support/sanitized.h"

namespace hone {
namespace {

// Of Linux 6.3: no memory that is or was writable becomes executable (Debian 12's headers are those of 6.1).
constexpr int kSetMdwe = 65, kRefuseExecGain = 1;

// Programs with a sanitizer map terabytes, call the system as they like and read files to name a place.
constexpr uint32_t kPossible =
    kSanitized ? ~static_cast<uint32_t>(kLayerMemoryLimit | kLayerSystemCalls | kLayerEmptyRoot) : ~0u;

// Read back: an emulator of another CPU takes a limit of address space for a success and sets none.
bool Limit(int resource, uint64_t value) {
  const auto which = static_cast<__rlimit_resource>(resource);
  rlimit limit{}, set{};
  if (getrlimit(which, &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(value, limit.rlim_max);
  return setrlimit(which, &limit) == 0 && getrlimit(which, &set) == 0 && set.rlim_cur == limit.rlim_cur &&
         set.rlim_max == limit.rlim_max;
}

bool CloseAllBut(std::span<const int> keep) {
  std::vector<int> kept(keep.begin(), keep.end());
  std::sort(kept.begin(), kept.end());
  kept.push_back(-1);  // the end of all
  unsigned first = STDERR_FILENO + 1;
  for (const int fd : kept) {
    const unsigned last = fd < 0 ? ~0u : static_cast<unsigned>(fd) - 1;
    if (first <= last && syscall(SYS_close_range, first, last, 0) != 0) {
      rlimit limit{};
      if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
      for (unsigned open = first; open <= last && open < limit.rlim_max; ++open) close(static_cast<int>(open));
    }
    first = static_cast<unsigned>(fd) + 1;
  }
  return true;
}

// The root becomes a folder of /proc that belongs to a process which has ended: nothing is in it, and nothing ever will
// be. A helper that shares our root and memory changes it, goes there, which no process can once it has ended, and
// ends.
bool LeaveRoot() {
  alignas(16) static char stack[16 << 10];
  const auto change = [](void*) -> int {
    _exit(chroot("/proc/self/fdinfo/") == 0 && chdir("/") == 0 ? 0 : 1);
    return 1;
  };
  const pid_t helper = clone(change, stack + sizeof(stack), CLONE_FS | CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
  int status = -1;
  while (helper > 0 && waitpid(helper, &status, 0) < 0 && errno == EINTR) {}
  return helper > 0 && status == 0;
}

bool DropCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  return syscall(SYS_capset, &header, none) == 0;
}

// Reading and running what lies beneath a folder, or all that is handled.
bool Allow(long rules, const OpenFolder& folder, uint64_t handled) {
  const int fd = open(folder.path, O_PATH | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  const uint64_t read = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  landlock_path_beneath_attr rule{folder.writable ? handled : read, fd};
  const bool added = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
  close(fd);
  return added;
}

// A rule set that handles every access the kernel knows and allows none but beneath these folders.
bool Restrict(std::span<const OpenFolder> folders) {
  struct {
    uint64_t files;    // since the first version of the interface
    uint64_t network;  // since the fourth: binding and connecting of TCP
    uint64_t scopes;   // since the sixth: abstract sockets of others, signals to others
  } handled{0, 3, 3};
  const long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 1) return false;
  // Rights by version of the interface: 13 in the first, then REFER, TRUNCATE, and from the fifth IOCTL_DEV.
  const int rights = abi >= 5 ? 16 : abi >= 3 ? 15 : abi == 2 ? 14 : 13;
  handled.files = (uint64_t{1} << rights) - 1;
  const size_t size = abi >= 6 ? sizeof(handled) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
  const long rules = syscall(SYS_landlock_create_ruleset, &handled, size, 0);
  if (rules < 0) return false;
  const bool allowed =
      std::ranges::all_of(folders, [&](const OpenFolder& folder) { return Allow(rules, folder, handled.files); });
  const bool locked = allowed && syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  close(static_cast<int>(rules));
  return locked;
}

}  // namespace

uint32_t EnterSandbox(const SandboxLimits& limits, std::span<const int> keep) {
  const uint32_t wanted = limits.wanted & kPossible;
  uint32_t layers = 0;
  const pid_t parent = getppid();
  const auto add = [&](SandboxLayer layer, auto attempt) {
    if ((wanted & layer) != 0 && attempt()) layers |= layer;
  };
  add(kLayerDescriptors, [&] { return CloseAllBut(keep); });
  if (limits.folders.empty()) add(kLayerEmptyRoot, &LeaveRoot);  // the last thing that takes a capability
  add(kLayerCapabilities, &DropCapabilities);
  add(kLayerNoNewPrivs, [] { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0; });
  add(kLayerLandlock, [&] { return Restrict(limits.folders); });
  prctl(PR_SET_DUMPABLE, 0);
  // After what changes credentials, which clears the death signal that was set when this process was started. A parent
  // that has ended meanwhile sends none; then getppid() names another process.
  add(kLayerDeathSignal, [&] { return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent; });
  add(kLayerLimits, [&] {
    return Limit(RLIMIT_CORE, 0) && Limit(RLIMIT_FSIZE, static_cast<uint64_t>(limits.file_bytes)) &&
           Limit(RLIMIT_NOFILE, static_cast<uint64_t>(limits.max_descriptors)) &&
           (limits.cpu_seconds == 0 || Limit(RLIMIT_CPU, static_cast<uint64_t>(limits.cpu_seconds)));
  });
  // Private memory has a limit besides that of address space. An emulator of another CPU sets neither, and has its
  // other limits all the same.
  if ((wanted & kLayerLimits) != 0 && (kPossible & kLayerMemoryLimit) != 0 && limits.memory_bytes > 0) {
    Limit(RLIMIT_DATA, static_cast<uint64_t>(limits.memory_bytes));
  }
  add(kLayerMemoryLimit,
      [&] { return limits.memory_bytes > 0 && Limit(RLIMIT_AS, static_cast<uint64_t>(limits.memory_bytes)); });
  return layers;
}

uint32_t LockSystemCalls(SystemCalls calls, uint32_t wanted) {
  if ((wanted & kLayerLimits) != 0 && calls != SystemCalls::kDriver) prctl(kSetMdwe, kRefuseExecGain, 0, 0, 0);
  if ((wanted & kPossible & kLayerSystemCalls) == 0) return 0;
  std::vector<sock_filter> program = SystemCallFilter(calls);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  const bool locked = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
  return locked ? static_cast<uint32_t>(kLayerSystemCalls) : 0;
}

uint32_t EnterAndLock(ProcessKind kind, std::span<const int> keep) {
  const SandboxPolicy& policy = SandboxPolicyOf(kind);
  setpriority(PRIO_PROCESS, 0, policy.niceness);
  SandboxLimits limits;
  limits.cpu_seconds = policy.cpu_seconds;
  limits.memory_bytes = policy.memory_bytes;
  limits.max_descriptors = policy.max_descriptors;
  const uint32_t layers = EnterSandbox(limits, keep);
  return layers | LockSystemCalls(policy.system_calls);
}

}  // namespace hone
