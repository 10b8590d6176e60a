// Whole messages over a pipe or socket: a 4-byte little-endian length, then the bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone {

// Unavailable when the other end is gone, DeadlineExceeded when it does not take the whole message in time. SIGPIPE
// must be ignored by the program. With a timeout, `fd` is made non-blocking.
absl::Status WriteFrame(int fd, std::string_view bytes, absl::Duration timeout = absl::InfiniteDuration());
// OutOfRange at a clean end between messages, Unavailable in the middle of one, DataLoss when the length is beyond
// `limit`, DeadlineExceeded when the whole message is not there in time.
absl::StatusOr<std::string> ReadFrame(int fd, size_t limit, absl::Duration timeout = absl::InfiniteDuration());

}  // namespace hone
