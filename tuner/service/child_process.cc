#include "tuner/service/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr uint32_t kLongestMessage = 64u << 20;

int MillisUntil(absl::Time deadline) {
  const int64_t millis = absl::ToInt64Milliseconds(deadline - absl::Now());
  return static_cast<int>(std::clamp<int64_t>(millis, 0, 3'600'000));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const std::string& program,
                                                                  const std::vector<std::string>& arguments) {
  if (access(program.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("cannot start ", program, ": ", std::strerror(errno)));
  }
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return absl::ResourceExhaustedError(absl::StrCat("pipe: ", std::strerror(errno)));
  if (pipe2(out, O_CLOEXEC) != 0) {
    close(in[0]);
    close(in[1]);
    return absl::ResourceExhaustedError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  std::vector<char*> argv;
  argv.push_back(const_cast<char*>(program.c_str()));
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    // Only calls that are safe after fork in a program with threads.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    setpgid(0, 0);                              // Ctrl-C in a terminal is for the program the user started
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  if (pid < 0) {
    close(in[1]);
    close(out[0]);
    return absl::ResourceExhaustedError(absl::StrCat("fork: ", std::strerror(errno)));
  }
  fcntl(in[1], F_SETFL, O_NONBLOCK);
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, in[1], out[0]));
}

ChildProcess::~ChildProcess() {
  if (!collected_) {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
  }
  close(to_);
  close(from_);
}

void ChildProcess::Kill() { kill(pid_, SIGKILL); }

absl::Status ChildProcess::Send(const std::string& message, absl::Time deadline) {
  if (message.size() > kLongestMessage) {
    return absl::ResourceExhaustedError(absl::StrCat("a message of ", message.size(), " bytes is too long"));
  }
  const uint32_t size = static_cast<uint32_t>(message.size());
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8) frame.push_back(static_cast<char>(size >> shift));
  frame += message;
  for (size_t done = 0; done < frame.size();) {
    const ssize_t wrote = write(to_, frame.data() + done, frame.size() - done);
    if (wrote > 0) {
      done += wrote;
      continue;
    }
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno != EAGAIN) return absl::UnavailableError(HowItEnded());
    pollfd entry{to_, POLLOUT, 0};
    if (poll(&entry, 1, MillisUntil(deadline)) == 0) return absl::DeadlineExceededError("it does not read its requests");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ChildProcess::Receive(absl::Time deadline) {
  unsigned char head[4];
  HONE_RETURN_IF_ERROR(Fill(reinterpret_cast<char*>(head), sizeof(head), deadline));
  const uint32_t size = head[0] | head[1] << 8 | head[2] << 16 | static_cast<uint32_t>(head[3]) << 24;
  if (size > kLongestMessage) return absl::DataLossError(absl::StrCat("it announced a message of ", size, " bytes"));
  std::string message(size, '\0');
  HONE_RETURN_IF_ERROR(Fill(message.data(), size, deadline));
  return message;
}

absl::Status ChildProcess::Fill(char* data, size_t size, absl::Time deadline) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = read(from_, data + done, size - done);
    if (got > 0) {
      done += got;
      continue;
    }
    if (got == 0) return absl::UnavailableError(HowItEnded());
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return absl::UnavailableError(std::strerror(errno));
    pollfd entry{from_, POLLIN, 0};
    if (poll(&entry, 1, MillisUntil(deadline)) == 0) return absl::DeadlineExceededError("no answer in time");
  }
  return absl::OkStatus();
}

std::string ChildProcess::HowItEnded() {
  if (collected_) return "it has ended";
  int status = 0;
  // It closed its end: give it a moment to be gone, so that the reason can be told.
  for (int i = 0; i < 50; ++i) {
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      collected_ = true;
      if (WIFSIGNALED(status)) return absl::StrCat("it was ended by signal ", WTERMSIG(status));
      return absl::StrCat("it exited with code ", WEXITSTATUS(status));
    }
    usleep(2'000);
  }
  return "it closed its pipes";
}

}  // namespace hone
