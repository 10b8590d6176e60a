// What changed since the rules were last applied: they look at these jobs, workers and keys again, and at no others, so
// that the work after an event does not grow with the fleet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hone {

// Numbers, noted often and read once: in order, each once, after Sort.
class NotedIds {
 public:
  void insert(uint64_t id) {
    if (ids_.empty() || ids_.back() != id) ids_.push_back(id);
  }
  template <class Iterator>
  void insert(Iterator first, Iterator last) {
    ids_.insert(ids_.end(), first, last);
  }
  void Sort() {
    std::sort(ids_.begin(), ids_.end());
    ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  }
  void Clear() { ids_.clear(); }  // keeps its room
  bool empty() const { return ids_.empty(); }
  auto begin() const { return ids_.begin(); }
  auto end() const { return ids_.end(); }

 private:
  std::vector<uint64_t> ids_;
};

struct Touched {
  NotedIds jobs, workers, trials;
  NotedIds keys;  // by KeyState::number
  NotedIds builds;
  NotedIds builds_of;  // tenants with a build that has come to wait

  void Sort() {
    for (NotedIds* ids : {&jobs, &workers, &trials, &keys, &builds, &builds_of}) ids->Sort();
  }
  void Clear() {
    for (NotedIds* ids : {&jobs, &workers, &trials, &keys, &builds, &builds_of}) ids->Clear();
  }

  bool any() const {
    return !jobs.empty() || !workers.empty() || !trials.empty() || !keys.empty() || !builds.empty() ||
           !builds_of.empty();
  }
};

}  // namespace hone
