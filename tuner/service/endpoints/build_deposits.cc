#include "tuner/service/endpoints/build_deposits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/support/monotonic_clock.h"
#include "compiler/support/sha256.h"
#include "proto/rpc/channel.h"

namespace hone {
absl::Status BuildDeposits::Deposit::Append(std::string_view bytes) {
  if (bytes.size() > total_ - bytes_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("put built: more than the ", total_, " bytes it was to have"));
  }
  bytes_ += bytes;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BuildDeposits::Deposit>> BuildDeposits::Open(uint64_t tenant, uint64_t total) {
  if (total > kMostBuiltBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("what was built has ", total, " bytes, and ", kMostBuiltBytes, " is the most that is carried"));
  }
  DropOld();
  // A small one is not cheaper than a chunk, so that there are not many of them.
  const uint64_t charged = std::max<uint64_t>(total, kChunkBytes);
  const std::lock_guard<std::mutex> lock(room_mutex_);
  uint64_t& taken = taken_[tenant];
  if (taken + charged > kMostBuiltBytes) {
    return absl::UnavailableError(absl::StrCat("put built: others of the tenant take ", taken, " of its ",
                                               kMostBuiltBytes, " bytes; again when they were taken"));
  }
  taken += charged;
  return std::unique_ptr<Deposit>(new Deposit(*this, tenant, total, charged));
}

absl::Status BuildDeposits::Put(const std::string& digest, std::unique_ptr<Deposit> deposit) {
  if (deposit->bytes_.size() != deposit->total_ || digest.size() != kSha256Bytes) {
    return absl::InvalidArgumentError(absl::StrCat("put built: ", deposit->bytes_.size(), " bytes of ", deposit->total_,
                                                   ", with a digest of ", digest.size(), " bytes"));
  }
  const uint64_t tenant = deposit->tenant_;
  const std::lock_guard<std::mutex> lock(mutex_);
  there_[Key{tenant, digest}] = {std::move(deposit), MonotonicNow() + kept_};
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BuildDeposits::Deposit>> BuildDeposits::Take(uint64_t tenant,
                                                                            const std::string& digest) {
  DropOld();
  const std::lock_guard<std::mutex> lock(mutex_);
  auto found = there_.extract(Key{tenant, digest});
  if (found.empty()) {
    return absl::NotFoundError("take built: it is not there, or no longer: it has to be built again");
  }
  return std::move(found.mapped().deposit);
}

void BuildDeposits::DropOld() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(there_, [now = MonotonicNow()](const auto& entry) { return entry.second.until < now; });
}

void BuildDeposits::GiveBack(uint64_t tenant, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(room_mutex_);
  const auto taken = taken_.find(tenant);
  taken->second -= bytes;
  if (taken->second == 0) taken_.erase(taken);
}

}  // namespace hone
