// `hone-search`: proposes candidates to the daemon that started it. Started by honed alone; may crash without harm.
#include <signal.h>

#include <cstdio>
#include <string>

#include "compiler/support/frame.h"
#include "compiler/support/turn_lock.h"
#include "tuner/search/serve.h"

namespace {

constexpr size_t kRequestLimit = 256 << 20;

}  // namespace

int main() {
  ::signal(SIGPIPE, SIG_IGN);
  absl::StatusOr<hone::TurnLock> turn = hone::TurnLock::Open();
  if (!turn.ok()) {
    std::fprintf(stderr, "hone-search: %s\n", std::string(turn.status().message()).c_str());
    return 1;
  }
  hone::SearchServer server;
  for (;;) {
    const absl::StatusOr<std::string> bytes = hone::ReadFrame(0, kRequestLimit);
    if (!bytes.ok()) return absl::IsOutOfRange(bytes.status()) ? 0 : 1;
    hone::v1::SearchRequest request;
    if (!request.ParseFromString(*bytes)) {
      std::fprintf(stderr, "hone-search: a request is not a SearchRequest\n");
      return 1;
    }
    std::string reply;
    {
      const hone::TurnLock::Turn held(*turn);  // a host that measures does nothing else meanwhile
      reply = server.Answer(request).SerializeAsString();
    }
    if (!hone::WriteFrame(1, reply).ok()) return 1;
  }
}
