// `hone-builder [LANGUAGE]`: compiles candidates for a worker, one request after the other. Started by hone-worker
// alone. Compilers are not hardened against what they are given, so this process is locked in and has nothing to lose;
// that of a device's language ("cuda"), which reads files, is opened beforehand.
#include <signal.h>

#include <cstdio>
#include <string>

#include "compiler/codegen/device/device_kernel.h"
#include "compiler/sandbox/sandboxed_process.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/frame.h"
#include "worker/builder/build.h"

namespace {

constexpr size_t kRequestLimit = 16 << 20;

}  // namespace

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  hone::CrashPoint("builder.start");
  if (argc > 1) hone::PrepareDeviceCompiler(argv[1]);
  if (!hone::LockInAndReport(hone::ProcessKind::kBuilder)) return 1;
  for (;;) {
    const absl::StatusOr<std::string> bytes = hone::ReadFrame(0, kRequestLimit);
    if (!bytes.ok()) return absl::IsOutOfRange(bytes.status()) ? 0 : 1;
    hone::CrashPoint("builder.asked");
    hone::v1::BuildRequest request;
    if (!request.ParseFromString(*bytes)) {
      std::fprintf(stderr, "hone-builder: a request is not a BuildRequest\n");
      return 1;
    }
    const std::string reply = hone::Build(request).SerializeAsString();
    hone::CrashPoint("builder.built");
    if (!hone::WriteFrame(1, reply).ok()) return 1;
    hone::CrashPoint("builder.answered");
  }
}
