#include "tuner/dispatch/state/tenant_accounts.h"

#include <algorithm>

#include "compiler/support/check.h"

namespace hone {

void TenantAccounts::Open(uint64_t tenant) {
  double& charged = charged_[tenant];
  if (!open_.empty()) charged = std::max(charged, open_.begin()->first);
  open_.emplace(charged, tenant);
}

void TenantAccounts::Close(uint64_t tenant) { open_.erase({charged(tenant), tenant}); }

void TenantAccounts::Charge(uint64_t tenant, double seconds) {
  double& charged = charged_[tenant];
  const double before = charged;
  charged += seconds / weight(tenant);
  for (Order* order : {&open_, &asking_}) {
    if (order->erase({before, tenant}) != 0) order->emplace(charged, tenant);
  }
}

void TenantAccounts::SetAsking(uint64_t tenant, bool asking) {
  if (asking) {
    asking_.emplace(charged(tenant), tenant);
  } else {
    asking_.erase({charged(tenant), tenant});
  }
}

double TenantAccounts::charged(uint64_t tenant) const {
  const auto found = charged_.find(tenant);
  return found == charged_.end() ? 0 : found->second;
}

double TenantAccounts::weight(uint64_t tenant) const {
  const auto found = weights_.find(tenant);
  return found == weights_.end() ? 1 : found->second;
}

std::optional<uint64_t> TenantAccounts::LeastChargedAsking() const {
  return asking_.empty() ? std::nullopt : std::optional(asking_.begin()->second);
}

void TenantAccounts::CheckInvariants() const {
  for (const Order* order : {&open_, &asking_}) {
    for (const auto& [at, tenant] : *order) HONE_CHECK(at == charged(tenant)) << "tenant " << tenant;
  }
}

}  // namespace hone
