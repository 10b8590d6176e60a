#include "compiler/sandbox/layers.h"

#include <sched.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/support/sanitized.h"

namespace hone {
namespace {

// clang-format off
constexpr SandboxLayerInfo kLayers[] = {
    {kLayerDeathSignal, "death-signal", true, "it is killed when whoever started it ends"},
    {kLayerNoNewPrivs, "no-new-privs", true, "no program it starts gives it rights"},
    {kLayerCapabilities, "capabilities", true, "it has no capability"},
    {kLayerLimits, "limits", true, "limits of processor time, files, core dumps, descriptors and private memory"},
    {kLayerMemoryLimit, "memory-limit", true, "a limit of address space"},
    {kLayerDescriptors, "descriptors", true, "no descriptor but those it was given"},
    {kLayerSystemCalls, "system-calls", true, "a filter of system calls (seccomp)"},
    {kLayerLandlock, "landlock", false, "no file of any file system"},
    {kLayerUserNamespace, "user-namespace", false, "rights of nobody outside of it"},
    {kLayerPidNamespace, "pid-namespace", false, "no process but its own is seen"},
    {kLayerIpcNamespace, "ipc-namespace", false, "no shared memory, semaphore or queue of others"},
    {kLayerNetwork, "network-namespace", false, "an empty network"},
    {kLayerEmptyRoot, "empty-root", false, "an empty root directory"},
    {kLayerControlGroup, "control-group", false, "limits of memory and of processes for all of it together"},
};
// clang-format on

constexpr uint32_t kNotWithSanitizers = kLayerMemoryLimit | kLayerSystemCalls | kLayerUserNamespace |
                                        kLayerPidNamespace | kLayerIpcNamespace | kLayerNetwork | kLayerEmptyRoot;

uint32_t PossibleLayers() {
  uint32_t all = 0;
  for (const SandboxLayerInfo& info : kLayers) all |= info.layer;
  return kSanitized ? all & ~kNotWithSanitizers : all;
}

}  // namespace

std::span<const SandboxLayerInfo> SandboxLayers() { return kLayers; }

uint32_t MissingLayers(uint32_t in_force) { return PossibleLayers() & ~in_force; }

uint32_t LayersSomeSystemsLack() {
  uint32_t layers = 0;
  for (const SandboxLayerInfo& info : kLayers)
    if (!info.everywhere) layers |= info.layer;
  return layers;
}

uint32_t LayersOfNamespaces(int clone_flags) {
  return ((clone_flags & CLONE_NEWUSER) != 0 ? kLayerUserNamespace : 0u) |
         ((clone_flags & CLONE_NEWPID) != 0 ? kLayerPidNamespace : 0u) |
         ((clone_flags & CLONE_NEWIPC) != 0 ? kLayerIpcNamespace : 0u) |
         ((clone_flags & CLONE_NEWNET) != 0 ? kLayerNetwork : 0u);
}

std::vector<std::string> LayerNameList(uint32_t layers) {
  std::vector<std::string> names;
  for (const SandboxLayerInfo& info : kLayers) {
    if ((layers & info.layer) != 0) names.push_back(info.name);
  }
  return names;
}

std::string LayerNames(uint32_t layers) { return absl::StrJoin(LayerNameList(layers), ", "); }

absl::StatusOr<uint32_t> ParseLayers(const std::string& names) {
  uint32_t layers = 0;
  for (const absl::string_view part : absl::StrSplit(names, ',', absl::SkipWhitespace())) {
    const absl::string_view name = absl::StripAsciiWhitespace(part);
    uint32_t found = name == "all" ? ~0u : 0;
    for (const SandboxLayerInfo& info : kLayers)
      if (name == info.name) found |= info.layer;
    if (found == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", name, "\" is no layer of the sandbox; there are ", LayerNames(~0u), ", and all"));
    }
    layers |= found;
  }
  return layers;
}

absl::Status CheckLayers(const std::string& program, uint32_t in_force, uint32_t allowed_missing) {
  const uint32_t missing = MissingLayers(in_force);
  const uint32_t refused = missing & ~allowed_missing;
  if (refused == 0) return absl::OkStatus();
  // The option takes the place of the one that was given: it names what was allowed already, too.
  std::vector<std::string> what;
  for (const SandboxLayerInfo& info : kLayers) {
    if ((refused & info.layer) != 0) what.push_back(absl::StrCat(info.name, " (", info.what, ")"));
  }
  return absl::PermissionDeniedError(absl::StrCat(
      program, " cannot be locked in: this system does not give it ", absl::StrJoin(what, ", "),
      "; use a system that does, or go without by --allow-missing-layer=", absl::StrJoin(LayerNameList(missing), ","),
      " or HONE_ALLOW_MISSING_LAYER"));
}

}  // namespace hone
