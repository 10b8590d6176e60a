#include "compiler/support/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hone {
namespace {

void CloseIfOpen(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// After vfork, before exec, with all signals blocked: async-signal-safe calls alone, and no write to memory but the
// stack. Reports a failure through `report`.
[[noreturn, gnu::noinline]] void BecomeChild(const char* program, char* const* argv, const ChildOptions& options,
                                             int in, int out, int error, pid_t parent, int report) {
  if (options.detached) {
    ::setsid();
  } else {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent went before the request took effect
  }
  ::dup2(in, 0);
  ::dup2(out, 1);
  if (error >= 0) ::dup2(error, 2);
  for (const int fd : options.inherit) ::fcntl(fd, F_SETFD, 0);
  // A handler of the parent's would run on the parent's memory.
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    const bool ignored = ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
    if (!ignored || number == SIGPIPE) ::signal(number, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(program, argv);
  const int code = errno;
  [[maybe_unused]] const ssize_t told = ::write(report, &code, sizeof(code));
  ::_exit(127);
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::string& program, const std::vector<std::string>& args,
                                                 const ChildOptions& options) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);

  int to_child[2] = {-1, -1}, from_child[2] = {-1, -1}, report[2] = {-1, -1}, error = -1;
  const auto close_all = [&] {
    for (int* fd : {&to_child[0], &to_child[1], &from_child[0], &from_child[1], &report[0], &report[1], &error})
      CloseIfOpen(*fd);
  };
  bool ok = ::pipe2(report, O_CLOEXEC) == 0;
  if (options.pipes) {
    ok = ok && ::pipe2(to_child, O_CLOEXEC) == 0 && ::pipe2(from_child, O_CLOEXEC) == 0;
  } else {
    to_child[0] = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    from_child[1] = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ok = ok && to_child[0] >= 0 && from_child[1] >= 0;
  }
  if (!options.error_file.empty()) {
    error = ::open(options.error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ok = ok && error >= 0;
  }
  const pid_t parent = ::getpid();
  // vfork: a worker holds much memory, and to copy its page tables takes longer than all the rest of starting a
  // program.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  const pid_t pid = ok ? ::vfork() : -1;
  if (pid == 0)
    BecomeChild(program.c_str(), argv.data(), options, to_child[0], from_child[1], error, parent, report[1]);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    const int code = errno;
    close_all();
    return absl::InternalError(absl::StrCat("cannot start ", program, ": ", std::strerror(code)));
  }
  CloseIfOpen(report[1]);
  CloseIfOpen(to_child[0]);
  CloseIfOpen(from_child[1]);
  CloseIfOpen(error);
  int code = 0;
  ssize_t got;
  while ((got = ::read(report[0], &code, sizeof(code))) < 0 && errno == EINTR) {}
  CloseIfOpen(report[0]);
  if (got == static_cast<ssize_t>(sizeof(code))) {  // exec failed; on success the pipe just closed
    ::waitpid(pid, nullptr, 0);
    close_all();
    const std::string text = absl::StrCat("cannot start ", program, ": ", std::strerror(code));
    return code == ENOENT   ? absl::NotFoundError(text)
           : code == EACCES ? absl::PermissionDeniedError(text)
                            : absl::InternalError(text);
  }
  ChildProcess child;
  child.pid_ = pid;
  child.input_ = to_child[1];
  child.output_ = from_child[0];
  child.detached_ = options.detached;
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(input_, other.input_);
  std::swap(output_, other.output_);
  std::swap(detached_, other.detached_);
  std::swap(status_, other.status_);
  return *this;
}

ChildProcess::~ChildProcess() {
  CloseIfOpen(input_);
  CloseIfOpen(output_);
  if (pid_ < 0 || detached_ || status_.has_value()) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
}

void ChildProcess::CloseInput() { CloseIfOpen(input_); }

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
