#include "compiler/target/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/support/status_macros.h"
#include "compiler/target/cpu_table.h"

namespace hone {
namespace {

struct Fact {
  std::string_view name;
  double Machine::*field;
  double least, most;  // that is believed of any machine
};

constexpr Fact kFacts[] = {
    {"ghz", &Machine::ghz, 0.05, 20},
    {"fma128", &Machine::fma128, 0, 32},
    {"fma256", &Machine::fma256, 0, 32},
    {"fma512", &Machine::fma512, 0, 32},
    {"latency", &Machine::fma_latency, 0.5, 100},
    {"l1", &Machine::l1, 0.01, 1e4},
    {"l2", &Machine::l2, 0.01, 1e4},
    {"l3", &Machine::l3, 0.01, 1e4},
    {"memory", &Machine::memory, 0.001, 1e4},
    {"l3_all", &Machine::l3_all, 0.01, 1e6},
    {"memory_all", &Machine::memory_all, 0.001, 1e6},
    {"fork", &Machine::fork_us, 0, 1e5},
    {"piece", &Machine::piece_us, 0, 1e4},
};

// The shortest text that reads back as the same number.
std::string Shortest(double value) {
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

// Four cores read about as much as the memory of one socket gives.
constexpr int kCoresOfMemory = 4;
// Of the runtime's pool while its threads spin: 0.4 us and 0.2 ns were measured on a server of two cores, the first in
// a loop that does nothing else.
constexpr double kUsualForkUs = 1, kUsualPieceUs = 0.0002;

}  // namespace

Machine UsualMachine(const Target& target) {
  const CpuInfo* cpu = FindCpu(target.cpu);
  if (cpu == nullptr) cpu = FindCpu("x86-64-v3");
  Machine machine;
  machine.ghz = cpu->ghz;
  // The row states the rate of the core's widest vectors. Where a target turns them off, or on, the other width has two
  // pipes or one.
  const double row = cpu->fma_per_cycle;
  const bool row_is_512 = cpu->vector_bits == 512;
  if (target.arch != "x86_64") {
    (target.vector_bits == 256 ? machine.fma256 : machine.fma128) = row;
  } else {
    machine.fma256 = machine.fma128 = row_is_512 ? 2 : row;
    if (target.vector_bits == 512) machine.fma512 = row_is_512 ? row : 1;
  }
  machine.fma_latency = cpu->fma_latency;
  machine.l1 = cpu->l1_rate;
  machine.l2 = cpu->l2_rate;
  machine.memory = cpu->memory_rate;
  machine.l3 = target.l3 > 0 ? cpu->l3_rate : cpu->memory_rate;
  machine.memory_all = machine.memory * std::min(target.cores, kCoresOfMemory);
  machine.l3_all = target.l3 > 0 ? machine.l3 * target.cores : machine.memory_all;
  machine.fork_us = kUsualForkUs;
  machine.piece_us = kUsualPieceUs;
  return machine;
}

std::string ToText(const Machine& machine) {
  return absl::StrJoin(kFacts, ",", [&](std::string* out, const Fact& fact) {
    absl::StrAppend(out, std::string(fact.name), "=", Shortest(machine.*fact.field));
  });
}

absl::StatusOr<Machine> ParseMachine(std::string_view text, const Target& target) {
  Machine machine = UsualMachine(target);
  std::set<std::string> seen;
  const std::vector<std::string> entries = absl::StrSplit(std::string(text), ',', absl::SkipEmpty());
  for (const std::string& entry : entries) {
    const std::vector<std::string> parts = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    const Fact* fact = std::ranges::find(kFacts, std::string_view(parts[0]), &Fact::name);
    if (fact == std::end(kFacts)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "machine facts \"", std::string(text), "\": \"", parts[0], "\" is no fact; known are ",
          absl::StrJoin(kFacts, ", ",
                        [](std::string* out, const Fact& known) { absl::StrAppend(out, std::string(known.name)); })));
    }
    if (!seen.insert(parts[0]).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("machine facts \"", std::string(text), "\": ", parts[0], " is stated twice"));
    }
    if (parts.size() != 2 || !absl::SimpleAtod(parts[1], &(machine.*fact->field))) {
      return absl::InvalidArgumentError(absl::StrCat("machine facts \"", std::string(text), "\": \"", entry,
                                                     "\" is not a name, = and a number; write ghz=3.5"));
    }
  }
  HONE_RETURN_IF_ERROR(CheckMachine(machine, target));
  return machine;
}

absl::Status CheckMachine(const Machine& machine, const Target& target) {
  for (const Fact& fact : kFacts) {
    const double value = machine.*fact.field;
    if (std::isfinite(value) && value >= fact.least && value <= fact.most) continue;
    return absl::InvalidArgumentError(absl::StrCat("machine facts: ", std::string(fact.name), " is ", Shortest(value),
                                                   ", outside ", Shortest(fact.least), " to ", Shortest(fact.most),
                                                   "; leave it out for the usual value"));
  }
  if (machine.fma_per_cycle(target.vector_bits) <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("machine facts: fma", target.vector_bits, " is 0, but ", target.text,
                                                   " uses vectors of ", target.vector_bits, " bits"));
  }
  return absl::OkStatus();
}

}  // namespace hone
