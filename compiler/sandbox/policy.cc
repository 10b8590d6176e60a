#include "compiler/sandbox/policy.h"

#include "compiler/support/child_process.h"

namespace hone {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// A runner's memory and time come with its candidate. Who opens nothing once it is locked in keeps the descriptors that
// are open then, and gets no further one, whatever call would give it. CUDA's driver names its threads by their numbers
// in /proc, which are others in a pid namespace.
// clang-format off
constexpr SandboxPolicy kPolicies[] = {
    {ProcessKind::kRunner, "hone-runner", SystemCalls::kKernel, 4 * kGiB, 60, 3, kAllNamespaces, 0},
    {ProcessKind::kBuilder, "hone-builder", SystemCalls::kProgram, 4 * kGiB, 0, 3, kAllNamespaces, 10},
    {ProcessKind::kOracle, "hone-oracle", SystemCalls::kProgram, 16 * kGiB, 600, 3, kAllNamespaces, 0},
    {ProcessKind::kSearch, "hone-search", SystemCalls::kProgram, 16 * kGiB, 0, 3, kAllNamespaces, 5},
    {ProcessKind::kDeviceRunner, "hone-device-runner", SystemCalls::kDriver, 4 * kGiB, 60, 256,
     kAllNamespaces & ~CLONE_NEWPID, 0},
};
// clang-format on

// A driver is libraries, a compiler, and devices of the kernel; it gives its threads names.
constexpr OpenFolder kDriverFolders[] = {{"/dev", true}, {"/usr"}, {"/lib"},  {"/lib64"}, {"/bin"},
                                         {"/etc"},       {"/opt"}, {"/proc"}, {"/sys"},   {"/proc/self/task", true}};

}  // namespace

const SandboxPolicy& SandboxPolicyOf(ProcessKind kind) { return kPolicies[static_cast<int>(kind)]; }

const SandboxPolicy* FindSandboxPolicy(std::string_view program) {
  for (const SandboxPolicy& policy : kPolicies) {
    if (policy.program == program) return &policy;
  }
  return nullptr;
}

std::span<const OpenFolder> DriverFolders() { return kDriverFolders; }

}  // namespace hone
