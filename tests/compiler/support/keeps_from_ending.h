// Makes a process that does not end when it is killed, as one in an uninterruptible system call.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace hone {

// `pid` is the first process of a pid namespace: it ends once all others there were reaped, and one of them has its
// parent outside, which does not reap it.
class KeepsFromEnding {
 public:
  explicit KeepsFromEnding(pid_t pid) {
    const int names = ::open(("/proc/" + std::to_string(pid) + "/ns/pid").c_str(), O_RDONLY | O_CLOEXEC);
    int ready[2];
    if (::pipe(ready) != 0) return;
    parent_ = ::fork();
    if (parent_ == 0) {
      if (::setns(names, CLONE_NEWPID) != 0) ::_exit(1);
      if (::fork() != 0) { [[maybe_unused]] const ssize_t told = ::write(ready[1], "x", 1); }
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    holds_ = ::read(ready[0], &byte, 1) == 1;
    ::close(ready[0]);
    ::close(names);
  }
  ~KeepsFromEnding() { LetGo(); }
  KeepsFromEnding(const KeepsFromEnding&) = delete;

  bool holds() const { return holds_; }  // false where nobody may enter a pid namespace, or there is none
  void LetGo() {
    if (parent_ <= 0) return;
    ::kill(parent_, SIGKILL);
    ::waitpid(parent_, nullptr, 0);
    parent_ = -1;
  }

 private:
  pid_t parent_ = -1;
  bool holds_ = false;
};

}  // namespace hone
