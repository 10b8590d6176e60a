#include "compiler/driver/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "compiler/driver/exit_code.h"

namespace hone {
namespace {

std::atomic<int> interrupted_by{0};

extern "C" void NoteSignal(int signal) {
  if (interrupted_by != 0) ::_exit(128 + signal);
  interrupted_by = signal;
}

}  // namespace

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = NoteSignal;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

bool Interrupted() { return interrupted_by != 0; }

int InterruptedCode() {
  return static_cast<int>(interrupted_by == SIGINT ? ExitCode::kInterrupted : ExitCode::kTerminated);
}

absl::Status InterruptedStatus(const std::string& message) {
  return WithExitCode(static_cast<ExitCode>(InterruptedCode()), absl::CancelledError(message));
}

}  // namespace hone
