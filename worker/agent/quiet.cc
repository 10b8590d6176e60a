#include "worker/agent/quiet.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace hone {
namespace {

constexpr absl::Duration kListen = absl::Milliseconds(300);

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

constexpr char kStat[] = "/proc/stat";

// What the machine's processors had in all, and were busy in.
struct Ticks {
  int64_t all = 0, busy = 0;
};
Ticks TicksOf(const std::string& stat) {
  std::istringstream line(stat);
  std::string name;
  line >> name;
  Ticks ticks;
  int64_t value = 0;
  // user nice system idle iowait irq softirq steal; guests are in user already (proc(5))
  for (int column = 0; column < 8 && line >> value; ++column) {
    ticks.all += value;
    if (column != 3 && column != 4) ticks.busy += value;
  }
  return ticks;
}

// The folders from a control group's to the root of its hierarchy.
std::vector<std::string> UpTheTree(const std::string& mount, std::string group) {
  std::vector<std::string> folders;
  for (; group.size() > 1; group = group.substr(0, group.rfind('/'))) folders.push_back(mount + group);
  folders.push_back(mount);
  return folders;
}

void Lower(std::optional<double>& least, double quota, double period) {
  if (quota <= 0 || period <= 0) return;
  least = std::min(least.value_or(quota / period), quota / period);
}

}  // namespace

absl::StatusOr<Hours> ParseHours(const std::string& text) {
  Hours hours;
  hours.text = text;
  int h[2], m[2], end = 0;
  const bool whole = std::sscanf(text.c_str(), "%2d:%2d-%2d:%2d%n", &h[0], &m[0], &h[1], &m[1], &end) == 4 &&
                     end == static_cast<int>(text.size());
  for (int i = 0; i < 2; ++i) {
    if (whole && h[i] >= 0 && h[i] <= 24 && m[i] >= 0 && m[i] < 60 && h[i] * 60 + m[i] <= 24 * 60) continue;
    return absl::InvalidArgumentError(absl::StrCat(text, " are no hours; write them as 22:00-06:00"));
  }
  hours.from = (h[0] * 60 + m[0]) % (24 * 60);
  hours.to = (h[1] * 60 + m[1]) % (24 * 60);
  return hours;
}

std::optional<double> CpuQuota(const std::string& root) {
  std::optional<double> least;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));  // id, controllers, path
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool second_version = parts[0] == "0" && parts[1].empty();
    if (!second_version && std::find(controllers.begin(), controllers.end(), "cpu") == controllers.end()) continue;
    const std::string mount = root + "/sys/fs/cgroup" + (second_version ? "" : "/" + parts[1]);
    for (const std::string& folder : UpTheTree(mount, parts[2])) {
      double quota = 0, period = 0;
      if (second_version) {  // "150000 100000", or "max 100000"
        const std::vector<std::string> words = absl::StrSplit(FirstLine(folder + "/cpu.max"), ' ');
        if (words.size() != 2 || !absl::SimpleAtod(words[0], &quota) || !absl::SimpleAtod(words[1], &period)) continue;
      } else if (!absl::SimpleAtod(FirstLine(folder + "/cpu.cfs_quota_us"), &quota) ||  // -1: none
                 !absl::SimpleAtod(FirstLine(folder + "/cpu.cfs_period_us"), &period)) {
        continue;
      }
      Lower(least, quota, period);
    }
  }
  return least;
}

std::optional<double> BusyShare(const std::string& before, const std::string& after) {
  const Ticks first = TicksOf(before), last = TicksOf(after);
  if (last.all <= first.all) return std::nullopt;
  return static_cast<double>(last.busy - first.busy) / static_cast<double>(last.all - first.all);
}

std::string Quiet::Lacks(absl::Time now) const {
  if (cpu_quota_.has_value() && *cpu_quota_ < threads_) {
    return absl::StrFormat(
        "whole cores: a CPU limit leaves it the time of %.2g, and it measures with %d threads; take the limit away "
        "and give it cores of its own (a cpuset, or the static CPU policy)",
        *cpu_quota_, threads_);
  }
  if (!rules_.hours.has_value()) return "";
  const absl::CivilMinute minute = absl::ToCivilMinute(now, absl::LocalTimeZone());
  if (rules_.hours->Contains(minute.hour() * 60 + minute.minute())) return "";
  return absl::StrCat("its hours, ", rules_.hours->text);
}

std::string Quiet::LacksSilence() const {
  if (!listens()) return "";
  const std::string before = FirstLine(kStat);
  absl::SleepFor(kListen);
  const std::optional<double> share = BusyShare(before, FirstLine(kStat));
  if (!share.has_value() || *share <= *rules_.most_foreign) return "";
  return absl::StrFormat("a quiet machine: other programs take %.0f %% of its processor, and %.0f %% are allowed",
                         100 * *share, 100 * *rules_.most_foreign);
}

}  // namespace hone
