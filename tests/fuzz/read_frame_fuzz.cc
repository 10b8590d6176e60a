// The reader of messages between processes: whatever a child writes is messages below the limit and then an end, clean
// or in the middle of one. No message is longer than what was written.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "compiler/support/check.h"
#include "compiler/support/frame.h"
#include "tests/fuzz/memory_limit.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMost = 16 << 10, kLimit = 4096;  // a pipe holds 64 KiB
  const hone::MemoryLimit limit;
  int ends[2];
  HONE_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  const ssize_t written = ::write(ends[1], data, std::min(size, kMost));
  HONE_CHECK(written >= 0);
  ::close(ends[1]);
  size_t read = 0;
  for (;;) {
    const absl::StatusOr<std::string> message = hone::ReadFrame(ends[0], kLimit, absl::Seconds(5));
    if (message.ok()) {
      HONE_CHECK(message->size() <= kLimit);
      read += 4 + message->size();
      continue;
    }
    const bool at_end = absl::IsOutOfRange(message.status());
    HONE_CHECK(at_end || absl::IsUnavailable(message.status()) || absl::IsDataLoss(message.status()))
        << message.status().ToString();
    HONE_CHECK(read <= static_cast<size_t>(written) && (!at_end || read == static_cast<size_t>(written)));
    break;
  }
  ::close(ends[0]);
  return 0;
}
