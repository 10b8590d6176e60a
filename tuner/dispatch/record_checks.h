// Records of earlier builds are checked while no job is open: those that are the best of a key, and that another code
// generator made than the workers of a kind have, or that were measured with another driver of the device. A job of the
// daemon's own has each built again (record_checks.cc). The same code under the same driver: the record is the present
// generator's from then on. Else it is measured, since a driver may compile what it is given; its time is the record's,
// and where it is slower than before by more than `slower_margin`, or does not work, the key is tuned until it is not.
//
// The store is read page by page, by whoever carries out FindOutdated. A record that was checked has the present
// generator's name: a daemon that starts again finds those that are left.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "tuner/dispatch/events/events.h"
#include "tuner/dispatch/state/fleet_index.h"

namespace hone {

inline constexpr char kCheckSource[] = "check";  // of trials that build a record again

// What makes the code that a worker measures.
struct CodeMaker {
  std::string generator;
  std::string driver;  // of its device
  auto operator<=>(const CodeMaker&) const = default;
};

// The version of its device's driver that a worker told; "" where it measures on the host's processor.
std::string DriverOf(const v1::DeviceProfile& profile);

struct RecordChecks {
  struct OfKind {
    std::map<CodeMaker, std::set<uint64_t>> workers;
    CodeMaker maker;                   // that all had when the search for records began
    uint64_t after = 0;                // where its next page begins
    bool read = false;                 // to the end
    std::deque<OutdatedRecord> found;  // that no job checks yet
  };
  std::map<WorkerKind, OfKind> kinds;
  bool due = false;    // something may be to be done for one of these
  bool reads = false;  // a page was asked for,
  WorkerKind reading;  // for these workers
  uint64_t job = 0;    // that checks records, until its end is durable; 0: none
};

}  // namespace hone
