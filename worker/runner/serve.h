// The runner's main loop.
#pragma once

namespace hone {

// Serves one agent over `socket` until it closes; returns the exit code. The process must have one thread.
int ServeRunner(int socket);

}  // namespace hone
