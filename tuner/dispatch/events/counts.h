// How much of everything there is: for `hone status` and the metrics. No tenant's data.
#pragma once

#include <array>
#include <cstdint>

#include "hone/v1/common.pb.h"
#include "hone/v1/fleet.pb.h"

namespace hone {

// As of now.
struct FleetCounts {
  int64_t jobs_waiting = 0, jobs_running = 0, jobs_paused = 0;
  int64_t queued = 0;                               // candidates that no worker has
  std::array<int64_t, v1::Phase_ARRAYSIZE> lent{};  // by phase; PHASE_UNSPECIFIED: the worker has not spoken of it yet
  int64_t workers_idle = 0, workers_busy = 0, workers_draining = 0, workers_lost = 0;
  int64_t builds_waiting = 0, builds_lent = 0;  // that workers which only measure have asked for
  int64_t searches = 0;                         // batches of candidates that a search was asked for
  int64_t workers_waiting = 0;                  // of all: those that say what keeps them from work

  int64_t all_lent() const {
    int64_t sum = 0;
    for (const int64_t count : lent) sum += count;
    return sum;
  }
};

// Since the dispatcher began; they only rise.
struct DispatchCounters {
  std::array<int64_t, v1::OutcomeKind_ARRAYSIZE> results{};  // accepted reports, by outcome
  int64_t superseded = 0;  // reports of leases that were over, or none of the worker's
  int64_t lent = 0;
  int64_t given_back = 0;       // by workers that drain or are not quiet
  int64_t taken_back = 0;       // leases that ended without a result
  int64_t workers_lost = 0;     // silent for longer than a lease
  int64_t workers_cut_off = 0;  // of these, came back in their session: the network was lost, not they
  int64_t champions = 0;        // changes of `best`
  int64_t searches_failed = 0;
  int64_t builds = 0;             // made by workers that only build
  int64_t builds_taken_back = 0;  // leases of builds that ended without a result
  int64_t looked_at = 0;          // what a rule was applied to, or looked at: the work, whatever the machine
};

}  // namespace hone
