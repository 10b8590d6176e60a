// What was built and is larger than a message, between the worker that built it and the one that asked for it: each
// tenant has room for so many bytes, and what nobody takes goes after a while. From any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone {

// The largest that is carried, and the room that a tenant has for all of its own at once.
inline constexpr uint64_t kMostBuiltBytes = 64 << 20;

class BuildDeposits {
 public:
  // One of them. Has its room until the end of its life, wherever it is; what it came from outlives it.
  class Deposit {
   public:
    ~Deposit() { owner_.GiveBack(tenant_, charged_); }
    Deposit(const Deposit&) = delete;
    Deposit& operator=(const Deposit&) = delete;

    // InvalidArgument when it has then more bytes than it was to have.
    absl::Status Append(std::string_view bytes);
    const std::string& bytes() const { return bytes_; }

   private:
    friend class BuildDeposits;
    Deposit(BuildDeposits& owner, uint64_t tenant, uint64_t total, uint64_t charged)
        : owner_(owner), tenant_(tenant), total_(total), charged_(charged) {}

    BuildDeposits& owner_;
    const uint64_t tenant_, total_, charged_;
    std::string bytes_;
  };

  explicit BuildDeposits(absl::Duration kept = absl::Minutes(1)) : kept_(kept) {}

  // Room for one that will have so many bytes. InvalidArgument when that is more than kMostBuiltBytes, Unavailable when
  // others of the tenant leave no room for it now.
  absl::StatusOr<std::unique_ptr<Deposit>> Open(uint64_t tenant, uint64_t total);
  // From now on it is to be taken, for as long as deposits are kept. InvalidArgument when not all of it is there, or
  // when its digest has not the size of a SHA-256: whoever takes it looks whether it is that.
  absl::Status Put(const std::string& digest, std::unique_ptr<Deposit> deposit);
  // The tenant's of that digest, which is no longer there then; NotFound when there is none.
  absl::StatusOr<std::unique_ptr<Deposit>> Take(uint64_t tenant, const std::string& digest);

 private:
  struct Kept {
    std::unique_ptr<Deposit> deposit;
    absl::Time until;
  };
  using Key = std::pair<uint64_t, std::string>;  // tenant and digest

  void DropOld();
  void GiveBack(uint64_t tenant, uint64_t bytes);

  const absl::Duration kept_;
  std::mutex room_mutex_;
  std::map<uint64_t, uint64_t> taken_;  // bytes, of tenants that have any
  std::mutex mutex_;                    // before room_mutex_
  std::map<Key, Kept> there_;
};

}  // namespace hone
