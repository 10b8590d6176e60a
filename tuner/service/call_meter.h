// What one caller may take of the daemon, calls a second and streams that are open at once, and what all may take
// together: streams that hold a thread each. From any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone {

// A daemon's threads for calls; Sync and Watch hold none while they wait.
inline constexpr int kMostCallThreads = 256;

struct CallLimits {
  double calls_per_second = 1000;  // over a while; that many at once, too
  int streams = 64;                // submissions, watches, listings, exports and imports
  // Of all callers, those of them that hold a thread for as long as they are open: all but watches. The other threads
  // answer the calls that are no streams.
  int streams_of_all = kMostCallThreads / 2;
  absl::Duration silence = absl::Seconds(30);  // of the caller of such a stream, then it ends
  int64_t request_bytes = 64 << 20;            // of memory, of one tenant's requests that are being submitted
};

class CallMeter {
 public:
  explicit CallMeter(const CallLimits& limits) : limits_(limits) {}

  // ResourceExhausted when the caller made more calls than its allowance, which fills up with time (a token bucket).
  // `now` in microseconds of any clock that does not go back.
  absl::Status Charge(const std::string& caller, int64_t now);

  // Open for as long as a copy of the result lives, which this outlives; ResourceExhausted when too many of the
  // caller's are, or, of those that hold a thread, of everybody's. Caller "": the owner, whose own have no limit.
  absl::StatusOr<std::shared_ptr<const void>> OpenStream(const std::string& caller, bool holds_thread);

 private:
  struct Account {
    double calls_left = 0;
    int64_t filled_at = 0;
  };
  const CallLimits limits_;
  std::mutex mutex_;
  std::map<std::string, Account> accounts_;  // of tokens and certificates: as many as were issued
  std::map<std::string, int> streams_;       // that are open
  int threads_held_ = 0;
};

}  // namespace hone
