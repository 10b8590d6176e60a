#include "tuner/service/access/call_meter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/support/status_macros.h"

namespace hone {
namespace {

// No token or certificate is named like that.
std::string NameOfTenant(const std::string& tenant) { return absl::StrCat("tenant ", tenant); }

}  // namespace

absl::Status CallMeter::Charge(const std::string& caller, const std::string& tenant, int64_t now) {
  const std::lock_guard<std::mutex> guard(mutex_);
  HONE_RETURN_IF_ERROR(ChargeAccount(caller, limits_.calls_per_second, now));
  return ChargeAccount(NameOfTenant(tenant), limits_.calls_per_second * limits_.tenant_multiple, now);
}

absl::Status CallMeter::ChargeAccount(const std::string& name, double per_second, int64_t now) {
  const auto [entry, added] = accounts_.try_emplace(name, Account{per_second, now});
  Account& account = entry->second;
  const double since = static_cast<double>(now - account.filled_at) * 1e-6;
  account.calls_left = std::min(per_second, account.calls_left + since * per_second);
  account.filled_at = now;
  if (account.calls_left < 1) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, " makes more than ", per_second, " calls a second (honed --max-rate); call less often"));
  }
  account.calls_left -= 1;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const void>> CallMeter::OpenStream(const std::string& caller, const std::string& tenant,
                                                                  bool holds_thread) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const std::string of_tenant = caller.empty() ? "" : NameOfTenant(tenant);
  HONE_RETURN_IF_ERROR(CheckStreams(caller, of_tenant, holds_thread));
  const auto count = [this, caller, of_tenant, holds_thread](int change) {
    CountStream(caller, holds_thread, change);
    if (!caller.empty()) CountStream(of_tenant, holds_thread, change);
    threads_held_ += holds_thread ? change : 0;
  };
  count(1);
  return std::shared_ptr<const void>(this, [this, count](const void*) {
    const std::lock_guard<std::mutex> ended(mutex_);
    count(-1);
  });
}

absl::Status CallMeter::CheckStreams(const std::string& caller, const std::string& tenant, bool holds_thread) {
  const auto too_many = [](const std::string& name, int open) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, " has ", open, " streams open (honed --max-streams); end one first"));
  };
  if (!caller.empty()) {
    const Streams of_caller = streams_[caller], of_tenant = streams_[tenant];
    if (of_caller.open >= limits_.streams) return too_many(caller, of_caller.open);
    if (of_tenant.open >= int64_t{limits_.streams} * limits_.tenant_multiple) return too_many(tenant, of_tenant.open);
    if (holds_thread && of_tenant.with_thread >= std::max(1, limits_.streams_of_all / 2)) {
      return absl::ResourceExhaustedError(
          absl::StrCat(tenant, " has ", of_tenant.with_thread,
                       " submissions, listings, exports and imports open, half of those that the daemon takes at once; "
                       "end one first"));
    }
  }
  if (!holds_thread || threads_held_ < limits_.streams_of_all) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("all callers together have ", threads_held_,
                                                   " submissions, listings, exports and imports open, and the daemon "
                                                   "takes no more at once; call again in some seconds"));
}

void CallMeter::CountStream(const std::string& name, bool holds_thread, int change) {
  Streams& streams = streams_[name];
  streams.open += change;
  streams.with_thread += holds_thread ? change : 0;
}

}  // namespace hone
