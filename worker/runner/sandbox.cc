#include "worker/runner/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "compiler/support/sanitized.h"

namespace hone {
namespace {

constexpr uint32_t kPossible = kSanitized ? ~static_cast<uint32_t>(kLayerMemoryLimit | kLayerSystemCalls) : ~0u;

#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#endif

bool Limit(int resource, uint64_t value) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(value, limit.rlim_max);
  return setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0;
}

// A rule set that handles every access the kernel knows and allows none.
bool DenyFiles() {
  const long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 1) return false;
  // Rights by version of the interface: 13 in the first, then REFER, TRUNCATE, and from the fifth IOCTL_DEV.
  const int rights = abi >= 5 ? 16 : abi >= 3 ? 15 : abi == 2 ? 14 : 13;
  const uint64_t handled_files = (uint64_t{1} << rights) - 1;
  const long rules = syscall(SYS_landlock_create_ruleset, &handled_files, sizeof(handled_files), 0);
  if (rules < 0) return false;
  const bool locked = syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  close(static_cast<int>(rules));
  return locked;
}

bool LeaveNetwork() { return unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0; }

constexpr int kAllowed[] = {SYS_futex,      SYS_recvfrom,     SYS_sendto,          SYS_recvmsg,       SYS_sendmsg,
                            SYS_getrusage,  SYS_sched_yield,  SYS_clock_gettime,   SYS_gettimeofday,  SYS_exit,
                            SYS_exit_group, SYS_rt_sigreturn, SYS_restart_syscall, SYS_rt_sigprocmask};
// What a stray allocation asks for: it gets none.
constexpr int kNoMemory[] = {SYS_mmap, SYS_mremap, SYS_brk, SYS_mprotect, SYS_munmap, SYS_madvise};

bool FilterSystemCalls() {
  std::vector<sock_filter> program;
  const auto load = [&](size_t offset) {
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
  };
  const auto answer_if = [&](uint32_t value, uint32_t answer) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, answer));
  };
  load(offsetof(seccomp_data, arch));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  load(offsetof(seccomp_data, nr));
  for (const int call : kAllowed) answer_if(static_cast<uint32_t>(call), SECCOMP_RET_ALLOW);
  for (const int call : kNoMemory) answer_if(static_cast<uint32_t>(call), SECCOMP_RET_ERRNO | ENOMEM);
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

}  // namespace

uint32_t EnterSandbox(const SandboxLimits& limits) {
  const uint32_t wanted = limits.wanted & kPossible;
  uint32_t layers = 0;
  const auto add = [&](SandboxLayer layer, auto attempt) {
    if ((wanted & layer) != 0 && attempt()) layers |= layer;
  };
  prctl(PR_SET_DUMPABLE, 0);
  add(kLayerDeathSignal, [] { return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() != 1; });
  add(kLayerNetwork, &LeaveNetwork);
  add(kLayerNoNewPrivs, [] { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0; });
  add(kLayerLandlock, &DenyFiles);
  add(kLayerLimits, [&] {
    return Limit(RLIMIT_CORE, 0) && Limit(RLIMIT_FSIZE, 0) &&
           Limit(RLIMIT_NOFILE, static_cast<uint64_t>(limits.max_descriptors)) &&
           Limit(RLIMIT_CPU, static_cast<uint64_t>(limits.cpu_seconds));
  });
  add(kLayerMemoryLimit,
      [&] { return limits.memory_bytes > 0 && Limit(RLIMIT_AS, static_cast<uint64_t>(limits.memory_bytes)); });
  return layers;
}

uint32_t LockSandbox(uint32_t wanted) {
  const bool locked = (wanted & kPossible & kLayerSystemCalls) != 0 && FilterSystemCalls();
  return locked ? static_cast<uint32_t>(kLayerSystemCalls) : 0;
}

}  // namespace hone
