// How a process locks itself in, from its own main. No layer is an error when the kernel does not offer it: it is left
// out of the bits that are returned, and the parent process decides.
//
//   const uint32_t layers = EnterSandbox(limits, keep);   // one thread, nothing of a stranger's read yet
//   ... threads, memory and code that are needed ...
//   layers | LockSystemCalls(SystemCalls::kKernel);       // from here on the filter holds, for every thread
#pragma once

#include <cstdint>
#include <span>

#include "compiler/sandbox/policy.h"

namespace hone {

struct SandboxLimits {
  uint32_t wanted = ~0u;  // layers to try: bits of SandboxLayer
  int cpu_seconds = 0;    // 0: no limit
  int64_t memory_bytes = 0;
  int max_descriptors = 64;
  int64_t file_bytes = 0;  // the longest file that it may write
  std::span<const OpenFolder> folders =
      {};  // that stay open; none: the root directory is left as well (kLayerEmptyRoot)
};

// All layers but the filter of system calls and the namespaces: a process is started in those, so its parent knows them
// (compiler/support/child_process.h). Before the first thread is made. Descriptors above standard error are
// closed but for `keep`. Returns the layers that hold.
uint32_t EnterSandbox(const SandboxLimits& limits, std::span<const int> keep);

// Once all code is loaded. The filter, for every thread: kLayerSystemCalls, or 0 when it cannot be set. With the
// limits, where the kernel has it (Linux 6.3), goes that no memory becomes executable any more, which the filter
// refuses too; a driver compiles for the host as late as it launches, and may have such memory. `wanted`: as of
// SandboxLimits.
uint32_t LockSystemCalls(SystemCalls calls, uint32_t wanted = ~0u);

// Both, by the policy of that kind: for a program that needs nothing more of the system.
uint32_t EnterAndLock(ProcessKind kind, std::span<const int> keep = {});

}  // namespace hone
