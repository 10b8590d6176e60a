// A program of ours that reads what strangers wrote: started in namespaces, locked in by the policy of its kind before
// it reads a byte, and spoken to in framed messages (compiler/support/frame.h) over its standard input and output.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/sandbox/control_group.h"
#include "compiler/sandbox/policy.h"
#include "compiler/support/child_process.h"

namespace hone {

struct SandboxedProgram {
  std::string path;
  std::vector<std::string> arguments = {};
  uint32_t allowed_missing = 0;  // layers that it may lack (CheckLayers)
};

class SandboxedProcess {
 public:
  // The thread that calls this must outlive the child: the kernel ties "dies with its parent" to it. Errors as of
  // ChildProcess::Start; PermissionDenied when a layer is missing that may not be, Unavailable when the program ends
  // before it said which it has.
  static absl::StatusOr<std::unique_ptr<SandboxedProcess>> Start(const SandboxedProgram& program);

  // DeadlineExceeded when the child does not take the message in time; Unavailable when it is gone: the message says
  // how it ended and what it wrote last.
  absl::Status Send(std::string_view message, absl::Duration timeout);
  // As Send; DataLoss when the message is longer than `limit` bytes.
  absl::StatusOr<std::string> Receive(size_t limit, absl::Duration timeout);
  void Kill();  // from any thread: Receive then ends

  pid_t pid() const { return child_.pid(); }
  uint32_t layers() const { return layers_; }  // that hold
  // What it wrote to standard error since the last call, its last 4 KiB, as printable lines.
  std::string TakeErrors();

 private:
  explicit SandboxedProcess(ChildProcess child) : child_(std::move(child)) {}
  absl::Status HowItEnded(absl::Status status);

  std::optional<ControlGroup> group_;  // of the child: outlives it
  ChildProcess child_;
  uint32_t layers_ = 0;
};

// The other end, first in the program's main, while it has one thread: locks itself in and says which layers hold.
// Descriptors above standard error are closed but for `keep`. False when the other end is closed.
bool LockInAndReport(ProcessKind kind, std::span<const int> keep = {});

}  // namespace hone
