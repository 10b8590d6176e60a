#include "tuner/dispatch/tenant_accounts.h"

#include <algorithm>

namespace hone {

void TenantAccounts::Open(uint64_t tenant) {
  double& charged = charged_[tenant];
  if (!order_.empty()) charged = std::max(charged, order_.begin()->first);
  order_.emplace(charged, tenant);
}

void TenantAccounts::Close(uint64_t tenant) { order_.erase({charged(tenant), tenant}); }

void TenantAccounts::Charge(uint64_t tenant, double seconds) {
  double& charged = charged_[tenant];
  const bool open = order_.erase({charged, tenant}) != 0;
  charged += seconds / weight(tenant);
  if (open) order_.emplace(charged, tenant);
}

double TenantAccounts::charged(uint64_t tenant) const {
  const auto found = charged_.find(tenant);
  return found == charged_.end() ? 0 : found->second;
}

double TenantAccounts::weight(uint64_t tenant) const {
  const auto found = weights_.find(tenant);
  return found == weights_.end() ? 1 : found->second;
}

}  // namespace hone
