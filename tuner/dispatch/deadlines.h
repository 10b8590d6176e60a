// When a rule of the dispatcher becomes due by the passing of time alone: of each worker, trial, job and build the
// earliest such time. Setting one and finding the first take logarithmic time.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/dispatch/events.h"

namespace hone {

class Deadlines {
 public:
  // kAsking: of the jobs that may want candidates, number 0.
  enum class Of { kWorker, kTrial, kJob, kAsking, kBuild };
  using Subject = std::pair<Of, uint64_t>;  // and its number
  static constexpr Micros kNever = std::numeric_limits<Micros>::max();

  void Set(Of kind, uint64_t id, Micros at);  // in place of the one before; kNever: it has none
  Micros Get(Of kind, uint64_t id) const;
  Micros first() const { return order_.empty() ? kNever : order_.begin()->first; }
  std::vector<Subject> Due(Micros now) const;  // at that time or before, earliest first
  size_t size() const { return order_.size(); }

 private:
  struct Hash {
    size_t operator()(const Subject& subject) const {
      return std::hash<uint64_t>()(subject.second * 8 + static_cast<uint64_t>(subject.first));
    }
  };
  std::unordered_map<Subject, Micros, Hash> at_;
  std::set<std::pair<Micros, Subject>> order_;
};

}  // namespace hone
