// Names of workers that were lost. For a while each is its principal's, who comes back under it, and nobody else's: a
// name says whose measurements are whose.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "tuner/dispatch/events/events.h"

namespace hone {

inline constexpr Micros kLostNameStays = Micros{15} * 60 * kSecond;  // its principal's

class LostNames {
 public:
  struct Owner {
    std::string principal, name_key;
    Micros until = 0;
  };

  void Add(Micros now, uint64_t tenant, const std::string& name, const std::string& principal,
           const std::string& name_key) {
    for (; !order_.empty() && order_.front().first <= now; order_.pop_front()) {
      const auto oldest = owners_.find(order_.front().second);
      if (oldest != owners_.end() && oldest->second.until <= now) owners_.erase(oldest);
    }
    owners_[{tenant, name}] = {principal, name_key, now + kLostNameStays};
    order_.emplace_back(now + kLostNameStays, Key{tenant, name});
  }
  // nullptr: the name is free.
  const Owner* Find(Micros now, uint64_t tenant, const std::string& name) const {
    const auto found = owners_.find({tenant, name});
    return found == owners_.end() || found->second.until <= now ? nullptr : &found->second;
  }

 private:
  using Key = std::pair<uint64_t, std::string>;  // tenant, name
  std::map<Key, Owner> owners_;
  std::deque<std::pair<Micros, Key>> order_;  // by when they end; names that were lost again are in it twice
};

}  // namespace hone
