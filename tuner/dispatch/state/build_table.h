// Builds that workers that only measure have asked for, until they are answered: waiting, or lent to a worker that only
// builds. Nothing of them is durable: a build is a pure function of its request, and its asker's call is open. What was
// built goes to that call at once, so that no object waits here; requests are bounded in bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "hone/v1/fleet.pb.h"
#include "tuner/dispatch/events/events.h"
#include "tuner/dispatch/state/touched.h"

namespace hone {

struct Build {
  uint64_t id = 0;
  uint64_t tenant = kLocalTenant;
  uint64_t asker = 0;  // a worker
  ReplyTo to = 0;      // its call
  v1::BuildRequest request;
  int64_t bytes = 0;  // of the request
  uint32_t limit_ms = 0;
  Micros answer_by = 0;  // else it is given up
  // When lent, of the latest lease:
  uint64_t builder = 0;  // 0: it waits
  uint32_t attempt = 0;
  std::string secret;
  Micros lent_until = 0;
  std::string digest;  // of what is to be built, whoever asks
};

class BuildTable {
 public:
  struct OfTenant {
    std::set<uint64_t> waiting;  // in the order asked
    int64_t builds = 0, bytes = 0;
    uint64_t last_builder = 0;  // builders take turns
  };

  // Tenants whose builds have come to wait are touched, and builders whose builds have changed.
  explicit BuildTable(Touched& touched) : touched_(touched) {}

  Build& Add(Build build);  // that waits; its id and its digest are new
  Build* Find(uint64_t id);
  const Build* Find(uint64_t id) const;
  Build* OfCall(ReplyTo to);
  void Lend(Build& build, uint64_t builder, std::string secret, Micros until);  // waiting -> lent
  void TakeBack(Build& build);                                                  // lent -> waiting
  void Remove(uint64_t id);

  const std::map<uint64_t, Build>& builds() const { return builds_; }
  const std::set<uint64_t>& LentTo(uint64_t builder) const;
  const std::set<uint64_t>& AskedBy(uint64_t asker) const;
  OfTenant& Tenant(uint64_t tenant) { return tenants_[tenant]; }

  // How many builders were lost while they built what has that digest. Known of the latest such digests alone.
  uint32_t LostWith(const std::string& digest) const;
  void CountLost(const std::string& digest);
  void Forgive(const std::string& digest);  // one of them was not lost

  void CheckInvariants() const;

 private:
  void EndLease(Build& build);

  Touched& touched_;
  uint64_t next_ = 1;
  std::map<uint64_t, Build> builds_;
  std::map<ReplyTo, uint64_t> by_call_;
  std::map<uint64_t, std::set<uint64_t>> lent_, asked_;  // by worker, none empty
  std::map<uint64_t, OfTenant> tenants_;                 // as many as there are tenants
  std::map<std::string, uint32_t> lost_with_;
  std::deque<std::string> lost_order_;  // its digests, oldest first
};

}  // namespace hone
