// Ctrl-C and SIGTERM, for a command that ends in order: it asks often, and has two seconds. A second signal ends the
// program at once.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace hone {

void CatchInterrupts();
bool Interrupted();
// 130 or 143, once interrupted.
int InterruptedCode();
absl::Status InterruptedStatus(const std::string& message);  // with that exit code

}  // namespace hone
