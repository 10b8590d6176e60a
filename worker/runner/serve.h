// The runner's main loop.
#pragma once

#include <memory>
#include <span>

#include "compiler/sandbox/enter.h"
#include "deploy/runtime/error.h"
#include "worker/runner/served_candidate.h"

namespace hone {

// What kind of candidates a runner executes, and how it locks itself in.
struct RunnerKind {
  ProcessKind process = ProcessKind::kRunner;
  // Called when all layers but the filter of system calls hold; of drivers, when that holds too. kNotFound: there is no
  // device, whatever the candidate is.
  RuntimeResult<std::unique_ptr<ServedCandidate>> (*load)(const LoadRequest& request,
                                                          std::span<const int> files) = nullptr;
  std::span<const OpenFolder> folders = {};  // that stay open to it
  int64_t file_bytes = 0;                    // the longest file that it may write there
};

// Serves one agent over `socket` until it closes; returns the exit code. The process must have one thread.
int ServeRunner(int socket, const RunnerKind& kind);

}  // namespace hone
