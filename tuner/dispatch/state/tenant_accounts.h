// What tenants have in common, shared between them by weight: the search processes, and the workers that serve every
// tenant. The tenant that was charged least device time, divided by its weight, is next; one that has nothing to do
// saves nothing up (start-time fair queueing, Goyal et al. 1996). How a tenant's part is shared between its jobs is
// theirs (Job::share).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace hone {

class TenantAccounts {
 public:
  explicit TenantAccounts(std::map<uint64_t, double> weights) : weights_(std::move(weights)) {}  // of others: 1

  // It has an open job, and had none: it starts level with the least charged of those that have, or where it stood.
  void Open(uint64_t tenant);
  void Close(uint64_t tenant);  // it has none any more
  void Charge(uint64_t tenant, double seconds);

  // Whether a job of it may want candidates.
  void SetAsking(uint64_t tenant, bool asking);

  double charged(uint64_t tenant) const;  // seconds by weight
  double weight(uint64_t tenant) const;
  std::optional<uint64_t> LeastChargedAsking() const;  // nullopt: no tenant asks
  void CheckInvariants() const;

 private:
  using Order = std::set<std::pair<double, uint64_t>>;  // least charged first

  const std::map<uint64_t, double> weights_;
  std::map<uint64_t, double> charged_;  // of every tenant that has had a job: as many as there are
  Order open_, asking_;
};

}  // namespace hone
