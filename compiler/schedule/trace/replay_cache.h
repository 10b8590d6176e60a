// Replaying many traces of one workload that have much in common, as a search does that changes one decision at a time:
// only what follows the first difference is done again.
//
//   ReplayCache cache(workload);
//   absl::StatusOr<Schedule> a = cache.Replay(trace);
//   absl::StatusOr<Schedule> b = cache.Replay(*MutateDecision(trace, workload, random));  // begins where the two part
//
// A decision counts where it is first read, not where it was made: a trace whose samples all stand in front is not done
// again from its top. What comes out, refusals too, is what Replay gives. Not for use by two threads at once.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/trace/trace.h"

namespace hone {

class ReplayCache {
 public:
  // Keeps up to `capacity` schedules along the traces it has seen, the most recently used ones. They share what they
  // have in common.
  explicit ReplayCache(PrimFunc workload, size_t capacity = 128);
  ~ReplayCache();

  absl::StatusOr<Schedule> Replay(const Trace& trace);

  struct Figures {
    int64_t steps_done = 0, steps_saved = 0;
  };
  const Figures& figures() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone
