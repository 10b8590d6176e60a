// Which job a request made, so that a request that comes twice makes one. Before a request comes here the store is
// asked for it, which knows it from the job's commit on. What is told here is what that look was too early for: it is
// kept until some time after the job's end, for requests that are still on their way then.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "tuner/dispatch/events/events.h"

namespace hone {

inline constexpr Micros kRequestStays = Micros{5} * 60 * kSecond;  // after the end of its job

class JobRequests {
 public:
  void Add(uint64_t tenant, const std::string& request, uint64_t job) { jobs_[{tenant, request}] = job; }
  // The end of its job is durable.
  void End(Micros now, uint64_t tenant, const std::string& request) {
    for (; !ended_.empty() && ended_.front().first <= now; ended_.pop_front()) jobs_.erase(ended_.front().second);
    ended_.emplace_back(now + kRequestStays, Key{tenant, request});
  }
  std::optional<uint64_t> Find(uint64_t tenant, const std::string& request) const {
    const auto found = jobs_.find({tenant, request});
    return found == jobs_.end() ? std::nullopt : std::optional(found->second);
  }
  size_t size() const { return jobs_.size(); }

 private:
  using Key = std::pair<uint64_t, std::string>;  // tenant, request
  std::map<Key, uint64_t> jobs_;
  std::deque<std::pair<Micros, Key>> ended_;  // by when they leave
};

}  // namespace hone
