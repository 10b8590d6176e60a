#include "compiler/sandbox/policy.h"

namespace hone {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// A runner's memory and time come with its candidate. Who opens nothing once it is locked in keeps the descriptors that
// are open then, and gets no further one, whatever call would give it.
// clang-format off
constexpr SandboxPolicy kPolicies[] = {
    {ProcessKind::kRunner, "hone-runner", SystemCalls::kKernel, 4 * kGiB, 60, 3},
    {ProcessKind::kBuilder, "hone-builder", SystemCalls::kProgram, 4 * kGiB, 0, 3},
    {ProcessKind::kOracle, "hone-oracle", SystemCalls::kProgram, 16 * kGiB, 600, 3},
    {ProcessKind::kSearch, "hone-search", SystemCalls::kProgram, 16 * kGiB, 0, 3},
    {ProcessKind::kDeviceRunner, "hone-device-runner", SystemCalls::kDriver, 4 * kGiB, 60, 256},
};
// clang-format on

}  // namespace

const SandboxPolicy& SandboxPolicyOf(ProcessKind kind) { return kPolicies[static_cast<int>(kind)]; }

const SandboxPolicy* FindSandboxPolicy(std::string_view program) {
  for (const SandboxPolicy& policy : kPolicies) {
    if (policy.program == program) return &policy;
  }
  return nullptr;
}

}  // namespace hone
