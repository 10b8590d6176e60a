// `hone-builder`: compiles candidates for a worker, one request after the other. Started by hone-worker alone. LLVM is
// not hardened against what it is given, so this process has limits and nothing to lose.
#include <signal.h>
#include <sys/resource.h>

#include <cstdio>
#include <string>

#include "compiler/support/frame.h"
#include "compiler/support/sanitized.h"
#include "worker/builder/build.h"

namespace {

constexpr size_t kRequestLimit = 16 << 20;
constexpr rlim_t kMemoryLimit = rlim_t{4} << 30;

void SetLimits() {
  ::signal(SIGPIPE, SIG_IGN);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  const rlimit memory{kMemoryLimit, kMemoryLimit};
  if constexpr (!hone::kSanitized) ::setrlimit(RLIMIT_AS, &memory);
}

}  // namespace

int main() {
  SetLimits();
  for (;;) {
    const absl::StatusOr<std::string> bytes = hone::ReadFrame(0, kRequestLimit);
    if (!bytes.ok()) return absl::IsOutOfRange(bytes.status()) ? 0 : 1;
    hone::v1::BuildRequest request;
    if (!request.ParseFromString(*bytes)) {
      std::fprintf(stderr, "hone-builder: a request is not a BuildRequest\n");
      return 1;
    }
    if (!hone::WriteFrame(1, hone::Build(request).SerializeAsString()).ok()) return 1;
  }
}
