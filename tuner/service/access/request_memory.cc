#include "tuner/service/access/request_memory.h"

#include "absl/strings/str_cat.h"

namespace hone {

absl::Status RequestMemory::Share::Grow(int64_t bytes) {
  const int64_t most = memory_.bytes_of_tenant_;
  if (bytes_ + bytes > most) {
    return absl::ResourceExhaustedError(
        absl::StrCat("submit: the job takes more than the ", most, " bytes that tenant ", tenant_.name,
                     " may have (honed --max-request-bytes); tune its kernels in parts with --tasks"));
  }
  const std::lock_guard<std::mutex> guard(memory_.mutex_);
  int64_t& taken = memory_.taken_[tenant_.id];
  if (taken + bytes > most) {
    return absl::UnavailableError(absl::StrCat("submit: jobs of tenant ", tenant_.name,
                                               " that are being submitted take ", taken, " of its ", most,
                                               " bytes (honed --max-request-bytes); submit again when they are in"));
  }
  taken += bytes;
  bytes_ += bytes;
  return absl::OkStatus();
}

RequestMemory::Share::~Share() {
  if (bytes_ == 0) return;
  const std::lock_guard<std::mutex> guard(memory_.mutex_);
  const auto taken = memory_.taken_.find(tenant_.id);
  taken->second -= bytes_;
  if (taken->second == 0) memory_.taken_.erase(taken);
}

}  // namespace hone
