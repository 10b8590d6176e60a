// What one caller may take of the daemon: calls a second, and streams that are open at once. From any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone {

struct CallLimits {
  double calls_per_second = 1000;    // over a while; that many at once, too
  int streams = 64;                  // submissions, watches, listings, exports and imports
  int64_t request_bytes = 64 << 20;  // of memory, of one tenant's requests that are being submitted
};

class CallMeter {
 public:
  explicit CallMeter(const CallLimits& limits) : limits_(limits) {}

  // ResourceExhausted when the caller made more calls than its allowance, which fills up with time (a token bucket).
  // `now` in microseconds of any clock that does not go back.
  absl::Status Charge(const std::string& caller, int64_t now);

  // Open for as long as a copy of the result lives, which this outlives; ResourceExhausted when too many of the
  // caller's are.
  absl::StatusOr<std::shared_ptr<const void>> OpenStream(const std::string& caller);

 private:
  struct Account {
    double calls_left = 0;
    int64_t filled_at = 0;
  };
  const CallLimits limits_;
  std::mutex mutex_;
  std::map<std::string, Account> accounts_;  // of tokens and certificates: as many as were issued
  std::map<std::string, int> streams_;       // that are open
};

}  // namespace hone
