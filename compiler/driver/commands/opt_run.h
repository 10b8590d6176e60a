// `hone opt --run`: one function on arguments from files or from a seed. Its outputs go to files, what was measured to
// standard output.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/schedule/program.h"

namespace hone {

struct OptRun {
  std::string by;                            // "interp", or "llvm": compiled, in a sandbox; "": nothing is run
  std::vector<std::string> inputs, outputs;  // NAME=FILE.npy; inputs without one get random values of the seed
  uint64_t seed = 0;
  int threads = 1;  // of a compiled program
  bool time = false, json = false;
};

// Runs `program`, which is `func` scheduled, of `file`. InvalidArgument where an argument is no parameter's or of
// another shape or type; what is the program's own fault has exit code 7 (run_program.h).
absl::Status RunOnArguments(const OptRun& options, const std::string& file, const PrimFunc& func,
                            const ScheduledProgram& program);

}  // namespace hone
