// Locks a process in, in two steps: what must happen while it has one thread, and what must wait until its threads,
// memory and code are there. Every layer that the kernel does not offer is left out and not reported, so that the agent
// can refuse to go on.
#pragma once

#include <cstdint>

namespace hone {

enum SandboxLayer : uint32_t {
  kLayerDeathSignal = 1u << 0,  // ends with its parent
  kLayerNoNewPrivs = 1u << 1,
  kLayerLimits = 1u << 2,       // rlimits: CPU, files, core, descriptors
  kLayerMemoryLimit = 1u << 3,  // RLIMIT_AS
  kLayerLandlock = 1u << 4,     // no file of any file system
  kLayerNetwork = 1u << 5,      // an empty network namespace
  kLayerSystemCalls = 1u << 6,  // seccomp: read and write of open descriptors, futex, time, exit; all else ends the
                                // process, but for memory calls, which are refused
};

struct SandboxLimits {
  uint32_t wanted = ~0u;  // layers to try
  int cpu_seconds = 60;
  int64_t memory_bytes = 0;  // 0: no limit
  int max_descriptors = 64;
};

// Before the first thread is made. Returns the layers that hold.
uint32_t EnterSandbox(const SandboxLimits& limits);
// After all is mapped and all threads run; covers every thread. Nothing is allocated afterwards. Returns the further
// layers.
uint32_t LockSandbox(uint32_t wanted);

}  // namespace hone
