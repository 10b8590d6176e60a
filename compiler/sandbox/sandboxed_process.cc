#include "compiler/sandbox/sandboxed_process.h"

#include <signal.h>
#include <sys/wait.h>

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/sandbox/enter.h"
#include "compiler/sandbox/layers.h"
#include "compiler/support/frame.h"
#include "compiler/support/printable.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(60);  // of a loaded machine
constexpr size_t kLastWords = 4 << 10;
constexpr int64_t kMostMemory = int64_t{16} << 30;  // of a program that has no policy by its name
constexpr int kMostProcesses = 4096;                // with threads: some for each core of a large machine

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

absl::StatusOr<std::unique_ptr<SandboxedProcess>> SandboxedProcess::Start(const SandboxedProgram& program) {
  const SandboxPolicy* policy = FindSandboxPolicy(BaseName(program.path));
  HONE_ASSIGN_OR_RETURN(
      ChildProcess child,
      ChildProcess::Start(program.path, program.arguments,
                          {.error_pipe = true, .namespaces = policy != nullptr ? policy->namespaces : kAllNamespaces}));
  std::unique_ptr<SandboxedProcess> process(new SandboxedProcess(std::move(child)));
  process->group_ = ControlGroup::Make(
      {.memory_bytes = policy != nullptr ? policy->memory_bytes : kMostMemory, .processes = kMostProcesses});
  const bool in_group = process->group_.has_value() && process->group_->Add(process->pid());
  HONE_ASSIGN_OR_RETURN(const std::string report, process->Receive(sizeof(uint32_t), kStartTimeout));
  if (report.size() != sizeof(uint32_t)) {
    return absl::UnavailableError(absl::StrCat(program.path, " does not say how it is locked in"));
  }
  std::memcpy(&process->layers_, report.data(), sizeof(uint32_t));
  process->layers_ |= LayersOfNamespaces(process->child_.namespaces());
  if (in_group) process->layers_ |= kLayerControlGroup;
  HONE_RETURN_IF_ERROR(CheckLayers(BaseName(program.path), process->layers_, program.allowed_missing));
  return process;
}

absl::Status SandboxedProcess::Send(std::string_view message, absl::Duration timeout) {
  return HowItEnded(WriteFrame(child_.input(), message, timeout));
}

absl::StatusOr<std::string> SandboxedProcess::Receive(size_t limit, absl::Duration timeout) {
  absl::StatusOr<std::string> bytes = ReadFrame(child_.output(), limit, timeout);
  if (!bytes.ok()) return HowItEnded(bytes.status());
  return bytes;
}

void SandboxedProcess::Kill() { child_.Kill(SIGKILL); }

std::string SandboxedProcess::TakeErrors() {
  std::string text = child_.TakeErrors();
  if (text.size() > kLastWords) text.erase(0, text.size() - kLastWords);
  return std::string(absl::StripAsciiWhitespace(Printable(text)));
}

absl::Status SandboxedProcess::HowItEnded(absl::Status status) {
  if (!absl::IsUnavailable(status) && !absl::IsOutOfRange(status)) return status;
  const std::optional<int> ended = child_.Wait(absl::Seconds(5));
  std::string how = ended.has_value() ? DescribeWaitStatus(*ended) : "it closed its output";
  if (ended.has_value() && WIFSIGNALED(*ended) && WTERMSIG(*ended) == SIGSYS) {
    absl::StrAppend(&how, " for a system call that it must not make");
  }
  if (const std::string words = TakeErrors(); !words.empty()) absl::StrAppend(&how, ": ", words);
  return absl::UnavailableError(how);
}

bool LockInAndReport(ProcessKind kind, std::span<const int> keep) {
  const uint32_t layers = EnterAndLock(kind, keep);
  return WriteFrame(1, std::string_view(reinterpret_cast<const char*>(&layers), sizeof(layers))).ok();
}

}  // namespace hone
