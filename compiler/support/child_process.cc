#include "compiler/support/child_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/support/sanitized.h"

namespace hone {
namespace {

void CloseIfOpen(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// Of the namespaces that are wanted, what to try in this order: the superuser may have the others without a user
// namespace.
constexpr int kTries[] = {kAllNamespaces, kAllNamespaces & ~CLONE_NEWUSER, 0};
// The first of them that the kernel gave. Most systems give all; one that refuses once does so every time.
std::atomic<size_t> first_try{0};

// Whether a process, a descriptor or memory is missing, as may pass: that says nothing of what the kernel gives.
bool IsShortage(int error) { return error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOMEM; }

struct Launch {
  const char* program;
  char* const* argv;
  const ChildOptions* options;
  int in, out, error;
  int report[2];  // a pipe: what exec failed with is written to the second end
  int namespaces;
  uid_t user;  // outside of them
};

void CloseOnExec(int first) {
  if (::syscall(SYS_close_range, first, ~0u, CLOSE_RANGE_CLOEXEC) == 0) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (rlim_t fd = static_cast<rlim_t>(first); fd < limit.rlim_cur; ++fd) {
    ::fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
  }
}

// The child is the superuser of its user namespace, which is the only user there; as another it could not change its
// root once it runs. `id` is its user outside.
void MapUser(unsigned id) {
  char line[32] = "0 ", digits[12];
  int length = 2, count = 0;
  do digits[count++] = static_cast<char>('0' + id % 10);
  while ((id /= 10) != 0);
  while (count > 0) line[length++] = digits[--count];
  line[length++] = ' ';
  line[length++] = '1';
  const int map = ::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
  [[maybe_unused]] const ssize_t written = ::write(map, line, static_cast<size_t>(length));
  ::close(map);
}

// Before exec, on memory that is its parent's, with all signals blocked: async-signal-safe calls alone, and no write to
// memory but the stack. Reports a failure through `report`.
int BecomeChild(void* of) {
  const Launch& launch = *static_cast<const Launch*>(of);
  const int report = launch.report[1];
  if (launch.options->detached) {
    ::setsid();
  } else {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // A parent that went before the request took effect reads no report any more. (Its id tells nothing: in a pid
    // namespace of one's own there is no parent.)
    ::close(launch.report[0]);
    pollfd gone{report, 0, 0};
    if (::poll(&gone, 1, 0) > 0) ::_exit(127);
  }
  if ((launch.namespaces & CLONE_NEWUSER) != 0) MapUser(launch.user);
  ::dup2(launch.in, 0);
  ::dup2(launch.out, 1);
  if (launch.error >= 0) ::dup2(launch.error, 2);
  CloseOnExec(STDERR_FILENO + 1);
  for (const int fd : launch.options->inherit) ::fcntl(fd, F_SETFD, 0);
  // A handler of the parent's would run on the parent's memory.
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    const bool ignored = ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
    if (!ignored || number == SIGPIPE) ::signal(number, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(launch.program, launch.argv);
  const int code = errno;
  [[maybe_unused]] const ssize_t told = ::write(report, &code, sizeof(code));
  ::_exit(127);
}

// As vfork: a worker holds much memory, and to copy its page tables takes longer than all the rest of starting a
// program. The stack is another one, since a child on its parent's must not return from the function that made it.
pid_t Clone(Launch& launch) {
  if constexpr (kSanitized) {  // which would not know that stack
    const pid_t pid = ::vfork();
    if (pid == 0) BecomeChild(&launch);
    return pid;
  }
  constexpr size_t kStack = 64 << 10;
  const std::unique_ptr<char[]> stack(new char[kStack]);
  char* top = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(stack.get() + kStack) & ~uintptr_t{15});
  return ::clone(&BecomeChild, top, CLONE_VM | CLONE_VFORK | SIGCHLD | launch.namespaces, &launch);
}

struct Launched {
  pid_t pid = -1;
  int error = 0;         // why there is none
  bool by_exec = false;  // `error` is what starting the program failed with
};

Launched LaunchOnce(Launch launch) {
  if (::pipe2(launch.report, O_CLOEXEC) != 0) return {.error = errno};
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  Launched launched{.pid = Clone(launch)};
  launched.error = launched.pid < 0 ? errno : 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(launch.report[1]);
  if (launched.pid > 0) {
    int code = 0;
    ssize_t got;
    while ((got = ::read(launch.report[0], &code, sizeof(code))) < 0 && errno == EINTR) {}
    if (got == static_cast<ssize_t>(sizeof(code))) {  // on success exec just closed the pipe
      ::waitpid(launched.pid, nullptr, 0);
      launched = {.pid = -1, .error = code, .by_exec = true};
    }
  }
  ::close(launch.report[0]);
  return launched;
}

// In as many namespaces as the kernel gives; those it gave are left in `launch`.
Launched LaunchInNamespaces(Launch& launch) {
  for (size_t i = first_try;; ++i) {
    launch.namespaces = launch.options->namespaces & kTries[i];
    const Launched launched = LaunchOnce(launch);
    if (launched.pid > 0 || IsShortage(launched.error) || i + 1 == std::size(kTries)) return launched;
    if (launched.by_exec) {
      // The superuser of a namespace may not enter what only its owner may, and this process perhaps may.
      if (launched.error != EACCES) return launched;
    } else {
      first_try = i + 1;
    }
  }
}

constexpr absl::Duration kLongestDeath = absl::Seconds(2);

// Killed children whose handles are gone.
struct LeftChildren {
  std::mutex mutex;
  std::vector<pid_t> pids;
};
LeftChildren& TheLeft() {
  static LeftChildren& left = *new LeftChildren;
  return left;
}

}  // namespace

std::vector<pid_t> ChildProcess::Left() {
  LeftChildren& left = TheLeft();
  const std::lock_guard<std::mutex> lock(left.mutex);
  std::erase_if(left.pids, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
  return left.pids;
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::string& program, const std::vector<std::string>& args,
                                                 const ChildOptions& options) {
  Left();  // reaps
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);

  int to_child[2] = {-1, -1}, from_child[2] = {-1, -1}, errors[2] = {-1, -1};
  const auto close_all = [&] {
    for (int* ends : {to_child, from_child, errors}) {
      CloseIfOpen(ends[0]);
      CloseIfOpen(ends[1]);
    }
  };
  bool ok = true;
  if (options.pipes) {
    ok = ::pipe2(to_child, O_CLOEXEC) == 0 && ::pipe2(from_child, O_CLOEXEC) == 0;
  } else {
    to_child[0] = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    from_child[1] = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ok = to_child[0] >= 0 && from_child[1] >= 0;
  }
  if (options.error_pipe) {
    ok = ok && ::pipe2(errors, O_CLOEXEC | O_NONBLOCK) == 0;
  } else if (!options.error_file.empty()) {
    errors[1] = ::open(options.error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ok = ok && errors[1] >= 0;
  }
  Launch launch{program.c_str(), argv.data(), &options, to_child[0], from_child[1],
                errors[1],       {-1, -1},    0,        ::geteuid()};
  const Launched launched = !ok                                      ? Launched{.error = errno}
                            : options.namespaces != 0 && !kSanitized ? LaunchInNamespaces(launch)
                                                                     : LaunchOnce(launch);
  if (launched.pid < 0) {
    close_all();
    const std::string text = absl::StrCat("cannot start ", program, ": ", std::strerror(launched.error));
    return launched.error == ENOENT     ? absl::NotFoundError(text)
           : launched.error == EACCES   ? absl::PermissionDeniedError(text)
           : IsShortage(launched.error) ? absl::ResourceExhaustedError(text)
                                        : absl::InternalError(text);
  }
  CloseIfOpen(to_child[0]);
  CloseIfOpen(from_child[1]);
  CloseIfOpen(errors[1]);
  ChildProcess child;
  child.pid_ = launched.pid;
  child.input_ = to_child[1];
  child.output_ = from_child[0];
  child.errors_ = errors[0];
  child.namespaces_ = launch.namespaces;
  child.detached_ = options.detached;
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(input_, other.input_);
  std::swap(output_, other.output_);
  std::swap(errors_, other.errors_);
  std::swap(namespaces_, other.namespaces_);
  std::swap(detached_, other.detached_);
  std::swap(status_, other.status_);
  return *this;
}

ChildProcess::~ChildProcess() {
  CloseIfOpen(input_);
  CloseIfOpen(output_);
  CloseIfOpen(errors_);
  if (pid_ < 0 || detached_ || status_.has_value()) return;
  ::kill(pid_, SIGKILL);
  if (Wait(kLongestDeath).has_value()) return;
  LeftChildren& left = TheLeft();
  const std::lock_guard<std::mutex> lock(left.mutex);
  left.pids.push_back(pid_);
}

void ChildProcess::CloseInput() { CloseIfOpen(input_); }

std::string ChildProcess::TakeErrors() {
  constexpr size_t kMost = 64 << 10;
  std::string text;
  char bytes[4096];
  for (ssize_t got; errors_ >= 0 && text.size() < kMost && (got = ::read(errors_, bytes, sizeof(bytes))) > 0;) {
    text.append(bytes, static_cast<size_t>(got));
  }
  return text;
}

std::optional<int> ChildProcess::Poll() {
  if (!status_.has_value() && pid_ > 0) {
    int status = 0;
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) status_ = status;
  }
  return status_;
}

std::optional<int> ChildProcess::Wait(absl::Duration timeout) {
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  for (auto pause = std::chrono::microseconds(200);; pause = std::min(pause * 2, std::chrono::microseconds(20000))) {
    if (Poll().has_value() || std::chrono::steady_clock::now() >= end) return status_;
    std::this_thread::sleep_for(pause);
  }
}

void ChildProcess::Kill(int signal) {
  if (pid_ > 0 && !status_.has_value()) ::kill(pid_, signal);
}

std::string DescribeWaitStatus(int status) {
  if (WIFSIGNALED(status)) {
    return absl::StrCat("killed by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  }
  return absl::StrCat("ended with ", WEXITSTATUS(status));
}

}  // namespace hone
