#include "compiler/support/frame.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// Monotonic: a change of the wall clock moves no deadline.
class Deadline {
 public:
  explicit Deadline(absl::Duration timeout) : endless_(timeout == absl::InfiniteDuration()) {
    if (!endless_) end_ = Clock::now() + absl::ToChronoNanoseconds(timeout);
  }
  int PollMilliseconds() const {
    if (endless_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool endless_;
  Clock::time_point end_;
};

absl::Status WriteAll(int fd, const char* bytes, size_t size, const Deadline& deadline) {
  while (size > 0) {
    const ssize_t written = ::write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      pollfd waiting{fd, POLLOUT, 0};
      if (::poll(&waiting, 1, deadline.PollMilliseconds()) == 0) {
        return absl::DeadlineExceededError("the other process does not take the message");
      }
      continue;
    }
    if (written < 0) return absl::UnavailableError(absl::StrCat("the other process is gone: ", std::strerror(errno)));
    bytes += written;
    size -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status ReadAll(int fd, char* bytes, size_t size, const Deadline& deadline, bool may_end) {
  size_t have = 0;
  while (have < size) {
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, deadline.PollMilliseconds());
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return absl::DeadlineExceededError("no answer in time");
    const ssize_t got = ::read(fd, bytes + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::UnavailableError(absl::StrCat("the other process is gone: ", std::strerror(errno)));
    if (got == 0) {
      if (may_end && have == 0) return absl::OutOfRangeError("end of messages");
      return absl::UnavailableError("the other process ended in the middle of a message");
    }
    have += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteFrame(int fd, std::string_view bytes, absl::Duration timeout) {
  if (bytes.size() > UINT32_MAX) return absl::InvalidArgumentError("a message is longer than 4 GiB");
  const uint32_t size = static_cast<uint32_t>(bytes.size());
  const char length[4] = {static_cast<char>(size), static_cast<char>(size >> 8), static_cast<char>(size >> 16),
                          static_cast<char>(size >> 24)};
  const Deadline deadline(timeout);
  if (timeout != absl::InfiniteDuration()) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
      return absl::InternalError(absl::StrCat("a pipe cannot be made non-blocking: ", std::strerror(errno)));
    }
  }
  HONE_RETURN_IF_ERROR(WriteAll(fd, length, sizeof(length), deadline));
  return WriteAll(fd, bytes.data(), bytes.size(), deadline);
}

absl::StatusOr<std::string> ReadFrame(int fd, size_t limit, absl::Duration timeout) {
  const Deadline deadline(timeout);
  unsigned char length[4];
  HONE_RETURN_IF_ERROR(ReadAll(fd, reinterpret_cast<char*>(length), sizeof(length), deadline, true));
  const uint32_t size = length[0] | length[1] << 8 | length[2] << 16 | static_cast<uint32_t>(length[3]) << 24;
  if (size > limit)
    return absl::DataLossError(absl::StrCat("a message of ", size, " bytes, at most ", limit, " are taken"));
  std::string bytes(size, '\0');
  HONE_RETURN_IF_ERROR(ReadAll(fd, bytes.data(), bytes.size(), deadline, false));
  return bytes;
}

}  // namespace hone
