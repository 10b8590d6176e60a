// Containers of things with numbers that rise, for what every event looks up: in order like std::set and std::map, with
// fewer steps through memory that no cache holds. Large sets in another order are B-trees, and what is looked up alone
// is in Abseil's hash tables, for the same reason: between two events of a busy daemon the caches are others'.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"

namespace hone {

// A few numbers (those of one worker, one job, one key) in order, side by side. What is inserted is mostly the largest.
class SortedIds {
 public:
  void insert(uint64_t id) {
    const auto at = ids_.empty() || ids_.back() < id ? ids_.end() : std::lower_bound(ids_.begin(), ids_.end(), id);
    if (at == ids_.end() || *at != id) ids_.insert(at, id);
  }
  void erase(uint64_t id) {
    const auto at = std::lower_bound(ids_.begin(), ids_.end(), id);
    if (at != ids_.end() && *at == id) ids_.erase(at);
  }
  size_t count(uint64_t id) const { return std::binary_search(ids_.begin(), ids_.end(), id) ? 1 : 0; }
  bool empty() const { return ids_.empty(); }
  size_t size() const { return ids_.size(); }
  auto begin() const { return ids_.begin(); }
  auto end() const { return ids_.end(); }
  bool operator==(const SortedIds&) const = default;

 private:
  absl::InlinedVector<uint64_t, 4> ids_;
};

// A map by number that is gone through in order and finds in constant time. What is in it stays where it is in memory.
template <class T>
class MapById {
 public:
  using iterator = typename std::map<uint64_t, T>::iterator;
  using const_iterator = typename std::map<uint64_t, T>::const_iterator;

  MapById() = default;
  MapById(const MapById&) = delete;

  iterator begin() { return in_order_.begin(); }
  iterator end() { return in_order_.end(); }
  const_iterator begin() const { return in_order_.begin(); }
  const_iterator end() const { return in_order_.end(); }
  bool empty() const { return in_order_.empty(); }
  size_t size() const { return in_order_.size(); }

  iterator find(uint64_t id) {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? in_order_.end() : found->second;
  }
  const_iterator find(uint64_t id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? in_order_.end() : const_iterator(found->second);
  }
  size_t count(uint64_t id) const { return by_id_.count(id); }
  T& at(uint64_t id) { return by_id_.at(id)->second; }
  const T& at(uint64_t id) const { return by_id_.at(id)->second; }
  T& operator[](uint64_t id) { return emplace(id, T()).first->second; }
  std::pair<iterator, bool> emplace(uint64_t id, T value) {
    const auto [entry, added] = by_id_.try_emplace(id);
    if (added) entry->second = in_order_.emplace_hint(in_order_.end(), id, std::move(value));
    return {entry->second, added};
  }
  void erase(uint64_t id) {
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) return;
    in_order_.erase(found->second);
    by_id_.erase(found);
  }

 private:
  std::map<uint64_t, T> in_order_;
  absl::flat_hash_map<uint64_t, iterator> by_id_;
};

// Puts what is in the set as `from` there as `to`.
template <class Set>
void Replace(Set& set, const typename Set::value_type& from, const typename Set::value_type& to) {
  set.erase(from);
  set.insert(to);
}

}  // namespace hone
