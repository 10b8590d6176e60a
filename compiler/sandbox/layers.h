// Names of the sandbox's layers, which of them some systems lack, and the refusal of a process that lacks one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/sandbox/layer_bits.h"

namespace hone {

struct SandboxLayerInfo {
  SandboxLayer layer;
  const char* name;  // as options and messages say it
  bool everywhere;   // any kernel of Debian 12 gives it to any user, in a container too
  const char* what;
};
std::span<const SandboxLayerInfo> SandboxLayers();  // all of them

// The bits of layers that a process of this build could have, and `in_force` lacks. Programs with a sanitizer cannot
// have all of them (compiler/support/sanitized.h), and lack nothing by that.
uint32_t MissingLayers(uint32_t in_force);
// Those that not every system gives: what a service goes without that runs its own user's work alone.
uint32_t LayersSomeSystemsLack();

// The layers that namespaces are: `clone_flags` are CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWIPC and CLONE_NEWNET.
uint32_t LayersOfNamespaces(int clone_flags);

std::vector<std::string> LayerNameList(uint32_t layers);
// "landlock, pid-namespace"; "" for none.
std::string LayerNames(uint32_t layers);
// The names separated by commas; "all" is every layer. InvalidArgument names those there are.
absl::StatusOr<uint32_t> ParseLayers(const std::string& names);

// PermissionDenied when a layer of MissingLayers(in_force) is not allowed to be missing; the message names the program,
// each such layer and the option that allows all that is missing.
absl::Status CheckLayers(const std::string& program, uint32_t in_force, uint32_t allowed_missing);

}  // namespace hone
