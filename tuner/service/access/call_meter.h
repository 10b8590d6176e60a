// What a caller, and all callers of a tenant together, may take of the daemon: calls a second, and streams that are
// open at once. A caller is a token or a certificate, of which a tenant may have any number: without the second account
// each would be an allowance more. And what everybody may take together: streams that hold a thread each. From any
// thread.
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
  // What the callers of one tenant may take together of either, its workers among them, in allowances of one caller.
  int tenant_multiple = 16;
  // Of all callers, those of them that hold a thread for as long as they are open: all but watches. The other threads
  // answer the calls that are no streams. A tenant's callers may have half of them.
  int streams_of_all = kMostCallThreads / 2;
  absl::Duration silence = absl::Seconds(30);  // of the caller of such a stream, then it ends
  int64_t request_bytes = 64 << 20;            // of memory, of one tenant's requests that are being submitted
};

class CallMeter {
 public:
  explicit CallMeter(const CallLimits& limits) : limits_(limits) {}

  // ResourceExhausted when the caller, or its tenant, made more calls than its allowance, which fills up with time (a
  // token bucket). A call that the caller's own allowance refuses costs its tenant nothing. `now` in microseconds of
  // any clock that does not go back.
  absl::Status Charge(const std::string& caller, const std::string& tenant, int64_t now);

  // Open for as long as a copy of the result lives, which this outlives; ResourceExhausted when too many of the
  // caller's or the tenant's are, or, of those that hold a thread, of everybody's. Caller "": the owner, whose own have
  // no limit and are no part of the tenant's.
  absl::StatusOr<std::shared_ptr<const void>> OpenStream(const std::string& caller, const std::string& tenant,
                                                         bool holds_thread);

 private:
  struct Account {
    double calls_left = 0;
    int64_t filled_at = 0;
  };
  struct Streams {
    int open = 0;
    int with_thread = 0;  // of these
  };
  absl::Status ChargeAccount(const std::string& name, double per_second, int64_t now);
  absl::Status CheckStreams(const std::string& caller, const std::string& tenant, bool holds_thread);
  void CountStream(const std::string& name, bool holds_thread, int change);

  const CallLimits limits_;
  std::mutex mutex_;
  // Of tokens, certificates and tenants, by their names in messages: as many as were issued.
  std::map<std::string, Account> accounts_;
  std::map<std::string, Streams> streams_;
  int threads_held_ = 0;
};

}  // namespace hone
