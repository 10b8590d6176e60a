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

absl::StatusOr<std::shared_ptr<const void>> CallMeter::OpenStream(const std::string& caller, bool holds_thread) {
  const std::lock_guard<std::mutex> guard(mutex_);
  int& open = streams_[caller];
  if (!caller.empty() && open >= limits_.streams) {
    return absl::ResourceExhaustedError(
        absl::StrCat(caller, " has ", open, " streams open (honed --max-streams); end one first"));
  }
  if (holds_thread && threads_held_ >= limits_.streams_of_all) {
    return absl::ResourceExhaustedError(absl::StrCat("all callers together have ", threads_held_,
                                                     " submissions, listings, exports and imports open, and the daemon "
                                                     "takes no more at once; call again in some seconds"));
  }
  ++open;
  threads_held_ += holds_thread;
  return std::shared_ptr<const void>(this, [this, caller, holds_thread](const void*) {
    const std::lock_guard<std::mutex> guard(mutex_);
    --streams_[caller];
    threads_held_ -= holds_thread;
  });
}

}  // namespace hone
