// Whether timings taken on this machine now would be any good: the hours its owner gave, its share of the processor,
// its neighbours.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hone {

// "22:00-06:00", in the machine's time zone; the end is not part of it. Equal ends are all day.
struct Hours {
  int from = 0, to = 0;  // minutes of the day
  std::string text;

  bool Contains(int minute) const { return from < to ? from <= minute && minute < to : minute >= from || minute < to; }
};
absl::StatusOr<Hours> ParseHours(const std::string& text);

// The cores' worth of time that control groups leave this process, the least of all that it is in; nullopt without a
// limit. `root`: where the files of a system are, for tests.
std::optional<double> CpuQuota(const std::string& root = "");

// The share of the processors' time that was neither idle nor spent waiting for a disk between two first lines of
// /proc/stat. What a hypervisor took away counts: somebody else had it. nullopt where no time lies between them.
std::optional<double> BusyShare(const std::string& before, const std::string& after);

struct QuietRules {
  std::optional<Hours> hours;          // none: at all times
  std::optional<double> most_foreign;  // of the machine's processor time, used by others; none: it is not looked at
};

class Quiet {
 public:
  Quiet(QuietRules rules, int threads, std::optional<double> cpu_quota)
      : rules_(std::move(rules)), threads_(threads), cpu_quota_(cpu_quota) {}

  // What it lacks, in words that go behind "waits for": its hours or whole cores; "" when it lacks nothing.
  std::string Lacks(absl::Time now) const;
  // As above, of its neighbours, where there is a rule for them. Takes 0.3 s, in which no program of Hone's may run
  // here: the turn is needed, alone.
  bool listens() const { return rules_.most_foreign.has_value(); }
  std::string LacksSilence() const;

 private:
  QuietRules rules_;
  int threads_;
  std::optional<double> cpu_quota_;
};

}  // namespace hone
