#include "compiler/sandbox/system_calls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace hone {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#elif defined(__riscv)
constexpr uint32_t kArch = AUDIT_ARCH_RISCV64;
#else
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#endif

constexpr uint32_t Refuse(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }
constexpr uint32_t kSocketTypes = 0xf;  // of a socket's type, what is not a flag (linux/net.h: SOCK_TYPE_MASK)
constexpr uint32_t kAllow = SECCOMP_RET_ALLOW, kKill = SECCOMP_RET_KILL_PROCESS;

// Of an argument, of which the filter sees the lower 32 bits: those of `mask` are as in `value`, or with `or_less` at
// most `value`.
struct Condition {
  size_t argument;
  uint32_t mask, value;
  bool or_less = false;
};
// What one call gets. Where all its conditions hold it is allowed; else, and where it has none, it gets `answer`.
struct Rule {
  int call;
  uint32_t answer;
  std::vector<Condition> allowed = {};
};

constexpr int kKernelCalls[] = {SYS_futex,      SYS_recvfrom,     SYS_sendto,          SYS_recvmsg,       SYS_sendmsg,
                                SYS_getrusage,  SYS_sched_yield,  SYS_clock_gettime,   SYS_gettimeofday,  SYS_exit,
                                SYS_exit_group, SYS_rt_sigreturn, SYS_restart_syscall, SYS_rt_sigprocmask};
// What a stray allocation asks for: it gets none.
constexpr int kMemoryCalls[] = {SYS_mmap, SYS_mremap, SYS_brk, SYS_mprotect, SYS_munmap, SYS_madvise};

// clang-format off
constexpr int kProgramCalls[] = {
    SYS_close,          SYS_fstat,        SYS_ppoll,           SYS_flock,
    SYS_futex,          SYS_munmap,       SYS_mremap,          SYS_brk,
    SYS_madvise,        SYS_rseq,         SYS_exit,            SYS_exit_group,
    SYS_rt_sigaction,   SYS_sigaltstack,  SYS_set_robust_list, SYS_restart_syscall,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_gettid,          SYS_getpid,
    SYS_getuid,         SYS_geteuid,      SYS_getgid,          SYS_getegid,
    SYS_sched_yield,    SYS_getcpu,       SYS_nanosleep,       SYS_sched_getaffinity,
    SYS_clock_gettime,  SYS_clock_getres, SYS_clock_nanosleep, SYS_gettimeofday,
    SYS_times,          SYS_getrandom,    SYS_getrusage,       SYS_sysinfo,
    SYS_uname,          SYS_membarrier,
#if defined(__x86_64__)
    SYS_poll,           SYS_time,         SYS_arch_prctl,
#endif
};
// clang-format on
// On the standard streams alone: a descriptor that was left open by mistake is of no use.
constexpr int kStreamCalls[] = {SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_lseek};
// What libraries try and do without. clone3 is not there: its flags lie in memory, where a filter sees nothing, and
// libraries go back to clone.
constexpr int kFileCalls[] = {
    SYS_openat, SYS_openat2, SYS_faccessat, SYS_faccessat2, SYS_newfstatat, SYS_statx, SYS_readlinkat, SYS_getcwd,
#if defined(__x86_64__)
    SYS_open,   SYS_access,  SYS_stat,      SYS_lstat,      SYS_readlink,
#endif
};
constexpr int kUnneeded[] = {SYS_clone3, SYS_prctl, SYS_ioctl, SYS_fcntl, SYS_sched_setaffinity, SYS_dup};

// What a driver calls is not documented, so the list is of calls that it must not make: sockets and what else processes
// share by name, other processes, the kernel and the machine. io_uring would go past the filter, and is done without.
constexpr int kSharedByName[] = {SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget, SYS_semget};
constexpr int kPastTheFilter[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};
constexpr int kForbidden[] = {
    // Other processes.
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_process_madvise,
    SYS_move_pages,
    SYS_migrate_pages,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    // The kernel and the machine.
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_quotactl,
    SYS_acct,
    SYS_syslog,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
#if defined(__x86_64__)
    SYS_iopl,
    SYS_ioperm,
#endif
};

std::vector<Rule> RulesOfDrivers() {
  std::vector<Rule> rules;
  for (const int call : kSharedByName) rules.push_back({call, Refuse(EACCES)});
  // CUDA's driver does not start where it cannot listen on a local socket of sequenced packets (seen with 580.159), and
  // does without connections of its own. A socket that listens sends nothing before a peer connects.
  rules.push_back({SYS_socket, Refuse(EACCES), {{0, ~0u, AF_UNIX}, {1, kSocketTypes, SOCK_SEQPACKET}}});
  rules.push_back({SYS_connect, Refuse(ECONNREFUSED)});
  for (const int call : kPastTheFilter) rules.push_back({call, Refuse(ENOSYS)});
  for (const int call : kForbidden) rules.push_back({call, kKill});
  // Signals go to itself alone; programs that it starts send none. Limits and priorities are its own, by the number 0.
  for (const int call : {SYS_kill, SYS_tgkill})
    rules.push_back({call, kKill, {{0, ~0u, static_cast<uint32_t>(getpid())}}});
  rules.push_back({SYS_prlimit64, Refuse(EPERM), {{0, ~0u, 0}}});
  rules.push_back({SYS_setpriority, Refuse(EPERM), {{1, ~0u, 0}}});
  return rules;
}

std::vector<Rule> RulesOf(SystemCalls calls) {
  if (calls == SystemCalls::kDriver) return RulesOfDrivers();
  std::vector<Rule> rules;
  if (calls == SystemCalls::kKernel) {
    for (const int call : kKernelCalls) rules.push_back({call, kAllow});
    for (const int call : kMemoryCalls) rules.push_back({call, Refuse(ENOMEM)});
    return rules;
  }
  for (const int call : kProgramCalls) rules.push_back({call, kAllow});
  for (const int call : kStreamCalls) rules.push_back({call, Refuse(EBADF), {{0, ~0u, STDERR_FILENO, true}}});
  for (const int call : kFileCalls) rules.push_back({call, Refuse(EACCES)});
  for (const int call : kUnneeded) rules.push_back({call, Refuse(ENOSYS)});
  for (const int call : {SYS_mmap, SYS_mprotect}) rules.push_back({call, Refuse(EACCES), {{2, PROT_EXEC, 0}}});
  rules.push_back({SYS_clone, kKill, {{0, CLONE_THREAD, CLONE_THREAD}}});
  // abort() signals its own thread.
  rules.push_back({SYS_tgkill, kKill, {{0, ~0u, static_cast<uint32_t>(getpid())}}});
  rules.push_back({SYS_prlimit64, Refuse(EPERM), {{2, ~0u, 0}}});  // reading a limit
  return rules;
}

}  // namespace

std::vector<sock_filter> SystemCallFilter(SystemCalls calls) {
  std::vector<sock_filter> program;
  const auto load = [](size_t offset) -> sock_filter {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
  };
  const auto answer = [](uint32_t value) -> sock_filter { return BPF_STMT(BPF_RET | BPF_K, value); };
  program.push_back(load(offsetof(seccomp_data, arch)));
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0));
  program.push_back(answer(kKill));
  program.push_back(load(offsetof(seccomp_data, nr)));
  for (const Rule& rule : RulesOf(calls)) {
    std::vector<sock_filter> what;
    for (const Condition& condition : rule.allowed) {
      what.push_back(load(offsetof(seccomp_data, args) + condition.argument * sizeof(uint64_t)));
      what.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, condition.mask));
      what.push_back(condition.or_less ? sock_filter(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, condition.value, 0, 1))
                                       : sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, condition.value, 1, 0)));
      what.push_back(answer(rule.answer));
    }
    what.push_back(answer(rule.allowed.empty() ? rule.answer : kAllow));
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(rule.call), 0, static_cast<uint8_t>(what.size())));
    program.insert(program.end(), what.begin(), what.end());
  }
  program.push_back(answer(calls == SystemCalls::kDriver ? kAllow : kKill));
  return program;
}

}  // namespace hone
