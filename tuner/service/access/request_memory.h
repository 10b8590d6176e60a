// How much memory the requests of a tenant take that are being submitted: those that come in message by message, and
// those that wait to become jobs. From any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "absl/status/status.h"
#include "database/store/rows.h"

namespace hone {

class RequestMemory {
 public:
  explicit RequestMemory(int64_t bytes_of_tenant) : bytes_of_tenant_(bytes_of_tenant) {}

  // What one request takes, until the end of its life. The memory outlives it.
  class Share {
   public:
    Share(RequestMemory& memory, const Tenant& tenant) : memory_(memory), tenant_(tenant) {}
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // ResourceExhausted when the request is larger than what its tenant may have at all, Unavailable when others of its
    // tenant leave it no room now.
    absl::Status Grow(int64_t bytes);

   private:
    RequestMemory& memory_;
    const Tenant tenant_;
    int64_t bytes_ = 0;
  };

 private:
  const int64_t bytes_of_tenant_;
  std::mutex mutex_;
  std::map<uint64_t, int64_t> taken_;  // of tenants that take any
};

}  // namespace hone
