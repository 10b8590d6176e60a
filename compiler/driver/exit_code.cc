#include "compiler/driver/exit_code.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

constexpr char kPayload[] = "hone/exit-code";

}  // namespace

absl::Status WithExitCode(ExitCode code, absl::Status status) {
  if (!status.ok() && !status.GetPayload(kPayload).has_value()) {
    const std::string number = std::to_string(static_cast<int>(code));
    status.SetPayload(kPayload, absl::Cord(absl::string_view(number)));  // which GCC and Clang name alike
  }
  return status;
}

absl::Status AnnotateKeepingExitCode(const absl::Status& status, absl::string_view context) {
  return WithExitCode(static_cast<ExitCode>(ExitCodeOf(status)), Annotate(status, context));
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return static_cast<int>(ExitCode::kDone);
  int code = 0;
  if (const auto payload = status.GetPayload(kPayload);
      payload.has_value() && absl::SimpleAtoi(std::string(*payload), &code)) {
    return code;
  }
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound: return static_cast<int>(ExitCode::kUsage);
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded: return static_cast<int>(ExitCode::kNoService);
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated: return static_cast<int>(ExitCode::kNotAllowed);
    case absl::StatusCode::kDataLoss: return static_cast<int>(ExitCode::kCorrupt);
    default: return static_cast<int>(ExitCode::kOurBug);
  }
}

}  // namespace hone
