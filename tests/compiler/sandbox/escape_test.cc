// What a program that was taken over may try once it is locked in. Each attempt is made in a process of its own, by the
// policy of each kind: with all layers, with each layer that is to refuse it alone, and with every single layer left
// out, where another one has to refuse it.
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>

#include "compiler/sandbox/enter.h"
#include "compiler/sandbox/layers.h"
#include "compiler/sandbox/policy.h"
#include "compiler/support/sanitized.h"
#include "gtest/gtest.h"
#include "tests/compiler/sandbox/locked_in.h"
#include "tests/compiler/sandbox/outside.h"

namespace hone {
namespace {

template <class Address>
bool Connects(int family, int type, const Address& address) {
  const int fd = ::socket(family, type, 0);
  return fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

bool Opens(const char* path, int flags) { return ::open(path, flags, 0600) >= 0; }
long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return ::syscall(number, a, b, c, d, e);
}
template <class T>
long At(const T* pointer) {
  return reinterpret_cast<long>(pointer);
}

// No attempt changes the machine where it succeeds: what would is asked for with nonsense, of which the system says
// `nonsense` to those alone who may do it at all.
bool LooksAtIt(long result, int nonsense) { return result == 0 || errno == nonsense; }

constexpr int kManyProcesses = 2 * kMostProcesses;

// Whoever has ended and is not waited for counts as a process.
bool StartsMany() {
  for (int i = 0; i < kManyProcesses; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(0);
    if (pid < 0) return false;
  }
  return true;
}

bool RunsAndSucceeds(const char* path, int fd) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    char name[] = "true";
    char* const arguments[] = {name, nullptr};
    Call(SYS_execveat, fd, At(path), At(arguments), At(environ), AT_EMPTY_PATH);
    ::_exit(1);
  }
  int status = 1;
  return pid > 0 && ::waitpid(pid, &status, 0) == pid && status == 0;
}

// Layers, of which each refuses an attempt by itself.
constexpr uint32_t kCalls = kLayerSystemCalls, kFiles = kLayerLandlock, kRoot = kLayerEmptyRoot, kLimits = kLayerLimits,
                   kMemory = kLayerMemoryLimit, kUser = kLayerUserNamespace, kPids = kLayerPidNamespace,
                   kIpc = kLayerIpcNamespace, kNetwork = kLayerNetwork, kRights = kLayerCapabilities,
                   kDescriptors = kLayerDescriptors, kGroup = kLayerControlGroup;
// Those of them that older kernels have without this.
constexpr uint32_t kTcp = 1u << 28, kScopes = 1u << 29, kCuts = 1u << 30;  // landlock's, of versions 4, 6 and 3
constexpr uint32_t kNoNewCode = 1u << 31;                                  // of the limits

// A descriptor more than a runner or builder may have is refused to it by the limits, whatever call would give it.
constexpr uint32_t kOpens = kCalls | kFiles | kRoot | kLimits;  // a file
constexpr uint32_t kNames = kCalls | kFiles | kRoot;            // or changes where it is
constexpr uint32_t kMachine = kCalls | kRights | kUser;         // what is the superuser's
constexpr uint32_t kTraces = kCalls | kFiles | kUser | kPids;

// Why one layer alone refuses an attempt, or none.
constexpr char kItsChildren[] = "its children are locked in as it is, and a control group bounds how many";
constexpr char kItsCode[] = "a driver compiles and starts programs, which are locked in as it is";
constexpr char kItsFiles[] = "a driver opens files: without landlock, those of its user (worker/README.md)";
constexpr char kItsModes[] = "a linker that a driver starts changes modes; landlock has no right for it";
constexpr char kItsUsers[] =
    "it shares its user and its pid namespace with others, and does them no harm by more than this";
constexpr char kItsFilter[] = "the kernel has nothing else against it; what comes of it meets the other layers";
constexpr char kItsMemory[] = "a driver has files in memory; they count to its control group";

struct Escape {
  const char* name;
  bool (*succeeds)();
  uint32_t walls;         // of a runner and of a builder
  uint32_t driver_walls;  // of a device runner
  const char* why = nullptr;
};

// clang-format off
const Escape kEscapes[] = {
    // ---- files ----
    {"ReadsAFile", [] { return Opens(outside->secret, O_RDONLY); }, kOpens, kFiles, kItsFiles},
    {"WritesAFile", [] { return Opens(outside->secret, O_WRONLY | O_APPEND); }, kOpens, kFiles, kItsFiles},
    {"MakesAFile", [] { return Opens(outside->made, O_WRONLY | O_CREAT); }, kOpens, kFiles, kItsFiles},
    {"ReadsPasswords", [] { return Opens("/etc/passwd", O_RDONLY); }, kOpens, 0, kItsFiles},
    {"ReadsAFolder", [] { char room[512]; const int fd = ::open(outside->folder, O_RDONLY | O_DIRECTORY);
                          return fd >= 0 && Call(SYS_getdents64, fd, At(room), sizeof(room)) > 0; },
     kOpens, kFiles, kItsFiles},
    {"OpensByOpenat2", [] { const uint64_t how[3] = {O_RDONLY, 0, 0};
                            return Call(SYS_openat2, AT_FDCWD, At(outside->secret), At(how), sizeof(how)) >= 0; },
     kOpens, kFiles, kItsFiles},
    {"RemovesAFile", [] { return ::unlink(outside->secret) == 0; }, kNames, kFiles, kItsFiles},
    {"RenamesAFile", [] { return ::rename(outside->secret, outside->made) == 0; }, kNames, kFiles, kItsFiles},
    {"LinksAFile", [] { return ::link(outside->secret, outside->made) == 0; }, kNames, kFiles, kItsFiles},
    {"MakesASymlink", [] { return ::symlink("/etc/passwd", outside->made) == 0; }, kNames, kFiles, kItsFiles},
    {"MakesAFolder", [] { return ::mkdir(outside->made, 0700) == 0; }, kNames, kFiles, kItsFiles},
    {"MakesAPipe", [] { return ::mkfifo(outside->made, 0600) == 0; }, kNames, kFiles, kItsFiles},
    {"MakesADevice", [] { return ::mknod(outside->made, S_IFCHR | 0600, 0x101) == 0; },
     kNames | kRights | kUser, kFiles | kRights | kUser},
    {"CutsAFile", [] { return ::truncate(outside->secret, 0) == 0; }, kCalls | kRoot | kCuts, kCuts, kItsFiles},
    {"ChangesAMode", [] { return ::chmod(outside->secret, 0777) == 0; }, kCalls | kRoot, 0, kItsModes},
    {"ChangesAnOwner", [] { return ::chown(outside->secret, 1, 1) == 0; }, kCalls | kRoot | kRights | kUser, kRights | kUser},
    {"LeavesItsRoot", [] { return ::chroot("..") == 0 && Opens("etc/passwd", O_RDONLY); }, kOpens | kRights, kCalls | kRights},
    {"Mounts", [] { return LooksAtIt(::mount("none", outside->folder, "no-such-type", 0, nullptr), ENODEV); },
     kMachine | kFiles | kRoot, kMachine | kFiles},
    {"Unmounts", [] { return LooksAtIt(::umount2(outside->folder, MNT_DETACH), EINVAL); }, kMachine | kRoot, kMachine},
    {"OpensItsMemory", [] { return Opens("/proc/self/mem", O_RDWR); }, kOpens, kFiles, kItsCode},
    {"OpensItsParentsMemory", [] { char path[64]; std::snprintf(path, sizeof(path), "/proc/%d/mem", outside->parent);
                                   return Opens(path, O_RDWR); },
     kOpens | kUser, kFiles | kUser},
    {"OpensMachineMemory", [] { return Opens("/dev/mem", O_RDWR); }, kOpens | kRights | kUser, kRights | kUser},
    {"WritesAGibibyte", [] { const int fd = static_cast<int>(Call(SYS_memfd_create, At("x"), 0));
                             return fd >= 0 && ::ftruncate(fd, 1 << 30) == 0; },
     kCalls | kLimits, kLimits, kItsMemory},
    {"UsesALeakedDescriptor", [] { char byte; return ::pread(outside->leaked, &byte, 1, 0) == 1; },
     kCalls | kDescriptors, kDescriptors, kItsFiles},
    // ---- network ----
    {"ConnectsByTcp", [] { return Connects(AF_INET, SOCK_STREAM, Loopback(outside->tcp_port)); },
     kCalls | kLimits | kNetwork | kTcp, kCalls | kNetwork | kTcp},
    {"ListensByTcp", [] { const sockaddr_in any = Loopback(0); const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
                          return fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0; },
     kCalls | kLimits | kTcp, kCalls | kTcp},
    {"ConnectsByUdp", [] { const sockaddr_in to = Loopback(outside->udp_port);
                           const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
                           return fd >= 0 && ::sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 1; },
     kCalls | kLimits | kNetwork, kCalls | kNetwork},
    {"ConnectsToASocketFile", [] { return Connects(AF_UNIX, SOCK_STREAM, UnixAddress(outside->socket_path)); },
     kCalls | kLimits | kRoot, kCalls, kItsFilter},
    {"ConnectsToAnAbstractSocket", [] { return Connects(AF_UNIX, SOCK_STREAM, AbstractAddress(SOCK_STREAM)); },
     kCalls | kLimits | kNetwork | kScopes, kCalls | kNetwork | kScopes},
    {"ConnectsBySequencedPackets", [] { return Connects(AF_UNIX, SOCK_SEQPACKET, AbstractAddress(SOCK_SEQPACKET)); },
     kCalls | kLimits | kNetwork | kScopes, kCalls | kNetwork | kScopes},
    {"SendsToAnAbstractSocket", [] { const sockaddr_un to = AbstractAddress(SOCK_DGRAM);
                                     const int fd = ::socket(AF_UNIX, SOCK_DGRAM, 0);
                                     return fd >= 0 && ::sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 1; },
     kCalls | kLimits | kNetwork | kScopes, kCalls | kNetwork | kScopes},
    {"OpensARawSocket", [] { return ::socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0; }, kMachine | kLimits, kMachine},
    {"OpensAPacketSocket", [] { return ::socket(AF_PACKET, SOCK_RAW, 0) >= 0; }, kMachine | kLimits, kMachine},
    // ---- other processes ----
    {"SignalsItsParent", [] { return ::kill(outside->parent, 0) == 0; }, kCalls | kPids | kScopes, kCalls | kScopes},
    {"SignalsAThreadOfItsParent", [] { return Call(SYS_tgkill, outside->parent, outside->parent, 0) == 0; },
     kCalls | kPids | kScopes, kCalls | kScopes},
    {"TracesItsParent", [] { return ::ptrace(PTRACE_SEIZE, outside->parent, nullptr, nullptr) == 0; },
     kTraces, kTraces & ~kPids},
    {"ReadsItsParentsMemory", [] { char room[8]; const iovec to{room, 8}, from{outside->memory, 8};
                                   return ::process_vm_readv(outside->parent, &to, 1, &from, 1, 0) == 8; },
     kTraces, kTraces & ~kPids},
    {"WritesItsParentsMemory", [] { char room[8] = {}; const iovec from{room, 8}, to{outside->memory, 8};
                                    return ::process_vm_writev(outside->parent, &from, 1, &to, 1, 0) == 8; },
     kTraces, kTraces & ~kPids},
    {"HoldsItsParent", [] { return Call(SYS_pidfd_open, outside->parent, 0) >= 0; },
     kCalls | kPids | kLimits, kCalls, kItsUsers},
    {"TakesADescriptorOfItsParent", [] { const long fd = Call(SYS_pidfd_open, outside->parent, 0);
                                         return fd >= 0 && Call(SYS_pidfd_getfd, fd, outside->leaked, 0) >= 0; },
     kTraces | kLimits, kTraces & ~kPids},
    {"LimitsItsParent", [] { rlimit same{}; return Call(SYS_prlimit64, outside->parent, RLIMIT_NOFILE, 0, At(&same)) == 0 &&
                             Call(SYS_prlimit64, outside->parent, RLIMIT_NOFILE, At(&same), 0) == 0; },
     kCalls | kPids, kCalls, kItsUsers},
    {"SlowsItsParent", [] { return ::setpriority(PRIO_PROCESS, static_cast<id_t>(outside->parent),
                                                 ::getpriority(PRIO_PROCESS, static_cast<id_t>(outside->parent))) == 0; },
     kCalls | kPids, kCalls, kItsUsers},
    {"MovesItsParent", [] { cpu_set_t set; return ::sched_getaffinity(outside->parent, sizeof(set), &set) == 0 &&
                            ::sched_setaffinity(outside->parent, sizeof(set), &set) == 0; },
     kCalls | kPids, 0, kItsUsers},
    {"EntersItsParentsNamespaces", [] { const long fd = Call(SYS_pidfd_open, outside->parent, 0);
                                        return fd >= 0 && Call(SYS_setns, fd, CLONE_NEWNET) == 0; },
     kMachine | kPids | kLimits, kMachine},
    {"AttachesSharedMemory", [] { return ::shmat(outside->shared_memory, nullptr, 0) != reinterpret_cast<void*>(-1); },
     kCalls | kIpc, kCalls | kIpc},
    {"RemovesSharedMemory", [] { return ::shmctl(outside->shared_memory, IPC_RMID, nullptr) == 0; },
     kCalls | kIpc, kCalls | kIpc},
    {"Executes", [] { return RunsAndSucceeds("/bin/true", AT_FDCWD); }, kNames, 0, kItsCode},
    {"ExecutesMemory", [] { const int fd = static_cast<int>(Call(SYS_memfd_create, At("x"), MFD_CLOEXEC));
                            const ssize_t size = static_cast<ssize_t>(outside->program.size());
                            return ::write(fd, outside->program.data(), outside->program.size()) == size &&
                                   RunsAndSucceeds("", fd); },
     kCalls | kLimits, 0, kItsCode},
    {"Forks", [] { const pid_t pid = ::fork(); if (pid == 0) ::_exit(0); return pid > 0; }, kCalls, 0, kItsChildren},
    {"StartsMany", &StartsMany, kCalls | kGroup, kGroup, kItsCode},
    // ---- the kernel ----
    {"LoadsAModule", [] { return LooksAtIt(Call(SYS_init_module, At(outside->memory), 6, At("")), ENOEXEC); }, kMachine, kMachine},
    {"TracesTheKernel", [] { perf_event_attr attr{}; attr.type = PERF_TYPE_SOFTWARE; attr.size = sizeof(attr);
                             return Call(SYS_perf_event_open, At(&attr), -1, 0, -1, 0) >= 0; },
     kMachine | kLimits, kMachine},
    {"SetsTheClock", [] { timespec now{}; return ::clock_gettime(CLOCK_REALTIME, &now) == 0 &&
                          ::clock_settime(CLOCK_REALTIME, &now) == 0; },
     kMachine, kMachine},
    {"NamesTheMachine", [] { char name[256]; return ::gethostname(name, sizeof(name)) == 0 &&
                             ::sethostname(name, std::strlen(name)) == 0; },
     kMachine, kMachine},
    {"ReadsTheKernelsLog", [] { return Call(SYS_syslog, 9, 0, 0) >= 0; }, kMachine, kMachine},  // how much is unread
    {"Restarts", [] { constexpr long kNoSuchCommand = 1;
                      return LooksAtIt(Call(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, kNoSuchCommand, 0), EINVAL); },
     kMachine, kMachine},
    {"SwapsToAFile", [] { return LooksAtIt(Call(SYS_swapon, At(outside->secret), 0), EINVAL); }, kMachine | kRoot, kMachine},
    {"KeepsAccounts", [] { return LooksAtIt(Call(SYS_acct, At(outside->folder)), EISDIR); }, kMachine | kRoot, kMachine},
    {"RaisesItsLimits", [] { const rlimit more{1 << 20, 1 << 20}; return ::setrlimit(RLIMIT_MSGQUEUE, &more) == 0; },
     kMachine, kRights | kUser},
    {"UsesIoUring", [] { char params[256] = {}; return Call(SYS_io_uring_setup, 4, At(params)) >= 0; },
     kCalls | kLimits, kCalls, kItsFilter},
    {"LoadsAKernelProgram", [] { char attr[128] = {}; attr[0] = 9; attr[4] = 4; attr[8] = 4; attr[12] = 1;  // a map
                                 return Call(SYS_bpf, 0, At(attr), sizeof(attr)) >= 0; },
     kMachine | kLimits, kMachine},
    {"MakesExecutableMemory", [] { return ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED; },
     kCalls | kNoNewCode, 0, kItsCode},
    {"MakesAUserNamespace", [] { return ::unshare(CLONE_NEWUSER) == 0; }, kCalls | kRoot, kCalls, kItsFilter},
    {"TakesATebibyte", [] { return ::mmap(nullptr, size_t{1} << 40, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED; },
     kMemory | kLimits, kMemory | kLimits},
};
// clang-format on

// One row for each way to be locked in: searches and oracles are as builders.
constexpr LockedIn kKinds[] = {
    {"Runner", ProcessKind::kRunner, 0},
    {"Builder", ProcessKind::kBuilder, 0},
    {"DeviceRunner", ProcessKind::kDeviceRunner, kLayerEmptyRoot | kLayerPidNamespace},
};

TEST(SandboxPolicies, OfSearchesAndOraclesAreThoseOfBuildersButForMemoryAndTime) {
  const SandboxPolicy& builder = SandboxPolicyOf(ProcessKind::kBuilder);
  for (const ProcessKind kind : {ProcessKind::kSearch, ProcessKind::kOracle}) {
    const SandboxPolicy& policy = SandboxPolicyOf(kind);
    EXPECT_EQ(policy.system_calls, builder.system_calls) << policy.program;
    EXPECT_EQ(policy.max_descriptors, builder.max_descriptors) << policy.program;
    EXPECT_EQ(policy.namespaces, builder.namespaces) << policy.program;
  }
}

// The layers that refuse it, as this machine's kernel has them.
uint32_t WallsOf(const Escape& escape, ProcessKind kind) {
  static const long landlock = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  constexpr int kGetMdwe = 66;  // PR_GET_MDWE
  static const bool no_new_code = ::prctl(kGetMdwe, 0, 0, 0, 0) >= 0;
  uint32_t walls = kind == ProcessKind::kDeviceRunner ? escape.driver_walls : escape.walls;
  const auto resolve = [&](uint32_t wall, uint32_t layer, bool has) {
    if ((walls & wall) != 0) walls = (walls & ~wall) | (has ? layer : 0);
  };
  resolve(kTcp, kFiles, landlock >= 4);
  resolve(kScopes, kFiles, landlock >= 6);
  resolve(kCuts, kFiles, landlock >= 3);
  resolve(kNoNewCode, kLimits, no_new_code);
  return walls;
}

// Who has only one wall, or none, says why.
TEST(EscapeTable, EveryAttemptHasTwoWallsOrAReason) {
  for (const Escape& escape : kEscapes) {
    const bool two = std::popcount(escape.walls) >= 2 && std::popcount(escape.driver_walls) >= 2;
    EXPECT_NE(two, escape.why != nullptr) << escape.name;
    // A runner and a builder, which what strangers wrote runs in or is read in, have two always but for one attempt.
    EXPECT_TRUE(std::popcount(escape.walls) >= 2 || escape.why == kItsChildren) << escape.name;
  }
}

class Escapes : public LockedInTest {
 protected:
  using LockedInTest::Try;
  std::optional<Tried> Try(uint32_t wanted, const Escape& escape) {
    return Try(wanted, Attempt{.succeeds = escape.succeeds, .walls = WallsOf(escape, GetParam().kind)});
  }
  // An attempt has to be refused where one of its walls held; `not_refused` gets the names of the others.
  void ExpectRefused(const Escape& escape, const Tried& tried, std::string* not_refused) {
    const uint32_t walls = WallsOf(escape, GetParam().kind) & tried.layers;
    if (walls == 0) {
      *not_refused += std::string(" ") + escape.name;
    } else {
      EXPECT_FALSE(tried.escaped) << escape.name << " under " << LayerNames(tried.layers);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, Escapes, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(Escapes, AreRefused) {
  EXPECT_GE(std::size(kEscapes), 50u);
  std::string not_refused;
  for (const Escape& escape : kEscapes) {
    const std::optional<Tried> tried = Try(available_, escape);
    ASSERT_TRUE(tried.has_value()) << escape.name;
    ExpectRefused(escape, *tried, &not_refused);
  }
  if (!not_refused.empty()) std::printf("not to be refused:%s\n", not_refused.c_str());
}

// Without any layer, what would change the machine or what the others are to find is not tried.
TEST_P(Escapes, ArePossibleOutside) {
  int possible = 0;
  for (const Escape& escape : kEscapes) {
    const std::string name = escape.name;
    const bool harmless = name.rfind("Reads", 0) == 0 || name.rfind("Connects", 0) == 0 ||
                          name.rfind("Signals", 0) == 0 || name.rfind("Executes", 0) == 0 ||
                          name.rfind("Holds", 0) == 0 || name == "StartsMany" || name == "MakesExecutableMemory";
    if (!harmless) continue;
    const std::optional<Tried> tried = Try(0, Attempt{.succeeds = escape.succeeds, .anyway = true});
    possible += tried.has_value() && tried->escaped;
  }
  EXPECT_GE(possible, 14) << "the attempts are not what they say";
}

// A wall that is said to refuse an attempt does so by itself.
TEST_P(Escapes, AreRefusedByEachWallAlone) {
  for (const Escape& escape : kEscapes) {
    for (const SandboxLayerInfo& info : SandboxLayers()) {
      if ((WallsOf(escape, GetParam().kind) & available_ & info.layer) == 0) continue;
      uint32_t wanted = info.layer;
      // What the kernel gives to such processes alone.
      if ((info.layer & (kCalls | kFiles)) != 0) wanted |= kLayerNoNewPrivs;
      if ((info.layer & (kRoot | kPids | kIpc | kNetwork)) != 0 && ::geteuid() != 0) wanted |= kUser;
      const std::optional<Tried> tried = Try(wanted, escape);
      ASSERT_TRUE(tried.has_value()) << escape.name << " under " << info.name;
      EXPECT_EQ(tried->layers, wanted) << escape.name;
      EXPECT_FALSE(tried->escaped) << escape.name << " under " << info.name << " alone";
    }
  }
}

TEST_P(Escapes, AreRefusedByAnotherLayerWhereOneIsMissing) {
  for (const SandboxLayerInfo& info : SandboxLayers()) {
    if ((available_ & info.layer) == 0) continue;
    if (info.layer == kLayerNoNewPrivs && ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
      std::printf("not tried without no-new-privs: whoever started this test set it for good\n");
      continue;
    }
    // Landlock and the filter rest on no-new-privs: the kernel sets neither without it, and then what they alone would
    // refuse is possible. Nobody is let run so, whichever single layer may be missing.
    const uint32_t lost =
        info.layer | (info.layer == kLayerNoNewPrivs ? (kLayerLandlock | kLayerSystemCalls) & available_ : 0);
    if (info.layer == kLayerNoNewPrivs) {
      EXPECT_FALSE(CheckLayers("p", available_ & ~lost, MissingLayers(available_) | info.layer).ok());
    }
    std::string not_refused;
    for (const Escape& escape : kEscapes) {
      if (WallsOf(escape, GetParam().kind) == 0) continue;
      const std::optional<Tried> tried = Try(available_ & ~static_cast<uint32_t>(info.layer), escape);
      if (!tried.has_value()) {  // namespaces without a user namespace are the superuser's
        not_refused = " all: this user cannot be in the other namespaces";
        break;
      }
      EXPECT_EQ(tried->layers & lost, 0u) << info.name;
      ExpectRefused(escape, *tried, &not_refused);
    }
    if (!not_refused.empty()) std::printf("without %s not to be refused:%s\n", info.name, not_refused.c_str());
  }
}

// Landlock leaves a driver the folders that it is made of, and nothing else.
TEST(EscapesOfDrivers, OpenTheirFoldersAlone) {
  if (kSanitized) GTEST_SKIP() << "a program with a sanitizer reads files";
  if (::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1) {
    GTEST_SKIP() << "this machine has no landlock";
  }
  const auto opens = [](const char* path, int flags) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      EnterSandbox({.wanted = kLayerNoNewPrivs | kLayerLandlock, .folders = DriverFolders()}, {});
      ::_exit(Opens(path, flags) ? kEscaped : kRefused);
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) && WEXITSTATUS(status) == kEscaped;
  };
  EXPECT_TRUE(opens("/usr/bin/env", O_RDONLY));
  EXPECT_TRUE(opens("/etc/passwd", O_RDONLY));
  EXPECT_TRUE(opens("/dev/null", O_WRONLY));
  EXPECT_FALSE(opens("/usr/new-file", O_WRONLY | O_CREAT));
  EXPECT_FALSE(opens("/tmp", O_RDONLY | O_DIRECTORY));
  EXPECT_FALSE(opens("/root", O_RDONLY | O_DIRECTORY));
}

}  // namespace
}  // namespace hone
