// The layers of the sandbox in which a process runs or reads what a stranger wrote, as bits. Each is a wall of its own,
// and most things are refused by two of them, so that one that is missing or broken opens nothing by itself. A process
// tries all of them and says which hold; its parent decides whether they are enough (layers.h).
#pragma once

#include <cstdint>

namespace hone {

enum SandboxLayer : uint32_t {
  kLayerDeathSignal = 1u << 0,    // it is killed when the thread that started it ends
  kLayerNoNewPrivs = 1u << 1,     // no program it starts gives it rights (PR_SET_NO_NEW_PRIVS)
  kLayerLimits = 1u << 2,         // rlimits: processor time, size of files, core dumps, descriptors, private memory;
                                  // newer kernels: memory does not become executable
  kLayerMemoryLimit = 1u << 3,    // RLIMIT_AS
  kLayerLandlock = 1u << 4,       // no file; newer kernels: no TCP, no signal and no abstract socket to others
  kLayerNetwork = 1u << 5,        // an empty network namespace
  kLayerSystemCalls = 1u << 6,    // a filter of system calls (system_calls.h)
  kLayerDescriptors = 1u << 7,    // no descriptor but those it was given
  kLayerCapabilities = 1u << 8,   // no capability
  kLayerUserNamespace = 1u << 9,  // its user has no rights outside of it
  kLayerPidNamespace = 1u << 10,  // sees no process but its own, and they end with it
  kLayerIpcNamespace = 1u << 11,  // no System V or POSIX object of others
  kLayerEmptyRoot = 1u << 12,     // the root directory is an empty one
  kLayerControlGroup = 1u << 13,  // its parent limits memory and processes of all of it (control_group.h)
};

}  // namespace hone
