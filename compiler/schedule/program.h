// What a schedule makes of a workload: the kernel, and the functions that pack its constants beforehand.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace hone {

// Turns a constant of the workload into the form in which `main` takes it. `func` has two params, {original, packed}:
// the workload's param and main's. Run once, when the kernel is deployed.
struct Prepare {
  int param = 0;  // of the workload and of main: positions agree
  PrimFunc func;
};

struct ScheduledProgram {
  PrimFunc main;
  std::vector<Prepare> prepares;  // at most one a param
};

}  // namespace hone
