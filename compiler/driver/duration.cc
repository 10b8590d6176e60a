#include "compiler/driver/duration.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace hone {

absl::StatusOr<double> ParseDuration(const std::string& text) {
  double seconds = 0;
  absl::Duration duration;
  if (!absl::SimpleAtod(text, &seconds)) {
    if (!absl::ParseDuration(text, &duration)) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a duration; write it as 90s, 5m or 1h30m"));
    }
    seconds = absl::ToDoubleSeconds(duration);
  }
  if (!(seconds > 0) || !std::isfinite(seconds)) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a duration above 0"));
  }
  return seconds;
}

std::string ShortDuration(double seconds) {
  const int64_t whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return absl::StrCat(whole, "s");
  if (whole < 3600) return absl::StrFormat("%dm %02ds", whole / 60, whole % 60);
  return absl::StrFormat("%dh %02dm", whole / 3600, whole % 3600 / 60);
}

}  // namespace hone
