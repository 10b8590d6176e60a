// Names of the sandbox's layers, which of them are required, and the refusal of a process that lacks one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/sandbox/layer_bits.h"

namespace hone {

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
