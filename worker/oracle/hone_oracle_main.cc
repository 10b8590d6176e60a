// `hone-oracle`: parses and interprets the workload of one task for a worker, locked in. Started by hone-worker alone.
#include <signal.h>

#include <cstdio>
#include <string>

#include "compiler/sandbox/sandboxed_process.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/frame.h"
#include "worker/oracle/workload_reader.h"

namespace {

constexpr size_t kRequestLimit = 16 << 20;

}  // namespace

int main() {
  ::signal(SIGPIPE, SIG_IGN);
  hone::CrashPoint("oracle.start");
  if (!hone::LockInAndReport(hone::ProcessKind::kOracle)) return 1;
  hone::WorkloadReader reader;
  for (;;) {
    const absl::StatusOr<std::string> bytes = hone::ReadFrame(0, kRequestLimit);
    if (!bytes.ok()) return absl::IsOutOfRange(bytes.status()) ? 0 : 1;
    hone::CrashPoint("oracle.asked");
    hone::v1::OracleRequest request;
    std::string answer;
    if (!request.ParseFromString(*bytes) || !reader.Answer(request, &answer)) {
      std::fprintf(stderr, "hone-oracle: a request that makes no sense\n");
      return 1;
    }
    if (!hone::WriteFrame(1, answer).ok()) return 1;
    hone::CrashPoint("oracle.answered");
  }
}
