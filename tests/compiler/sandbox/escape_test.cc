// What a program that was taken over may try once it is locked in. Each attempt is made in a process of its own, by the
// policy of each kind; and again with every single layer left out, where another one has to refuse it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
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

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/sandbox/enter.h"
#include "compiler/sandbox/layers.h"
#include "compiler/support/check.h"
#include "compiler/support/sanitized.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

// What there is to be reached, made by the test before anybody is locked in.
struct Outside {
  char folder[64] = "/tmp/hone-escape-XXXXXX";
  char secret[96], made[96], socket_path[96];
  pid_t parent = ::getpid();
  int leaked = -1;  // a descriptor that a parent forgot
  int tcp_port = 0, udp_port = 0;
  int shared_memory = -1;
  char memory[8] = "parent";
  std::vector<int> descriptors;
};
Outside* outside = nullptr;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
sockaddr_un UnixAddress(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
  return address;
}
// In the abstract name space: a zero first. One of each type.
constexpr char kAbstract[] = "\0hone-escape-test";
sockaddr_un AbstractAddress(int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s-%d-%d", kAbstract + 1, outside->parent, type);
  return address;
}
template <class Address>
bool Connects(int family, int type, const Address& address) {
  const int fd = ::socket(family, type, 0);
  return fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}
template <class Address>
int Listen(int type, Address address) {
  const int fd = ::socket(reinterpret_cast<const sockaddr*>(&address)->sa_family, type | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0) << std::strerror(errno);
  EXPECT_TRUE(type == SOCK_DGRAM || ::listen(fd, 64) == 0);
  outside->descriptors.push_back(fd);
  return fd;
}
int PortOf(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

bool Opens(const char* path, int flags) { return ::open(path, flags, 0600) >= 0; }
long Call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  return ::syscall(number, a, b, c, d, e);
}
template <class T>
long At(const T* pointer) {
  return reinterpret_cast<long>(pointer);
}

struct Escape {
  const char* name;
  bool (*succeeds)();
  uint32_t alone = 0;  // the layer that alone refuses it; without it this is possible and reaches nobody else
};

// clang-format off
const Escape kEscapes[] = {
    // ---- files ----
    {"ReadsAFile", [] { return Opens(outside->secret, O_RDONLY); }},
    {"WritesAFile", [] { return Opens(outside->secret, O_WRONLY | O_APPEND); }},
    {"MakesAFile", [] { return Opens(outside->made, O_WRONLY | O_CREAT); }},
    {"ReadsPasswords", [] { return Opens("/etc/passwd", O_RDONLY); }},
    {"ReadsAFolder", [] { char room[512]; const int fd = ::open(outside->folder, O_RDONLY | O_DIRECTORY);
                          return fd >= 0 && Call(SYS_getdents64, fd, At(room), sizeof(room)) > 0; }},
    {"OpensByOpenat2", [] { const uint64_t how[3] = {O_RDONLY, 0, 0};
                            return Call(SYS_openat2, AT_FDCWD, At(outside->secret), At(how), sizeof(how)) >= 0; }},
    {"RemovesAFile", [] { return ::unlink(outside->secret) == 0; }},
    {"RenamesAFile", [] { return ::rename(outside->secret, outside->made) == 0; }},
    {"LinksAFile", [] { return ::link(outside->secret, outside->made) == 0; }},
    {"MakesASymlink", [] { return ::symlink("/etc/passwd", outside->made) == 0; }},
    {"MakesAFolder", [] { return ::mkdir(outside->made, 0700) == 0; }},
    {"MakesAPipe", [] { return ::mkfifo(outside->made, 0600) == 0; }},
    {"MakesADevice", [] { return ::mknod(outside->made, S_IFCHR | 0600, 0x101) == 0; }},
    {"CutsAFile", [] { return ::truncate(outside->secret, 0) == 0; }},
    {"ChangesAMode", [] { return ::chmod(outside->secret, 0777) == 0; }},
    {"ChangesAnOwner", [] { return ::chown(outside->secret, 1, 1) == 0; }},
    {"LeavesItsRoot", [] { return ::chroot("..") == 0 && Opens("etc/passwd", O_RDONLY); }},
    {"Mounts", [] { return ::mount("none", "/tmp", "tmpfs", 0, nullptr) == 0; }},
    {"Unmounts", [] { return ::umount2("/proc", MNT_DETACH) == 0; }},
    {"OpensItsMemory", [] { return Opens("/proc/self/mem", O_RDWR); }},
    {"OpensItsParentsMemory", [] { char path[64]; std::snprintf(path, sizeof(path), "/proc/%d/mem", outside->parent);
                                   return Opens(path, O_RDWR); }},
    {"OpensMachineMemory", [] { return Opens("/dev/mem", O_RDWR); }},
    {"WritesAGibibyte", [] { const int fd = static_cast<int>(Call(SYS_memfd_create, At("x"), 0));
                             return fd >= 0 && ::ftruncate(fd, 1 << 30) == 0; }},
    {"UsesALeakedDescriptor", [] { char byte; return ::pread(outside->leaked, &byte, 1, 0) == 1; }},
    // ---- network ----
    {"ConnectsByTcp", [] { return Connects(AF_INET, SOCK_STREAM, Loopback(outside->tcp_port)); }},
    {"ListensByTcp", [] { const sockaddr_in any = Loopback(0); const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
                          return fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0; }},
    {"ConnectsByUdp", [] { const sockaddr_in to = Loopback(outside->udp_port);
                           const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
                           return fd >= 0 && ::sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 1; }},
    {"ConnectsToASocketFile", [] { return Connects(AF_UNIX, SOCK_STREAM, UnixAddress(outside->socket_path)); }},
    {"ConnectsToAnAbstractSocket", [] { return Connects(AF_UNIX, SOCK_STREAM, AbstractAddress(SOCK_STREAM)); }},
    {"ConnectsBySequencedPackets", [] { return Connects(AF_UNIX, SOCK_SEQPACKET, AbstractAddress(SOCK_SEQPACKET)); }},
    {"SendsToAnAbstractSocket", [] { const sockaddr_un to = AbstractAddress(SOCK_DGRAM);
                                     const int fd = ::socket(AF_UNIX, SOCK_DGRAM, 0);
                                     return fd >= 0 && ::sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 1; }},
    {"OpensARawSocket", [] { return ::socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0; }},
    {"OpensAPacketSocket", [] { return ::socket(AF_PACKET, SOCK_RAW, 0) >= 0; }},
    // ---- other processes ----
    {"SignalsItsParent", [] { return ::kill(outside->parent, 0) == 0; }},
    {"SignalsAThreadOfItsParent", [] { return Call(SYS_tgkill, outside->parent, outside->parent, 0) == 0; }},
    {"TracesItsParent", [] { return ::ptrace(PTRACE_SEIZE, outside->parent, nullptr, nullptr) == 0; }},
    {"ReadsItsParentsMemory", [] { char room[8]; const iovec to{room, 8}, from{outside->memory, 8};
                                   return ::process_vm_readv(outside->parent, &to, 1, &from, 1, 0) == 8; }},
    {"WritesItsParentsMemory", [] { char room[8] = {}; const iovec from{room, 8}, to{outside->memory, 8};
                                    return ::process_vm_writev(outside->parent, &from, 1, &to, 1, 0) == 8; }},
    {"HoldsItsParent", [] { return Call(SYS_pidfd_open, outside->parent, 0) >= 0; }},
    {"TakesADescriptorOfItsParent", [] { const long fd = Call(SYS_pidfd_open, outside->parent, 0);
                                         return fd >= 0 && Call(SYS_pidfd_getfd, fd, outside->leaked, 0) >= 0; }},
    {"LimitsItsParent", [] { const rlimit one{1, 1};
                             return Call(SYS_prlimit64, outside->parent, RLIMIT_NOFILE, At(&one), 0) == 0; }},
    {"SlowsItsParent", [] { return ::setpriority(PRIO_PROCESS, static_cast<id_t>(outside->parent), 19) == 0; }},
    {"MovesItsParent", [] { cpu_set_t set; CPU_ZERO(&set); CPU_SET(0, &set);
                            return ::sched_setaffinity(outside->parent, sizeof(set), &set) == 0; }},
    {"EntersItsParentsNamespaces", [] { const long fd = Call(SYS_pidfd_open, outside->parent, 0);
                                        return fd >= 0 && Call(SYS_setns, fd, CLONE_NEWNET) == 0; }},
    {"AttachesSharedMemory", [] { return ::shmat(outside->shared_memory, nullptr, 0) != reinterpret_cast<void*>(-1); }},
    {"RemovesSharedMemory", [] { return ::shmctl(outside->shared_memory, IPC_RMID, nullptr) == 0; }},
    {"Executes", [] { const pid_t pid = ::fork(); if (pid == 0) { ::execl("/bin/true", "true", nullptr); ::_exit(1); }
                      int status = 1; return pid > 0 && ::waitpid(pid, &status, 0) == pid && status == 0; }},
    {"ExecutesMemory", [] { const int from = ::open("/bin/true", O_RDONLY); return from >= 0; }},
    {"Forks", [] { const pid_t pid = ::fork(); if (pid == 0) ::_exit(0); return pid > 0; },
     // Its children are locked in as it is, and end with it; a control group bounds how many. RLIMIT_NPROC would count
     // its threads with all of its user's processes, and does not hold for the superuser.
     kLayerSystemCalls},
    // ---- the kernel ----
    {"LoadsAModule", [] { return Call(SYS_init_module, At(outside->memory), 6, At("")) == 0; }},
    {"TracesTheKernel", [] { perf_event_attr attr{}; attr.type = PERF_TYPE_TRACEPOINT; attr.size = sizeof(attr);
                             return Call(SYS_perf_event_open, At(&attr), -1, 0, -1, 0) >= 0; }},
    {"SetsTheClock", [] { const timespec time{1, 0}; return ::clock_settime(CLOCK_REALTIME, &time) == 0; }},
    {"NamesTheMachine", [] { return ::sethostname("x", 1) == 0; }},
    {"ReadsTheKernelsLog", [] { char room[64]; return Call(SYS_syslog, 3, At(room), sizeof(room)) >= 0 &&
                                                      Call(SYS_syslog, 8, 0, 1) == 0; }},
    {"Restarts", [] { return Call(SYS_reboot, 0, 0, 0, 0) == 0; }},
    {"SwapsToAFile", [] { return Call(SYS_swapon, At(outside->secret), 0) == 0; }},
    {"KeepsAccounts", [] { return Call(SYS_acct, At(outside->secret)) == 0; }},
    {"RaisesItsLimits", [] { const rlimit more{1 << 20, 1 << 20}; return ::setrlimit(RLIMIT_FSIZE, &more) == 0; }},
    {"UsesIoUring", [] { char params[256] = {}; return Call(SYS_io_uring_setup, 4, At(params)) >= 0; }},
    {"LoadsAKernelProgram", [] { char attr[128] = {}; attr[0] = 2; attr[4] = 4; attr[8] = 4; attr[12] = 1;  // a map
                                 return Call(SYS_bpf, 0, At(attr), sizeof(attr)) >= 0; }},
    {"MakesExecutableMemory", [] { return ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED; },
     // Code of its own has the rights of the process. Linux refuses it otherwise from 6.3 on (PR_SET_MDWE).
     kLayerSystemCalls},
    {"MakesAUserNamespace", [] { return ::unshare(CLONE_NEWUSER) == 0; }},
    {"TakesATebibyte", [] { return ::mmap(nullptr, size_t{1} << 40, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED; }},
};
// clang-format on

void MakeOutside() {
  outside = new Outside;
  ASSERT_NE(::mkdtemp(outside->folder), nullptr);
  std::snprintf(outside->secret, sizeof(outside->secret), "%s/secret", outside->folder);
  std::snprintf(outside->made, sizeof(outside->made), "%s/made", outside->folder);
  std::snprintf(outside->socket_path, sizeof(outside->socket_path), "%s/socket", outside->folder);
  outside->leaked = ::open(outside->secret, O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::write(outside->leaked, "secret", 6), 6);
  outside->tcp_port = PortOf(Listen(SOCK_STREAM, Loopback(0)));
  outside->udp_port = PortOf(Listen(SOCK_DGRAM, Loopback(0)));
  Listen(SOCK_STREAM, UnixAddress(outside->socket_path));
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM}) Listen(type, AbstractAddress(type));
  outside->shared_memory = ::shmget(IPC_PRIVATE, 4096, 0600);
  ASSERT_GE(outside->shared_memory, 0);
}
void TakeOutsideAway() {
  ::shmctl(outside->shared_memory, IPC_RMID, nullptr);
  for (const int fd : outside->descriptors) ::close(fd);
  ::close(outside->leaked);
  for (const char* path : {outside->secret, outside->made, outside->socket_path}) ::unlink(path);
  ::rmdir(outside->folder);
  delete outside;
}

constexpr int kEscaped = 42, kRefused = 43;

// As ChildProcess starts one, without a program: namespaces, then the layers of `wanted`, then `attempt`. The layers
// that held, and whether it escaped; nothing when this machine cannot start it in those namespaces.
struct Tried {
  uint32_t layers = 0;
  bool escaped = false;
};
std::optional<Tried> Try(SystemCalls calls, uint32_t wanted, bool (*attempt)()) {
  int report[2];
  HONE_CHECK(::pipe2(report, O_CLOEXEC) == 0);
  int flags = 0;
  for (const int flag : {CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWNET}) {
    if ((LayersOfNamespaces(flag) & wanted & MissingLayers(0)) != 0) flags |= flag;
  }
  const std::string map = "0 " + std::to_string(::geteuid()) + " 1";
  const pid_t pid = static_cast<pid_t>(::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, 0));
  if (pid < 0) {
    ::close(report[0]);
    ::close(report[1]);
    return std::nullopt;
  }
  if (pid == 0) {
    ::alarm(20);
    if ((flags & CLONE_NEWUSER) != 0) {
      const int file = ::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
      if (::write(file, map.data(), map.size()) < 0) ::_exit(1);
    }
    SandboxLimits limits;
    limits.wanted = wanted;
    limits.memory_bytes = int64_t{16} << 30;
    limits.max_descriptors = SandboxPolicyOf(ProcessKind::kBuilder).max_descriptors;
    const int keep = report[1];
    uint32_t layers = EnterSandbox(limits, {&keep, 1}) | LayersOfNamespaces(flags);
    // Said before the filter holds, which lets a kernel write nothing.
    layers |= (wanted & MissingLayers(0) & kLayerSystemCalls);
    if (::write(report[1], &layers, sizeof(layers)) != sizeof(layers)) ::_exit(1);
    if ((wanted & kLayerSystemCalls) != 0 && LockSystemCalls(calls) == 0 && !kSanitized) ::_exit(1);
    ::syscall(SYS_exit_group, attempt() ? kEscaped : kRefused);
  }
  ::close(report[1]);
  Tried tried;
  const bool told = ::read(report[0], &tried.layers, sizeof(tried.layers)) == sizeof(tried.layers);
  ::close(report[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  EXPECT_TRUE(told && !(WIFEXITED(status) && WEXITSTATUS(status) == 1)) << "could not be locked in";
  EXPECT_TRUE(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM) << "took too long";
  tried.escaped = WIFEXITED(status) && WEXITSTATUS(status) == kEscaped;
  return tried;
}

class Escapes : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a program with a sanitizer has no filter of system calls";
    MakeOutside();
    const std::optional<Tried> all = Try(SystemCalls::kProgram, ~0u, [] { return false; });
    available_ = all.has_value() ? all->layers : MissingLayers(LayersSomeSystemsLack()) | kLayerLandlock;
    available_ |= kLayerControlGroup;  // whoever starts a process puts it there; nothing here rests on it
    missing_ = MissingLayers(available_);
    if (missing_ != 0) std::printf("this machine does not give: %s\n", LayerNames(missing_).c_str());
  }
  void TearDown() override {
    if (outside != nullptr) TakeOutsideAway();
    outside = nullptr;
  }
  uint32_t available_ = 0, missing_ = 0;
};

// Outside of a sandbox many of them work: it is the sandbox that refuses them here.
TEST_F(Escapes, AreRefused) {
  int possible = 0;
  for (const Escape& escape : kEscapes) {
    for (const SystemCalls calls : {SystemCalls::kProgram, SystemCalls::kKernel}) {
      const std::optional<Tried> tried = Try(calls, available_, escape.succeeds);
      ASSERT_TRUE(tried.has_value()) << escape.name;
      EXPECT_FALSE(tried->escaped) << escape.name;
    }
    // What would end the test's own parent or change the machine is not tried without any layer.
    const bool harmless = std::string(escape.name).rfind("Reads", 0) == 0 ||
                          std::string(escape.name).rfind("Connects", 0) == 0 ||
                          std::string(escape.name).rfind("Signals", 0) == 0;
    if (!harmless) continue;
    const std::optional<Tried> tried = Try(SystemCalls::kProgram, 0, escape.succeeds);
    possible += tried.has_value() && tried->escaped;
  }
  EXPECT_GE(static_cast<int>(std::size(kEscapes)), 50);
  EXPECT_GE(possible, 8) << "the attempts are not what they say";
}

// What has a driver loaded may open files and start programs; its filter alone keeps it from other processes, the
// network and the machine.
TEST_F(Escapes, OfDriversReachNoOtherProcess) {
  const std::set<std::string> kRefused = {"LeavesItsRoot",
                                          "Mounts",
                                          "Unmounts",
                                          "ConnectsByTcp",
                                          "ListensByTcp",
                                          "ConnectsByUdp",
                                          "ConnectsToASocketFile",
                                          "ConnectsToAnAbstractSocket",
                                          "OpensARawSocket",
                                          "OpensAPacketSocket",
                                          "SignalsItsParent",
                                          "SignalsAThreadOfItsParent",
                                          "TracesItsParent",
                                          "ReadsItsParentsMemory",
                                          "WritesItsParentsMemory",
                                          "HoldsItsParent",
                                          "TakesADescriptorOfItsParent",
                                          "LimitsItsParent",
                                          "SlowsItsParent",
                                          "EntersItsParentsNamespaces",
                                          "AttachesSharedMemory",
                                          "RemovesSharedMemory",
                                          "LoadsAModule",
                                          "TracesTheKernel",
                                          "SetsTheClock",
                                          "NamesTheMachine",
                                          "ReadsTheKernelsLog",
                                          "Restarts",
                                          "SwapsToAFile",
                                          "KeepsAccounts",
                                          "UsesIoUring",
                                          "LoadsAKernelProgram",
                                          "MakesAUserNamespace"};
  size_t tried = 0;
  for (const Escape& escape : kEscapes) {
    if (!kRefused.contains(escape.name)) continue;
    const std::optional<Tried> driver =
        Try(SystemCalls::kDriver, kLayerNoNewPrivs | kLayerSystemCalls | kLayerCapabilities, escape.succeeds);
    ASSERT_TRUE(driver.has_value()) << escape.name;
    EXPECT_FALSE(driver->escaped) << escape.name;
    ++tried;
  }
  EXPECT_EQ(tried, kRefused.size());
}

// Landlock leaves a driver the folders that it is made of, and nothing else.
TEST_F(Escapes, OfDriversOpenTheirFoldersAlone) {
  if ((available_ & kLayerLandlock) == 0) GTEST_SKIP() << "this machine has no landlock";
  static const OpenFolder kFolders[] = {{"/usr"}};
  const auto opens = [](bool (*attempt)()) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      EnterSandbox({.wanted = kLayerNoNewPrivs | kLayerLandlock, .folders = kFolders}, {});
      ::_exit(attempt() ? kEscaped : kRefused);
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) && WEXITSTATUS(status) == kEscaped;
  };
  EXPECT_TRUE(opens([] { return Opens("/usr/bin/env", O_RDONLY); }));
  EXPECT_FALSE(opens([] { return Opens("/usr/new-file", O_WRONLY | O_CREAT); }));
  EXPECT_FALSE(opens([] { return Opens(outside->secret, O_RDONLY); }));
  EXPECT_FALSE(opens([] { return Opens("/etc/passwd", O_RDONLY); }));
}

TEST_F(Escapes, AreRefusedByAnotherLayerWhereOneIsMissing) {
  if (missing_ != 0) GTEST_SKIP() << "this machine does not give: " << LayerNames(missing_);
  std::map<std::string, int> by_layer;
  for (const SandboxLayerInfo& info : SandboxLayers()) {
    // Landlock and the filter rest on no-new-privs: without it the kernel sets neither, and a process without any of
    // the three is refused (CheckLayers). Of a control group all attempts go without.
    if (info.layer == kLayerNoNewPrivs || info.layer == kLayerControlGroup) continue;
    for (const Escape& escape : kEscapes) {
      const std::optional<Tried> tried =
          Try(SystemCalls::kProgram, available_ & ~static_cast<uint32_t>(info.layer), escape.succeeds);
      if (!tried.has_value()) {  // namespaces without a user namespace are the superuser's
        std::printf("not tried without %s: this user cannot be in the other namespaces\n", info.name);
        break;
      }
      EXPECT_EQ(tried->layers & info.layer, 0u) << info.name;
      EXPECT_TRUE(!tried->escaped || (escape.alone & info.layer) != 0) << escape.name << " without " << info.name;
      ++by_layer[info.name];
    }
  }
  EXPECT_GE(by_layer.size(), 10u);
}

}  // namespace
}  // namespace hone
