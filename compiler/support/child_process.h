// A program of ours, started beside this one and spoken to over pipes.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone {

// Those in which a program sees nothing of this machine's others.
inline constexpr int kAllNamespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET;

struct ChildOptions {
  bool pipes = true;         // standard input and output are pipes of ours; otherwise they are /dev/null
  bool detached = false;     // in a session of its own, and not ended with its parent
  std::string error_file;    // standard error is appended there; empty: it is ours
  bool error_pipe = false;   // standard error is kept for TakeErrors; a child that writes more than fits is not held up
  int namespaces = 0;        // of kAllNamespaces: those it gets of its own, as far as the kernel gives them
  std::vector<int> inherit;  // further descriptors the child keeps, under the same numbers
};

class ChildProcess {
 public:
  // `program` is a path. NotFound, PermissionDenied or Internal when it cannot be started, ResourceExhausted when a
  // process, a descriptor or memory is missing now. Unless detached, the child is killed when its parent's thread ends
  // (PR_SET_PDEATHSIG) or when this is destroyed. It inherits no descriptor but those named.
  static absl::StatusOr<ChildProcess> Start(const std::string& program, const std::vector<std::string>& args,
                                            const ChildOptions& options = {});
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  // Kills and reaps, unless detached. Waits two seconds at most for the end: a process in an uninterruptible system
  // call (a disk or a device that does not answer) ends after that alone, and is left to whoever calls Left or Start
  // next.
  ~ChildProcess();
  // Those that were left and have not ended yet. The others are reaped.
  static std::vector<pid_t> Left();

  pid_t pid() const { return pid_; }
  int input() const { return input_; }    // to the child; -1 without pipes
  int output() const { return output_; }  // from the child
  void CloseInput();
  // The namespaces it is in: CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWNET. In a user namespace it is the
  // superuser of that, until it gives its capabilities up.
  int namespaces() const { return namespaces_; }
  // What it wrote to standard error since the last call, with an error_pipe: 64 KiB at most, the rest is lost.
  std::string TakeErrors();

  // The wait status once it has ended; nullopt while it runs, or when it is still running after `timeout`.
  std::optional<int> Poll();
  std::optional<int> Wait(absl::Duration timeout);
  void Kill(int signal);

 private:
  ChildProcess() = default;
  pid_t pid_ = -1;
  int input_ = -1, output_ = -1, errors_ = -1;
  int namespaces_ = 0;
  bool detached_ = false;
  std::optional<int> status_;
};

// "ended with 3", "killed by signal 11 (Segmentation fault)".
std::string DescribeWaitStatus(int status);

}  // namespace hone
