#include "compiler/driver/machine_facts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/driver/service_options.h"
#include "compiler/support/file.h"
#include "compiler/support/status_macros.h"
#include "worker/probe/machine_probe.h"

namespace hone {
namespace {

// The file's first line: another text, and the file is of another release and written anew.
constexpr char kHeading[] = "# Facts of machines, measured by hone: device class, model of CPU, facts. May be deleted.";

// What the system calls the CPU: two models of one core differ in clock and memory. Empty where it does not say.
std::string ModelOfCpu() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!absl::StartsWith(line, "model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "";
}

// Whether the code of the target runs here at the speed it will have: this core with its caches, or less of it.
bool IsThisMachine(const Target& target) {
  const Target host = HostTarget();
  return target.cpu == host.cpu && MissingFeatures(target, host).empty() && target.cores <= host.cores &&
         target.l1d == host.l1d && target.l2 == host.l2 && target.l3 == host.l3;
}

std::vector<std::string> KeptLines() {
  const absl::StatusOr<std::string> text = ReadFile(MachineFactsPath());
  if (!text.ok()) return {};
  std::vector<std::string> lines = absl::StrSplit(*text, '\n', absl::SkipEmpty());
  if (lines.empty() || lines[0] != kHeading) return {};
  lines.erase(lines.begin());
  return lines;
}

absl::Status Keep(const std::string& key, const Machine& machine) {
  std::vector<std::string> lines = KeptLines();
  std::erase_if(lines, [&](const std::string& line) { return absl::StartsWith(line, key); });
  lines.push_back(key + ToText(machine));
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(MachineFactsPath()).parent_path(), failed);
  return WriteFileAtomically(MachineFactsPath(), absl::StrCat(kHeading, "\n", absl::StrJoin(lines, "\n"), "\n"));
}

}  // namespace

std::string MachineFactsPath() {
  return (std::filesystem::path(DefaultDatabase()).parent_path() / "machines.txt").string();
}

absl::StatusOr<MachineFacts> FindMachineFacts(const Target& target, const std::string& text) {
  if (text == "usual") return MachineFacts{UsualMachine(target), absl::StrCat("usual values of ", target.cpu)};
  if (text != "measured") {
    HONE_ASSIGN_OR_RETURN(const Machine machine, ParseMachine(text, target));
    return MachineFacts{machine, "as given, the rest usual values"};
  }
  if (!IsThisMachine(target)) {
    return MachineFacts{UsualMachine(target),
                        absl::StrCat("usual values of ", target.cpu, ", as the target is not this machine")};
  }
  const std::string key = absl::StrCat(DeviceClass(target), "\t", ModelOfCpu(), "\t");
  for (const std::string& line : KeptLines()) {
    if (!absl::StartsWith(line, key)) continue;
    const absl::StatusOr<Machine> machine = ParseMachine(line.substr(key.size()), target);
    if (machine.ok()) return MachineFacts{*machine, absl::StrCat("measured before, kept in ", MachineFactsPath())};
  }
  ProbeOptions options = kQuickProbe;
  options.threads = target.cores;
  MachineFacts facts{ProbeMachine(target, options).machine, absl::StrCat("measured now, kept in ", MachineFactsPath())};
  const absl::Status kept = Keep(key, facts.machine);
  if (!kept.ok()) facts.source = absl::StrCat("measured now, not kept: ", std::string(kept.message()));
  return facts;
}

}  // namespace hone
