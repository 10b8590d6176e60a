#include "tuner/service/call_meter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hone {

absl::Status CallMeter::Charge(const std::string& caller, int64_t now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto [entry, added] = accounts_.try_emplace(caller, Account{limits_.calls_per_second, now});
  Account& account = entry->second;
  const double since = static_cast<double>(now - account.filled_at) * 1e-6;
  account.calls_left = std::min(limits_.calls_per_second, account.calls_left + since * limits_.calls_per_second);
  account.filled_at = now;
  if (account.calls_left < 1) {
    return absl::ResourceExhaustedError(absl::StrCat(caller, " makes more than ", limits_.calls_per_second,
                                                     " calls a second (honed --max-rate); call less often"));
  }
  account.calls_left -= 1;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const void>> CallMeter::OpenStream(const std::string& caller) {
  const std::lock_guard<std::mutex> guard(mutex_);
  int& open = streams_[caller];
  if (open >= limits_.streams) {
    return absl::ResourceExhaustedError(
        absl::StrCat(caller, " has ", open, " streams open (honed --max-streams); end one first"));
  }
  ++open;
  return std::shared_ptr<const void>(this, [this, caller](const void*) {
    const std::lock_guard<std::mutex> guard(mutex_);
    --streams_[caller];
  });
}

}  // namespace hone
