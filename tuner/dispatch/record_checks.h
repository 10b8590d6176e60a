// Records of earlier builds are checked while no job is open: those that are the best of a key, and that another code
// generator made than the workers of a kind have. A job of the daemon's own has each built again (record_checks.cc).
// The same code: the record is the present generator's from then on. Other code: it is measured, its time is the
// record's, and where it is slower than before by more than `slower_margin`, or does not work, the key is tuned until
// it is not.
//
// The store is read page by page, by whoever carries out FindOutdated. A record that was checked has the present
// generator's name: a daemon that starts again finds those that are left.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "tuner/dispatch/events.h"
#include "tuner/dispatch/fleet_index.h"

namespace hone {

inline constexpr char kCheckSource[] = "check";  // of trials that build a record again

struct RecordChecks {
  struct OfKind {
    std::map<std::string, std::set<uint64_t>> workers;  // by their generator
    std::string generator;                              // that all had when the search for records began
    uint64_t after = 0;                                 // where its next page begins
    bool read = false;                                  // to the end
    std::deque<OutdatedRecord> found;                   // that no job checks yet
  };
  std::map<WorkerKind, OfKind> kinds;
  bool due = false;    // something may be to be done for one of these
  bool reads = false;  // a page was asked for,
  WorkerKind reading;  // for these workers
  uint64_t job = 0;    // that checks records, until its end is durable; 0: none
};

}  // namespace hone
