// `hone-search`: proposes candidates to the daemon that started it; may crash without harm. `hone-search replay` and
// `hone-search record` are what `hone replay` runs: the client does not link the search. Started by the daemon it is
// locked in: workloads, traces and models come from others.
#include <signal.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "compiler/sandbox/sandboxed_process.h"
#include "compiler/support/crash_point.h"
#include "compiler/support/frame.h"
#include "compiler/support/turn_lock.h"
#include "compiler/target/target.h"
#include "tuner/search/replay/replay.h"
#include "tuner/search/serve.h"

namespace {

constexpr size_t kRequestLimit = 256 << 20;

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "replay") return hone::ReplayMain(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "record") return hone::RecordMain(argc - 1, argv + 1);
  ::signal(SIGPIPE, SIG_IGN);
  absl::StatusOr<hone::TurnLock> turn = hone::TurnLock::Open();
  if (!turn.ok()) {
    std::fprintf(stderr, "hone-search: %s\n", std::string(turn.status().message()).c_str());
    return 1;
  }
  hone::CrashPoint("search.start");
  hone::HostTarget();  // read from files now, which is too late afterwards
  if (!hone::LockInAndReport(hone::ProcessKind::kSearch, turn->fds())) return 1;
  hone::SearchServer server;
  for (;;) {
    const absl::StatusOr<std::string> bytes = hone::ReadFrame(0, kRequestLimit);
    if (!bytes.ok()) return absl::IsOutOfRange(bytes.status()) ? 0 : 1;
    hone::CrashPoint("search.asked");
    hone::v1::SearchRequest request;
    if (!request.ParseFromString(*bytes)) {
      std::fprintf(stderr, "hone-search: a request is not a SearchRequest\n");
      return 1;
    }
    std::string reply;
    {
      // A host that measures does nothing else meanwhile.
      const hone::TurnLock::Turn held(*turn, hone::TurnLock::Use::kShared);
      reply = server.Answer(request).SerializeAsString();
    }
    hone::CrashPoint("search.proposed");
    if (!hone::WriteFrame(1, reply).ok()) return 1;
    hone::CrashPoint("search.answered");
  }
}
