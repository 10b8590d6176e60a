// Whole messages over a pipe or socket: a 4-byte little-endian length, then the bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone {

// Unavailable when the other end is gone. SIGPIPE must be ignored by the program.
absl::Status WriteFrame(int fd, std::string_view bytes);
// OutOfRange at a clean end between messages, Unavailable in the middle of one, DataLoss when the length is beyond `limit`,
// DeadlineExceeded when the whole message is not there in time.
absl::StatusOr<std::string> ReadFrame(int fd, size_t limit, absl::Duration timeout = absl::InfiniteDuration());

}  // namespace hone
