// The numbers in the dispatcher's rules, with their defaults.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tuner/dispatch/events/events.h"

namespace hone {

struct DispatchOptions {
  uint64_t seed = 1;
  // Leases.
  uint32_t lease_ms = 30'000;      // not renewed for this long: lent to somebody else
  uint32_t sync_hold_ms = 10'000;  // an idle Sync is held this long
  int max_attempts = 5;            // of one trial, infrastructure failures and lost leases together
  int quarantine_after = 2;        // distinct workers lost while they worked on it
  uint32_t stuck_ms = 300'000;     // a lease under work this long is taken back though its worker lives
  uint32_t lost_after_ms = 3'000;  // without an open call of it: shown as lost, though its leases last on
  uint32_t build_limit_ms = 30'000;
  uint32_t run_limit_ms = 10'000;
  int64_t memory_limit_bytes = int64_t{4} << 30;
  int max_credits = 64;  // leases one worker may hold, whatever it asks for
  // A worker that had so many infrastructure failures in a row is lent one trial at a time, after rests that double
  // from one second to the longest.
  int faulty_after = 3;
  uint32_t longest_rest_ms = 16'000;
  // Builds for workers that only measure. A request that a builder has had for so long beyond its limit is taken back;
  // one that nobody answers for so long is given up, before its trial is stuck.
  uint32_t build_slack_ms = 30'000;
  uint32_t build_wait_ms = 240'000;
  int max_builds_asked = 64;                     // of one worker at once
  int64_t max_build_bytes = int64_t{256} << 20;  // of the requests of one tenant at once
  // What waits or runs of one tenant at once.
  int max_jobs = 256;
  int max_tasks = 20'000;
  // Each tenant's weight where they share (tenant_accounts.h); of those that are not named, 1.
  std::map<uint64_t, double> tenant_weights;
  // Search.
  int batch = 16;          // candidates asked for at once
  int searches = 1;        // requests out at once: as many as there are search processes
  int search_retries = 5;  // in a row without a candidate, nothing being out: the task is exhausted
  // Task scheduler (Ansor's gradient; alpha, beta, window as published).
  double alpha = 0.2;
  double beta = 2.0;
  int window = 3;                // rounds over which progress is looked at
  double stale_decay = 0.5;      // of what is hoped for a task, for each of its latest rounds without a gain
  double warm_up_share = 0.002;  // of the model's time: smaller tasks are left out of the warm-up round
  // Stops.
  double limit_margin = 0.03;  // within this of the lower bound: at the limit
  double limit_noise = 0.10;   // so far below it: still, as the peaks were measured with noise
  int stall_trials = 96;       // this many trials without a gain of `stall_gain` while jobs want it: stalled
  double stall_gain = 0.005;
  int hopeless_failures = 64;  // a task that failed this often and never succeeded is given up
  // Duels.
  double duel_margin = 0.005;    // a challenger must look this much faster to be let in
  double default_margin = 0.02;  // against the default this much, and surely be it to replace it: see EndDuel
  int last_duels = 3;  // lost for a key once a job's budget is used up: the fastest claims are fought first, and
                       // a machine on which each of many claims is luck holds no budget up
  // The first verified result of a key is measured again, in a fresh process, before it is the best. Off in tests of
  // other rules alone.
  bool confirm_first = true;
  // A duel waits this long for another worker than the one that measured the challenger, where there is one that fits;
  // so does a trial for another than the one that failed at it.
  uint32_t second_worker_ms = 10'000;
  double disagreement = 2;      // a duel's ratio this far from that of the times recorded before is not believed, nor,
                                // until its duel, a time this far below the best and all that other workers measured
  double slower_margin = 0.10;  // code of a record that is slower by more than was recorded is tuned anew
  // Retention.
  int keep_objects = 4;      // objects kept for each key, beside the best one's
  int keep_trials = 20'000;  // ended trials kept for each key when a job of it ends, with their measurements
  // What lease secrets are derived from: random bytes that honed draws when it starts.
  std::string lease_key;
};

}  // namespace hone
