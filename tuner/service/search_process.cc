#include "tuner/service/search_process.h"

#include <signal.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "compiler/support/frame.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr size_t kMessageLimit = 256 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<SearchProcess>> SearchProcess::Start(const std::string& program,
                                                                    const std::vector<std::string>& arguments) {
  HONE_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(program, arguments));
  return std::unique_ptr<SearchProcess>(new SearchProcess(std::move(child)));
}

absl::Status SearchProcess::Send(const std::string& message, absl::Time deadline) {
  return HowItEnded(WriteFrame(child_.input(), message, deadline - absl::Now()));
}

absl::StatusOr<std::string> SearchProcess::Receive(absl::Time deadline) {
  absl::StatusOr<std::string> bytes = ReadFrame(child_.output(), kMessageLimit, deadline - absl::Now());
  if (!bytes.ok()) return HowItEnded(bytes.status());
  return bytes;
}

void SearchProcess::Kill() { child_.Kill(SIGKILL); }

absl::Status SearchProcess::HowItEnded(absl::Status status) {
  if (!absl::IsUnavailable(status) && !absl::IsOutOfRange(status)) return status;
  const std::optional<int> ended = child_.Wait(absl::Seconds(1));
  return absl::UnavailableError(ended.has_value() ? DescribeWaitStatus(*ended) : "it closed its output");
}

}  // namespace hone
