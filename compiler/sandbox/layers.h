// The layers of the sandbox in which a process runs or reads what a stranger wrote. Each is a wall of its own, and most
// things are refused by two of them, so that one that is missing or broken opens nothing by itself. A process tries all
// of them and says which hold; whoever started it decides whether they are enough.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone {

enum SandboxLayer : uint32_t {
  kLayerDeathSignal = 1u << 0,    // it is killed when the thread that started it ends
  kLayerNoNewPrivs = 1u << 1,     // no program it starts gives it rights (PR_SET_NO_NEW_PRIVS)
  kLayerLimits = 1u << 2,         // rlimits: processor time, size of files, core dumps, descriptors
  kLayerMemoryLimit = 1u << 3,    // RLIMIT_AS
  kLayerLandlock = 1u << 4,       // no file; newer kernels: no TCP, no signal and no abstract socket to others
  kLayerNetwork = 1u << 5,        // an empty network namespace
  kLayerSystemCalls = 1u << 6,    // a filter of system calls (system_calls.h)
  kLayerDescriptors = 1u << 7,    // no descriptor but those it was given
  kLayerCapabilities = 1u << 8,   // no capability
  kLayerUserNamespace = 1u << 9,  // nobody in particular outside of it
  kLayerPidNamespace = 1u << 10,  // sees no process but its own, and they end with it
  kLayerIpcNamespace = 1u << 11,  // no System V or POSIX object of others
  kLayerEmptyRoot = 1u << 12,     // the root directory is an empty one
};

struct SandboxLayerInfo {
  SandboxLayer layer;
  const char* name;  // as options and messages say it
  bool required;     // any kernel of Debian 12 has it, in a container too
  const char* what;
};
std::span<const SandboxLayerInfo> SandboxLayers();  // all of them

// Those a process must have unless its owner allowed it by name. Programs with a sanitizer cannot have all of them
// (compiler/support/sanitized.h), and are not asked for what they cannot have.
uint32_t RequiredLayers();
// The bits of layers that a process of this build could have, and `in_force` lacks.
uint32_t MissingLayers(uint32_t in_force);

// The layers that namespaces are: `clone_flags` are CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWIPC and CLONE_NEWNET.
uint32_t LayersOfNamespaces(int clone_flags);

// "landlock, pid-namespace"; "" for none.
std::string LayerNames(uint32_t layers);
// The names separated by commas; "all" is every layer. InvalidArgument names those there are.
absl::StatusOr<uint32_t> ParseLayers(const std::string& names);

// PermissionDenied when a required layer is neither in force nor allowed to be missing; the message names the program,
// the layers and the option that allows it.
absl::Status CheckLayers(const std::string& program, uint32_t in_force, uint32_t allowed_missing);

}  // namespace hone
