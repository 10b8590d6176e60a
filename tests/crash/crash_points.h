// The points at which processes can be ended (compiler/support/crash_point.h), and a trigger for one of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/system/harness.h"

namespace hone::crash_test {

// Every name that a source passes to CrashPoint, sorted. The sources are read, so that no list has to be kept.
std::vector<std::string> CrashPoints();

// Ends the process that comes `visit`-th by `point`, once.
class Trigger {
 public:
  Trigger(const system_test::TempFolder& folder, std::string point, int64_t visit);
  ~Trigger();
  Trigger(const Trigger&) = delete;
  const std::string& point() const { return point_; }
  std::map<std::string, std::string> environment() const;
  int64_t visits() const { return count_->load(); }
  bool fired() const { return visits() >= visit_; }
  void FireAtNextVisit();
  int64_t visit() const { return visit_ - skipped_; }  // at which it fires

 private:
  std::string point_, file_;
  int64_t visit_, skipped_ = 0;
  std::atomic<int64_t>* count_ = nullptr;  // of visits, shared with the processes
};

}  // namespace hone::crash_test
