// When a rule of the dispatcher becomes due by the passing of time alone: of each worker, trial, job and build the
// earliest such time. Most are put off again and again and never come, as a worker's silence does with every call: what
// is put off keeps its place in the order until that place is reached, so putting off takes constant time. Bringing one
// forward and finding the first take logarithmic time.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"

#include "tuner/dispatch/events/events.h"

namespace hone {

class Deadlines {
 public:
  // kAsking: of the jobs that may want candidates, number 0.
  enum class Of { kWorker, kTrial, kJob, kAsking, kBuild };
  using Subject = std::pair<Of, uint64_t>;  // and its number
  static constexpr Micros kNever = std::numeric_limits<Micros>::max();

  void Set(Of kind, uint64_t id, Micros at);  // in place of the one before; kNever: it has none
  Micros Get(Of kind, uint64_t id) const;
  Micros first() const { return order_.empty() ? kNever : order_.begin()->first; }  // none is due before it
  std::vector<Subject> Due(Micros now);  // at that time or before; they stay until they are set anew
  size_t size() const { return order_.size(); }

 private:
  struct Deadline {
    Micros due = 0;
    Micros place = 0;  // in the order: when it is looked at, not after it is due
  };
  absl::flat_hash_map<Subject, Deadline> of_;
  absl::btree_set<std::pair<Micros, Subject>> order_;  // by place
};

}  // namespace hone
