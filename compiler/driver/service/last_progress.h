// When a job last got on: by what its snapshots say, whether or not the cause of a delay is known.
#pragma once

#include <string>
#include <tuple>

#include "absl/time/time.h"
#include "hone/v1/tune.pb.h"

namespace hone {

// A search may take ten minutes for an answer, and a worker as long for a large kernel with its oracle: a job that is
// quiet for less is at work, unless the daemon says that it is held up.
inline constexpr absl::Duration kLongestWork = absl::Minutes(10);

class LastProgress {
 public:
  // How long it has been since a snapshot showed something new: a trial that ended, a candidate that was lent or came
  // back, time spent on one. 0 for the first.
  absl::Duration Since(const v1::JobSnapshot& job, absl::Time now);

 private:
  std::tuple<int64_t, int64_t, int64_t, double> seen_;  // trials, failures, in flight, seconds of work
  absl::Time at_ = absl::InfinitePast();
};

// What is known of such a job, and what says more.
std::string NoProgressText(const v1::JobSnapshot& job, const std::string& explain_command);

}  // namespace hone
