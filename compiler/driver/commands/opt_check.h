// `hone opt --check`: the proof that a program stays inside its buffers.
#pragma once

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/program.h"

namespace hone {

// Every access of the function stays in its buffer, or a status (exit code 7) that names the one for which there is no
// proof. What the inputs are for ("domains") counts.
absl::Status ProveBounds(const PrimFunc& func);
// The program and what packs its constants.
absl::Status ProveBounds(const ScheduledProgram& program);

}  // namespace hone
