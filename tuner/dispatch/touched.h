// What changed since the rules were last applied: they look at these jobs, workers and keys again, and at no others, so
// that the work after an event does not grow with the fleet.
#pragma once

#include <cstdint>
#include <set>

namespace hone {

struct Touched {
  std::set<uint64_t> jobs, workers, trials;
  std::set<uint64_t> keys;  // by KeyState::number
  std::set<uint64_t> builds;
  std::set<uint64_t> builds_of;  // tenants with a build that has come to wait

  bool any() const {
    return !jobs.empty() || !workers.empty() || !trials.empty() || !keys.empty() || !builds.empty() ||
           !builds_of.empty();
  }
};

}  // namespace hone
