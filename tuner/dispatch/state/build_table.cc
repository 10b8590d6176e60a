#include "tuner/dispatch/state/build_table.h"

#include "compiler/support/check.h"
#include "compiler/support/sha256.h"

namespace hone {
namespace {

constexpr size_t kMostLostWith = 1024;

std::string DigestOf(v1::BuildRequest request) {
  request.clear_id();  // its place in a batch
  return Sha256(request.SerializeAsString());
}

const std::set<uint64_t>& Of(const std::map<uint64_t, std::set<uint64_t>>& by_worker, uint64_t worker) {
  static const std::set<uint64_t> kNone;
  const auto found = by_worker.find(worker);
  return found == by_worker.end() ? kNone : found->second;
}

void Erase(std::map<uint64_t, std::set<uint64_t>>& by_worker, uint64_t worker, uint64_t id) {
  const auto found = by_worker.find(worker);
  found->second.erase(id);
  if (found->second.empty()) by_worker.erase(found);
}

}  // namespace

Build& BuildTable::Add(Build build) {
  build.id = next_++;
  build.digest = DigestOf(build.request);
  const auto [entry, added] = builds_.emplace(build.id, std::move(build));
  Build& kept = entry->second;
  HONE_CHECK(added && by_call_.emplace(kept.to, kept.id).second) << "a call asks twice";
  asked_[kept.asker].insert(kept.id);
  OfTenant& tenant = tenants_[kept.tenant];
  tenant.waiting.insert(kept.id);
  ++tenant.builds;
  tenant.bytes += kept.bytes;
  touched_.builds.insert(kept.id);
  touched_.builds_of.insert(kept.tenant);
  return kept;
}

Build* BuildTable::Find(uint64_t id) {
  const auto found = builds_.find(id);
  return found == builds_.end() ? nullptr : &found->second;
}

const Build* BuildTable::Find(uint64_t id) const {
  const auto found = builds_.find(id);
  return found == builds_.end() ? nullptr : &found->second;
}

Build* BuildTable::OfCall(ReplyTo to) {
  const auto found = by_call_.find(to);
  return found == by_call_.end() ? nullptr : Find(found->second);
}

void BuildTable::Lend(Build& build, uint64_t builder, std::string secret, Micros until) {
  HONE_CHECK(tenants_[build.tenant].waiting.erase(build.id) == 1) << "build " << build.id;
  build.builder = builder;
  build.attempt += 1;
  build.secret = std::move(secret);
  build.lent_until = until;
  lent_[builder].insert(build.id);
  touched_.builds.insert(build.id);
  touched_.workers.insert(builder);
}

void BuildTable::EndLease(Build& build) {
  Erase(lent_, build.builder, build.id);
  touched_.workers.insert(build.builder);
  build.builder = 0;
}

void BuildTable::TakeBack(Build& build) {
  EndLease(build);
  tenants_[build.tenant].waiting.insert(build.id);
  touched_.builds.insert(build.id);
  touched_.builds_of.insert(build.tenant);
}

void BuildTable::Remove(uint64_t id) {
  const auto found = builds_.find(id);
  HONE_CHECK(found != builds_.end()) << "build " << id;
  Build& build = found->second;
  OfTenant& tenant = tenants_[build.tenant];
  if (build.builder != 0) EndLease(build);
  tenant.waiting.erase(id);
  --tenant.builds;
  tenant.bytes -= build.bytes;
  Erase(asked_, build.asker, id);
  by_call_.erase(build.to);
  builds_.erase(found);
  touched_.builds.insert(id);
}

const std::set<uint64_t>& BuildTable::LentTo(uint64_t builder) const { return Of(lent_, builder); }
const std::set<uint64_t>& BuildTable::AskedBy(uint64_t asker) const { return Of(asked_, asker); }

uint32_t BuildTable::LostWith(const std::string& digest) const {
  const auto found = lost_with_.find(digest);
  return found == lost_with_.end() ? 0 : found->second;
}

void BuildTable::CountLost(const std::string& digest) {
  const auto [entry, added] = lost_with_.emplace(digest, 0);
  ++entry->second;
  if (!added) return;
  lost_order_.push_back(digest);
  if (lost_order_.size() <= kMostLostWith) return;
  lost_with_.erase(lost_order_.front());
  lost_order_.pop_front();
}

void BuildTable::Forgive(const std::string& digest) {
  const auto found = lost_with_.find(digest);
  if (found != lost_with_.end() && found->second > 0) --found->second;
}

void BuildTable::CheckInvariants() const {
  size_t lent = 0, asked = 0, waiting = 0;
  std::map<uint64_t, std::pair<int64_t, int64_t>> of_tenant;
  for (const auto& [id, build] : builds_) {
    HONE_CHECK(build.id == id && by_call_.at(build.to) == id && AskedBy(build.asker).count(id) != 0) << "build " << id;
    HONE_CHECK(build.builder == 0 || LentTo(build.builder).count(id) != 0) << "build " << id;
    of_tenant[build.tenant].first += 1;
    of_tenant[build.tenant].second += build.bytes;
  }
  for (const auto& [worker, ids] : lent_) lent += ids.size();
  for (const auto& [worker, ids] : asked_) asked += ids.size();
  for (const auto& [number, tenant] : tenants_) {
    waiting += tenant.waiting.size();
    HONE_CHECK(of_tenant[number] == std::pair(tenant.builds, tenant.bytes)) << "tenant " << number;
    for (const uint64_t id : tenant.waiting) HONE_CHECK(builds_.at(id).builder == 0) << "build " << id;
  }
  HONE_CHECK(lost_with_.size() == lost_order_.size() && lost_order_.size() <= kMostLostWith);
  HONE_CHECK(asked == builds_.size() && by_call_.size() == builds_.size() && lent + waiting == builds_.size());
}

}  // namespace hone
