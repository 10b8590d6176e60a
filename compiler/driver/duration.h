// Durations as users write them: "90s", "5m", "1h30m"; a bare number is seconds.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hone {

// Seconds, above 0. InvalidArgument says what was found.
absl::StatusOr<double> ParseDuration(const std::string& text);
// "4m 07s", "12s".
std::string ShortDuration(double seconds);

}  // namespace hone
