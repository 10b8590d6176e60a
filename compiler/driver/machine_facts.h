// How fast the machine is that a command builds for (compiler/target/machine.h), and how that is known.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/target/machine.h"

namespace hone {

struct MachineFacts {
  Machine machine;
  std::string source;  // for people: "measured now, kept in PATH"
};

// By `text`: "usual" (the usual values of the target's core), facts as ParseMachine reads them, or "measured". Then
// they are usual values for another machine than this one; and for this one those that an earlier command kept, or, at
// most 0.1 s later, those of a probe, which are kept. A file that cannot be read or written costs a probe, no error.
absl::StatusOr<MachineFacts> FindMachineFacts(const Target& target, const std::string& text);

// Where they are kept: a line for each device class and model of CPU, beside the default database.
std::string MachineFactsPath();

}  // namespace hone
